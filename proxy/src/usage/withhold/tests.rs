//! Checks what passes of streams, whatever pieces they come in.

use std::fs;

use proptest::prelude::*;

use super::*;

const CHAT: Route = Route::ChatCompletions;
const FINISH: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n";
const DONE: &str = "data: [DONE]\n\n";
const TOLD: &str = "data: an error\n\n";
const KEY: &str = "sk-own-0123456789abcdef";

fn redact(_: &[u8]) -> Bytes {
    Bytes::from_static(TOLD.as_bytes())
}

fn withheld(route: Route, longest: usize) -> EventFilter {
    EventFilter::bounded(route, Arc::new(Mask::of([KEY].into_iter())), longest)
}

/// Returns the bytes of `stream` that pass, in pieces of `size` bytes; its usage was not requested.
fn passed_of(mut withheld: EventFilter, stream: &[u8], size: usize) -> Vec<u8> {
    let mut all = Vec::new();
    for piece in stream.chunks(size).map(Bytes::copy_from_slice) {
        all.extend_from_slice(&withheld.follow(piece, UsageEventFor::Sluicegate, redact));
        assert!(withheld.held.len() <= withheld.longest.max(overlong_end()), "in pieces of {size}");
    }
    all.extend_from_slice(&withheld.rest(redact));
    all
}

/// Returns the bytes that an overlong event leaves behind.
const fn overlong_end() -> usize {
    4
}

fn passed(stream: &str, size: usize) -> String {
    String::from_utf8(passed_of(withheld(CHAT, MAX_HELD), stream.as_bytes(), size)).unwrap()
}

fn text_event(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

#[test]
fn usage_that_was_not_asked_for_is_dropped() {
    let with_text =
        "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"usage\":{\"prompt_tokens\":1}}\n\n";
    let of_litellm = USAGE.replace("[]", r#"[{"index":0,"delta":{"content":null},"text":""}]"#);
    let second_finish = of_litellm.replace("\"text\":\"\"", "\"finish_reason\":\"stop\"");
    // OpenAI's has no choices, LiteLLM's one that has no text.
    let litellm = USAGE.replace("[]", "[{\"index\":0,\"delta\":{}}]");
    let last_words = USAGE.replace("[]", "[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]");
    let crlf = USAGE.replace('\n', "\r\n");
    let cases = [
        (format!("{FINISH}{USAGE}{DONE}"), format!("{FINISH}{DONE}")),
        // Before the finish, and behind a blank line of which a CR came alone.
        (format!("{USAGE}{FINISH}{DONE}"), format!("{FINISH}{DONE}")),
        (format!("{}{crlf}{DONE}", FINISH.replace('\n', "\r\n")), FINISH.replace('\n', "\r\n") + DONE),
        (format!("{FINISH}{crlf}{DONE}"), format!("{FINISH}{DONE}")),
        (format!("{FINISH}{of_litellm}{DONE}"), format!("{FINISH}{DONE}")),
        (format!("{FINISH}{second_finish}{DONE}"), format!("{FINISH}{second_finish}{DONE}")),
        (format!("{FINISH}{litellm}{DONE}"), format!("{FINISH}{DONE}")),
        (format!("{FINISH}{last_words}{DONE}"), format!("{FINISH}{last_words}{DONE}")),
        (format!("{with_text}{DONE}"), format!("{with_text}{DONE}")),
        (format!("{FINISH}data: {{\"choices\":[]"), format!("{FINISH}data: {{\"choices\":[]")),
    ];
    for (stream, expected) in cases {
        for size in 1..=stream.len() {
            assert_eq!(passed(&stream, size), expected, "in pieces of {size}");
        }
    }
}

#[test]
fn foreign_events_are_replaced() {
    let error = "data: {\"choices\":[],\"usage\":{},\"error\":{\"message\":\"m\"}}\n\n";
    let foreign = [
        error,
        "event: error\r\ndata: {\"choices\":[]}\r\n\r\n",
        "event: Error\ndata: x\n\n",
        "data: {\"error\":\"x\"}\n\n",
        "data: {\"Error\":\"x\",\"choices\":[]}\n\n",
        "data: {\"detail\":\"x\",\"choices\":[]}\n\n",
        "data: {\"errors\":[\"x\"],\"choices\":[]}\n\n",
        "data: {\"\\u0065rror\":\"x\",\"choices\":[]}\n\n",
        "data: {\"choices\":[{\"error\":\"x\"}]}\n\n",
        "data: {\"choices\":[\"x\"]}\n\n",
        "data: {\"choices\":\"x\"}\n\n",
        "data: {\"choices\":[{\"delta\":\"x\"}]}\n\n",
        "data: {\"choices\":[],\"error\":\ndata: \"x\"}\n\n",
        "data: {'error': 'x'}\n\n",
        "data: x\n\n",
        "data: {\"choices\":[]} x\n\n",
        "data: {\"choices\":[],\"id\":x}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}x\n\n",
        "data: {\"message\":\"x\"}\n\n",
        "data: [\"x\"]\n\n",
        "data: \"x\"\n\n",
        "x\n\n",
        "{\"error\":\"x\"}\n\n",
        "data\u{feff}: {\"error\":\"x\"}\n\n",
    ];
    for event in foreign {
        let stream = format!("{FINISH}{event}{DONE}");
        let expected = format!("{FINISH}{TOLD}{DONE}");
        for size in 1..=stream.len() {
            assert_eq!(passed(&stream, size), expected, "in pieces of {size}");
        }
        let unended = event.trim_end();
        assert_eq!(passed(&format!("{FINISH}{unended}"), 7), format!("{FINISH}{TOLD}"), "{unended}");
    }
}

#[test]
fn lines_that_clients_ignore_do_not_pass() {
    let event = text_event("x");
    let cases = [
        (": sk-abc\n\n".to_owned(), ":\n\n".to_owned()),
        (format!(":sk\r\n: x\r\n{event}"), format!(":\r\n:\r\n{event}")),
        (format!("id: 17\nretry: 10\n{event}"), format!("id: 17\nretry: 10\n{event}")),
        (format!("id: sk-abc\nretry: soon\nx: y\nz\n{event}"), event.clone()),
        (format!("event: delta\n{event}"), format!("event: delta\n{event}")),
        (format!("\u{feff}{event}"), format!("\u{feff}{event}")),
        (format!("\n\n\n{event}\r\r\n\r{DONE}"), format!("\n\n\n{event}\r\r\n\r{DONE}")),
        ("data\ndata:\n\n".to_owned(), TOLD.to_owned()),
        ("data:\n\n".to_owned(), "data:\n\n".to_owned()),
    ];
    for (stream, expected) in cases {
        for size in 1..=stream.len() {
            assert_eq!(passed(&stream, size), expected, "in pieces of {size}");
        }
    }
}

/// Returns the recorded streams with their routes.
fn recorded() -> Vec<(String, Route, Vec<u8>)> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/streams");
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let streams = files.filter(|path| path.extension().is_some_and(|it| it == "sse"));
    let streams = streams.map(|path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let routes = [
            ("completions", Route::Completions),
            ("chat", CHAT),
            ("responses", Route::Responses),
            ("messages", Route::Messages),
        ];
        let route = routes.into_iter().find(|(word, _)| name.contains(word)).unwrap().1;
        (name, route, fs::read(path).unwrap())
    });
    streams.collect()
}

#[test]
fn recorded_streams_pass_as_they_came() {
    let errors = ["error", "failed", "broken", "overloaded"];
    for (name, route, stream) in recorded() {
        let stream = String::from_utf8(stream).unwrap().replace(": ping", ":").replace(": keep-alive", ":");
        for size in [1, 7, 100, stream.len()] {
            let mut withheld = withheld(route, MAX_HELD);
            let mut all = Vec::new();
            for piece in stream.as_bytes().chunks(size) {
                let piece = Bytes::copy_from_slice(piece);
                all.extend_from_slice(&withheld.follow(piece, UsageEventFor::Agent, redact));
            }
            all.extend_from_slice(&withheld.rest(redact));
            let all = String::from_utf8(all).unwrap();
            if errors.iter().any(|word| name.contains(word)) {
                assert!(withheld.has_failed() && all.contains("an error"), "{name}");
            } else if name.contains("cut") {
                assert!(stream.starts_with(all.trim_end_matches(TOLD)), "{name}");
            } else {
                assert_eq!(all, stream, "{name} in pieces of {size}");
            }
        }
    }
}

#[test]
fn an_event_that_came_whole_is_not_copied() {
    let mut withheld = withheld(CHAT, MAX_HELD);
    for text in ["a", "bc", "quotes \\\"", " of", "s"] {
        let piece = Bytes::from(text_event(text) + &text_event("and"));
        let passed = withheld.follow(piece.clone(), UsageEventFor::Agent, redact);
        assert_eq!((passed.as_ptr(), passed.len()), (piece.as_ptr(), piece.len()), "{text}");
    }
}

#[test]
fn an_overlong_event_is_judged_as_it_passes() {
    let long = "x".repeat(2 * MAX_HELD);
    let tools = format!("{{\"tools\":[{{\"error\":1}}],\"delta\":\"{long}\"}}");
    let harmless = format!("data: {{\"choices\":[],\"error\" : null,\"t\":{tools}}}\n\n");
    let cut = |event: &str| format!("{}\n\n{TOLD}", event.split_once("\"sk-1").unwrap().0);
    let behind = format!("data: {{\"choices\":[],\"text\":\"{long}\",\"error\":\"sk-1\",\"x\":\"y\"}}\n\n");
    for (event, expected) in [
        (format!("data: {{\"error\":{{\"message\":\"{long}\"}}}}\n\n"), TOLD.to_owned()),
        (format!("event: error\ndata: {long}\r\n\r\n"), TOLD.to_owned()),
        (format!("data: {{\"type\":\"error\",\"choices\":[],\"message\":\"{long}\"}}\n\n"), TOLD.to_owned()),
        (long.clone() + "\n\n", TOLD.to_owned()),
        (harmless.clone(), harmless.clone()),
        (harmless.replace('\n', "\r\n"), harmless.replace('\n', "\r\n")),
        (behind.clone(), cut(&behind)),
    ] {
        for size in [1, 2, 7, MAX_HELD - 1, MAX_HELD + 1, event.len() - 1, event.len() + 1] {
            let passed = passed(&format!("{event}{DONE}"), size);
            let expected = format!("{expected}{DONE}");
            assert!(
                passed == expected,
                "in pieces of {size}: {}",
                &passed[passed.len().saturating_sub(99)..]
            );
        }
    }
}

#[test]
fn an_overlong_event_ends_what_has_begun() {
    let begun = &KEY[..KEY.len() - 3];
    let long = text_event(&"x".repeat(2 * MAX_HELD));
    let stream = format!("{}{}", text_event(begun), long.replacen('x', &KEY[KEY.len() - 3..], 1));
    for size in [40, MAX_HELD + 1, stream.len()] {
        let passed = passed(&stream, size);
        assert!(
            !passed.contains(begun) && passed.starts_with(&text_event(&"*".repeat(begun.len()))),
            "{size}"
        );
    }
    let control = passed(&text_event(begun), 40);
    assert_eq!(control, text_event(begun), "it was none");
}

#[test]
fn a_long_number_is_echoed_with_all_its_digits() {
    let digits = "9".repeat(3 * 49);
    for (number, good) in [
        (digits.clone(), true),
        (format!("-{digits}.5e+9"), true),
        (format!("{digits}x"), false),
        (format!("{digits}-x"), false),
        ("n".repeat(60), false),
    ] {
        let event = format!("data: {{\"choices\":[],\"tools\":{{\"maximum\":{number}}}}}\n\n");
        for size in [1, 7, 48, 49, event.len()] {
            let expected = if good { &event } else { TOLD };
            assert_eq!(passed(&event, size), expected, "in pieces of {size}");
        }
        let answer = format!("{{\"tools\":[{number}],\"id\":\"a\"}}");
        assert_eq!(is_document(&answer, 5), good, "{number}");
    }
    let index = format!("data: {{\"choices\":[{{\"index\":{digits}}}]}}\n\n");
    assert_eq!(passed(&index, 9), TOLD, "an index decides");
}

/// Returns whether `answer` is taken for one, in pieces of `size` bytes.
fn is_document(answer: &str, size: usize) -> bool {
    let mut document = DocumentFilter::new(Arc::new(Mask::default()));
    let mut all = Vec::new();
    for piece in answer.as_bytes().chunks(size).map(Bytes::copy_from_slice) {
        all.extend_from_slice(&document.follow(piece));
    }
    all.extend_from_slice(&document.rest());
    assert_eq!(all, answer.as_bytes());
    document.is_answer()
}

#[test]
fn a_blank_line_in_pieces_is_no_part_of_an_event() {
    let stream = "\r3 is not a field\n\n";
    for size in 1..=stream.len() {
        assert_eq!(passed(stream, size), format!("\r{TOLD}"), "in pieces of {size}");
    }
}

#[test]
fn a_byte_order_mark_may_come_in_pieces() {
    let answer = "\u{feff}{\"id\":\"a\"}";
    for size in 1..=answer.len() {
        assert!(is_document(answer, size), "in pieces of {size}");
        assert!(!is_document(&format!("\u{feff}{answer}"), size), "it stands once");
    }
}

#[test]
fn an_endless_event_is_not_held_for_ever() {
    let mut withheld = withheld(CHAT, MAX_HELD);
    let begin = "data: {\"choices\":[],\"x\":\"";
    let piece = begin.to_owned() + &"x".repeat(MAX_HELD - begin.len());
    assert_eq!(withheld.follow(piece.into(), UsageEventFor::Sluicegate, redact).len(), 0);
    assert_eq!(withheld.follow("y".into(), UsageEventFor::Sluicegate, redact).len(), MAX_HELD + 1);
    assert!(!withheld.leaves_whole_events());
}

/// Returns the text that a client reads in a chat.
fn joined(stream: &[u8]) -> String {
    let text = String::from_utf8_lossy(stream);
    let events = text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok());
    events
        .map(|event: serde_json::Value| {
            event["choices"][0]["delta"]["content"].as_str().unwrap_or_default().to_owned()
        })
        .collect()
}

fn json_escaped(text: &str, every: usize) -> String {
    let escape = |(at, letter): (usize, char)| match at % every {
        0 => format!("\\u{:04x}", u32::from(letter)),
        _ => letter.to_string(),
    };
    text.chars().enumerate().map(escape).collect()
}

#[test]
fn a_secret_over_several_events_is_masked() {
    for parts in 1..=KEY.len() {
        let texts: Vec<_> = KEY.as_bytes().chunks(parts).map(|part| str::from_utf8(part).unwrap()).collect();
        for between in ["", ":\n\n", "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"s\"}}]}\n\n"]
        {
            let stream: String = texts.iter().map(|text| text_event(text) + between).collect();
            let stream = format!("{}{stream}{}{DONE}", text_event("It is "), text_event(" I think"));
            for size in [1, 40, stream.len()] {
                let all = passed_of(withheld(CHAT, MAX_HELD), stream.as_bytes(), size);
                let text = joined(&all);
                assert!(!text.contains(KEY) && text.contains('*') && text.contains("I think"), "{text}");
                let half = KEY.len().div_ceil(2);
                assert!(!text.contains(&KEY[..half]), "more than half in clear: {text}");
                assert!(!text.contains(&KEY[KEY.len() - half..]), "more than half in clear: {text}");
                assert_eq!(all.len(), stream.len());
            }
            assert!(
                joined(stream.as_bytes()).replace('s', "").contains(&KEY.replace('s', "")),
                "the control"
            );
        }
    }
}

#[test]
fn only_half_a_secret_makes_an_event_wait() {
    let mut withheld = withheld(CHAT, MAX_HELD);
    let mut follow = |text: &str| withheld.follow(text_event(text).into(), UsageEventFor::Agent, redact);
    for text in ["thi", "s", " k", "s", "k-own-0", "s"] {
        assert_eq!(follow(text), text_event(text), "{text}");
    }
    let begun = &KEY[..KEY.len() - 1];
    assert_eq!(follow(begun), "");
    assert_eq!(follow("x"), text_event(begun) + &text_event("x"), "it was none");
    assert_eq!(follow(begun), "");
    let rest = withheld.rest(redact);
    assert_eq!(rest, text_event(begun), "the stream ends");
}

#[test]
fn other_texts_that_clients_join_are_watched() {
    let arguments = |text: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\"{text}\"}}}}]}}}}]}}\n\n"
        )
    };
    let message = |text: &str| {
        format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
        )
    };
    let response = |text: &str| {
        format!(
            "data: {{\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"{text}\"}}\n\n"
        )
    };
    let (first, second) = KEY.split_at(12);
    for (route, stream) in [
        (CHAT, arguments(first) + &arguments(second)),
        (Route::Messages, message(first) + &message(second)),
        (Route::Responses, response(first) + &response(second)),
    ] {
        let all = passed_of(withheld(route, MAX_HELD), stream.as_bytes(), 50);
        let all = String::from_utf8(all).unwrap();
        assert!(!all.contains(first) && !all.contains(second), "{route:?}: {all}");
        assert!(!withheld(route, MAX_HELD).has_failed());
    }
}

proptest! {
    #[test]
    fn no_split_of_a_stream_lets_a_secret_pass(
        before in "[sk\\-own0-9 ]{0,30}",
        every in 1_usize..30,
        cuts in proptest::collection::vec(1_usize..9, 1..40),
        size in 1_usize..200,
    ) {
        let whole = format!("{before}{KEY} and on");
        let mut texts = Vec::new();
        let (mut rest, mut cuts) = (&whole[..], cuts.into_iter().cycle());
        while !rest.is_empty() {
            let (text, after) = rest.split_at(cuts.next().unwrap().min(rest.len()));
            texts.push(text_event(&json_escaped(text, every)));
            rest = after;
        }
        let stream = texts.concat() + DONE;
        let all = passed_of(withheld(CHAT, MAX_HELD), stream.as_bytes(), size);
        let text = joined(&all);
        prop_assert!(!text.contains(KEY), "{}", text);
        prop_assert!(joined(stream.as_bytes()).contains(KEY), "the control");
        prop_assert_eq!(all.len(), stream.len());
    }

    #[test]
    fn a_stream_without_a_secret_is_not_delayed(texts in proptest::collection::vec("[a-z \\\\n]{0,12}", 1..20)) {
        let mut withheld = withheld(CHAT, MAX_HELD);
        for text in texts {
            let event = text_event(serde_json::to_string(&text).unwrap().trim_matches('"'));
            let passed = withheld.follow(event.clone().into(), UsageEventFor::Agent, redact);
            prop_assert_eq!(passed, event);
        }
    }
}
