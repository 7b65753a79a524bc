//! Checks what is sent in the place of what came.

use bytes::Bytes;

use super::*;

fn sent(route: Route, body: &str, policy: &Policy) -> String {
    let bytes = Bytes::copy_from_slice(body.as_bytes());
    let checked = check(route, &bytes, policy).unwrap();
    let pieces = checked.edits.pieces(&bytes);
    String::from_utf8(pieces.concat()).unwrap()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn goldens() {
    let rows = [
        (Route::ChatCompletions, r#"{"model":"m"}"#, r#"{"model":"m"}"#),
        (Route::ChatCompletions, r#"{"model":"m","user":"victim"}"#, r#"{"model":"m","user":"acct-1"}"#),
        (
            Route::ChatCompletions,
            r#"{ "user" : {"a":[1]} , "model":"m"}"#,
            r#"{ "user" : "acct-1" , "model":"m"}"#,
        ),
        (Route::ChatCompletions, r#"{"metadata":{"a":1},"model":"m"}"#, r#"{"model":"m"}"#),
        (
            Route::ChatCompletions,
            r#"{"metadata":1, "safety_identifier":2 , "model":"m"}"#,
            r#"{"model":"m"}"#,
        ),
        (
            Route::ChatCompletions,
            r#"{"model":"m", "metadata":1,"safety_identifier":2 }"#,
            r#"{"model":"m" }"#,
        ),
        (
            Route::ChatCompletions,
            r#"{"metadata":1,"n":1,"model":"m","safety_identifier":2,"seed":3}"#,
            r#"{"n":1,"model":"m","seed":3}"#,
        ),
        (
            Route::Responses,
            r#"{"client_metadata":{"session_id":"s"},"model":"m","input":"a"}"#,
            r#"{"store":false,"model":"m","input":"a"}"#,
        ),
        (Route::ChatCompletions, r#"{"model":"m","store":true}"#, r#"{"model":"m","store":false}"#),
        (Route::ChatCompletions, r#"{"model":"m","store":null}"#, r#"{"model":"m","store":null}"#),
        (
            Route::ChatCompletions,
            r#"{"stream":true,"model":"m"}"#,
            r#"{"stream_options":{"include_usage":true},"stream":true,"model":"m"}"#,
        ),
        (
            Route::ChatCompletions,
            r#"{"stream_options":{},"stream":true,"model":"m"}"#,
            r#"{"stream_options":{"include_usage":true},"stream":true,"model":"m"}"#,
        ),
        (
            Route::ChatCompletions,
            r#"{"stream_options":null,"stream":true,"model":"m"}"#,
            r#"{"stream_options":{"include_usage":true},"stream":true,"model":"m"}"#,
        ),
        (
            Route::ChatCompletions,
            r#"{"stream_options":{ "include_obfuscation":false},"stream":true,"model":"m"}"#,
            r#"{"stream_options":{"include_usage":true, "include_obfuscation":false},"stream":true,"model":"m"}"#,
        ),
        (
            Route::ChatCompletions,
            r#"{"stream_options":{"include_usage": false },"stream":true,"model":"m"}"#,
            r#"{"stream_options":{"include_usage": true },"stream":true,"model":"m"}"#,
        ),
        (
            Route::ChatCompletions,
            r#"{"stream_options":{"include_usage":true},"stream":true,"model":"m"}"#,
            r#"{"stream_options":{"include_usage":true},"stream":true,"model":"m"}"#,
        ),
        (
            Route::ChatCompletions,
            r#"{"stream_options":{"include_usage":false},"stream":false,"model":"m"}"#,
            r#"{"stream_options":{"include_usage":false},"stream":false,"model":"m"}"#,
        ),
        (
            Route::Completions,
            r#"{"model":"m","stream":true}"#,
            r#"{"stream_options":{"include_usage":true},"model":"m","stream":true}"#,
        ),
        (Route::Responses, r#"{"model":"m","stream":true}"#, r#"{"store":false,"model":"m","stream":true}"#),
        (Route::Responses, r#"{"model":"m","store":null}"#, r#"{"model":"m","store":false}"#),
        (Route::Responses, r#"{"model":"m","store": true}"#, r#"{"model":"m","store": false}"#),
        (Route::Messages, r#"{"model":"m","stream":true}"#, r#"{"model":"m","stream":true}"#),
        (
            Route::Messages,
            r#"{"model":"m","metadata":{"user_id":"v"}}"#,
            r#"{"model":"m","metadata":{"user_id":"acct-1"}}"#,
        ),
        (Route::CountTokens, r#"{"model":"m"}"#, r#"{"model":"m"}"#),
        (Route::InputTokens, r#"{"model":"m","input":"a"}"#, r#"{"model":"m","input":"a"}"#),
        (Route::Compact, r#"{"model":"m","input":"a"}"#, r#"{"model":"m","input":"a"}"#),
        (Route::Embeddings, r#"{"model":"m","input":"a"}"#, r#"{"model":"m","input":"a"}"#),
    ];
    for (route, body, expected) in rows {
        assert_eq!(sent(route, body, &policy()), expected, "{body}");
    }
}

#[test]
fn without_a_user_nobody_is_named() {
    let unattributed_run = Policy::default();
    let body = r#"{"user":"a","model":"m","metadata":{"user_id":"b"},"safety_identifier":"c"}"#;
    assert_eq!(sent(Route::ChatCompletions, body, &unattributed_run), r#"{"model":"m"}"#);
    assert_eq!(
        sent(Route::Messages, r#"{"metadata":{"user_id":"b"},"model":"m"}"#, &unattributed_run),
        r#"{"model":"m"}"#
    );
}

#[test]
fn what_was_asked_is_told() {
    let body = r#"{"model":"m2","stream":true,"stream_options":{"include_usage":true},"n":2,"max_tokens":7,"max_completion_tokens": 9 }"#;
    let checked = check(Route::ChatCompletions, body.as_bytes(), &policy()).unwrap();
    assert_eq!((&*checked.model, checked.stream, checked.usage_asked), ("m2", true, true));
    let value = |count: &Option<Count>| count.as_ref().and_then(|count| count.value);
    let sizes = &checked.sizes;
    assert_eq!([value(&sizes.max_tokens), value(&sizes.n)], [Some(7), Some(2)]);
    let at = checked.sizes.max_completion_tokens.unwrap().at;
    assert_eq!(&body[at], "9");
}

/// The next step of a call limits its answer by such edits.
#[test]
fn a_cap_can_be_lowered_or_added() {
    let body = Bytes::from_static(br#"{"model":"m","max_tokens":null}"#);
    let mut checked = check(Route::Messages, &body, &policy()).unwrap();
    let at = checked.sizes.max_tokens.clone().unwrap().at;
    checked.edits.replace(at.clone(), Bytes::from_static(b"5"));
    checked.edits.replace(at, Bytes::from_static(b"4"));
    let whole = String::from_utf8(checked.edits.pieces(&body).concat()).unwrap();
    assert_eq!(whole, r#"{"model":"m","max_tokens":4}"#);
    let mut checked = check(Route::CountTokens, b"{\"model\":\"m\"}", &policy()).unwrap();
    checked.edits.insert("max_tokens", b"3");
    let whole = checked.edits.pieces(&Bytes::from_static(b"{\"model\":\"m\"}")).concat();
    assert_eq!(whole, br#"{"max_tokens":3,"model":"m"}"#);
}
