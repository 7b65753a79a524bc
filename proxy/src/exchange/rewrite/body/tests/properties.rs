//! Compares the check with serde_json as the oracle.

use bytes::Bytes;
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::Value as Json;

use super::{super::scan, oracle::*, *};

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_are_read_as_serde_reads_them(bytes in vec(any::<u8>(), 0..40)) {
        prop_assert_eq!(grammar(&bytes).is_ok(), oracle(&bytes));
        let taken = check(Route::Embeddings, &bytes, &everything());
        prop_assert!(taken.is_err() || serde_json::from_slice::<Json>(&bytes).is_ok_and(|json| json.is_object()));
    }

    #[test]
    fn mutated_json_is_read_as_serde_reads_it(json in json(), changes in vec(mutation(), 0..4)) {
        let mut text = serde_json::to_vec(&json).unwrap();
        for change in changes {
            mutate(&mut text, change);
        }
        // A comma on the top level would open its own field.
        if let (Err(rejection), true) = (grammar(&text), oracle(&text)) {
            prop_assert!(!is_syntax(&rejection), "{} {}", rejection, String::from_utf8_lossy(&text));
            prop_assert!(matches!(rejection.reason, Reason::UnknownField(_) | Reason::Duplicate(_)));
        }
        prop_assert!(oracle(&text) || grammar(&text).is_err(), "{}", String::from_utf8_lossy(&text));
    }

    #[test]
    fn any_tokens_are_read_as_serde_reads_them(tokens in vec(select(TOKENS.to_vec()), 0..7)) {
        let text = tokens.concat();
        prop_assert_eq!(grammar(text.as_bytes()).is_ok(), oracle(text.as_bytes()), "{}", text);
    }

    #[test]
    fn runs_end_where_they_should(start in 0..130usize, special in any::<u8>(), rest in vec(any::<u8>(), 0..100)) {
        let text = [&vec![b'a'; start][..], &[special], &rest].concat();
        let run = scan::plain(&text);
        let end = text.iter().position(|&byte| byte < b' ' || byte == b'"' || byte == b'\\').unwrap_or(text.len());
        prop_assert_eq!(run.length, end);
        prop_assert!(text[..end].is_ascii() || scan::beyond_ascii(run.union));
    }

    #[test]
    fn long_strings_are_read_as_serde_reads_them(start in 0..200usize, odd in vec(select(vec!["\\n", "\\\\", "\\\"", "\\u0041", "\\ud83d\\ude00", "\\ud83d", "\\", "\u{1}", "é", "\"", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]), 0..5)) {
        let text = format!("\"{}{}\"", "a".repeat(start), odd.concat());
        prop_assert_eq!(grammar(text.as_bytes()).is_ok(), oracle(text.as_bytes()), "{}", text);
    }

    #[test]
    fn checked_places_are_read_as_serde_reads_them(json in json(), changes in vec(mutation(), 0..3)) {
        let mut text = serde_json::to_vec(&serde_json::json!({"model":"m","messages":[{"content":json}]})).unwrap();
        for change in changes {
            mutate(&mut text, change);
        }
        let parsed = serde_json::from_slice::<Json>(&text);
        match check(Route::ChatCompletions, &text, &everything()) {
            Ok(_) => prop_assert!(parsed.is_ok_and(|json| json.is_object())),
            Err(rejections) if is_syntax(&rejections.first) => prop_assert!(!parsed.is_ok_and(|json| json.is_object())),
            Err(_) => {}
        }
    }

    #[test]
    fn edits_change_nothing_else((route, body) in body(), named in any::<bool>()) {
        let policy = if named {
            Policy { metadata: Some(r#"{"k":"v"}"#.into()), ..policy() }
        } else {
            Policy::default()
        };
        let bytes = Bytes::from(body.clone());
        if let Ok(checked) = check(route, &bytes, &policy) {
            let pieces = checked.edits.pieces(&bytes);
                let sent: Json = serde_json::from_slice(&pieces.concat()).unwrap();
            prop_assert_eq!(sent, expected(route, &body, &policy), "{}", body);
            // What is sent would itself pass, and so holds no name twice.
            prop_assert!(check(route, &pieces.concat(), &policy).is_ok());
        }
    }

    #[test]
    fn no_name_is_there_twice((route, body) in body()) {
        match check(route, body.as_bytes(), &policy()) {
            Ok(_) => prop_assert!(!twice(&body), "{}", body),
            Err(rejections) if word(&rejections.first) == "duplicate" => prop_assert!(twice(&body), "{}", body),
            Err(_) => {}
        }
    }

    #[test]
    fn urls_are_found_however_deep(path in vec(select(vec!["[", "content", "nested", "tool_calls", "image_url", "source", "file", "text", "output"]), 0..6)) {
        let wrap = |value: &str| path.iter().fold(value.to_owned(), |inner, step| match *step {
            "[" => format!("[{inner}]"),
            name => format!("{{\"{name}\":{inner}}}"),
        });
        let body = |value: &str| format!(r#"{{"model":"m","messages":[{{"content":{}}}]}}"#, wrap(value));
        let [remote, inline] = ["http://e", "data:,e"].map(|url| {
            check(Route::ChatCompletions, body(&format!(r#"{{"url":"{url}"}}"#)).as_bytes(), &policy()).is_ok()
        });
        prop_assert!(!remote && inline);
    }
}
