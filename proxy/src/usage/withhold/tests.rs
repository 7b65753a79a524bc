//! What passes of streams, whatever pieces they come in.

use platform_core::route::Route;

use super::{super::Format, *};

const FINISH: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

const ALL: Look = Look { usage: true, errors: true };

fn scrub(_: &[u8]) -> Bytes {
    Bytes::from_static(b"data: an error\n\n")
}

/// What passes of `stream`, of which a meter has taken note, in pieces of `size` bytes.
fn passed(stream: &str, size: usize) -> String {
    let mut meter = Meter::new(Route::ChatCompletions, Format::Events);
    let mut withheld = Withheld::default();
    let mut all = Vec::new();
    for piece in stream.as_bytes().chunks(size).map(Bytes::copy_from_slice) {
        meter.feed(&piece, None);
        all.extend_from_slice(&withheld.follow(piece, (&meter, UsageIs::Ours), scrub));
    }
    all.extend_from_slice(&withheld.rest(scrub));
    String::from_utf8(all).unwrap()
}

#[test]
fn only_the_event_that_tells_nothing_but_usage_is_kept_back_however_it_is_split() {
    let error = "data: {\"choices\":[],\"usage\":{},\"error\":{\"message\":\"m\"}}\n\n";
    let with_text =
        "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"usage\":{\"prompt_tokens\":1}}\n\n";
    let of_litellm = USAGE.replace("[]", r#"[{"index":0,"delta":{"content":null},"text":""}]"#);
    let second_finish = of_litellm.replace("\"text\":\"\"", "\"finish_reason\":\"stop\"");
    let comment = ": keep-alive\n\n";
    // OpenAI's has no choices, LiteLLM's one that says nothing.
    let litellm = USAGE.replace("[]", "[{\"index\":0,\"delta\":{}}]");
    let last_words = USAGE.replace("[]", "[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]");
    let known = "data: {\"model\":\"m\",\"choices\":[]}\n\n";
    let crlf = USAGE.replace('\n', "\r\n");
    let cases = [
        (format!("{FINISH}{USAGE}{DONE}"), format!("{FINISH}{DONE}")),
        // Before the finish, and behind a blank line of which a CR came alone.
        (format!("{USAGE}{FINISH}{DONE}"), format!("{FINISH}{DONE}")),
        (format!("{}{crlf}{DONE}", FINISH.replace('\n', "\r\n")), FINISH.replace('\n', "\r\n") + DONE),
        // Blank lines belong to no event, however many.
        (format!("\n\n\n{error}\r\r\n\r{DONE}"), format!("\n\n\ndata: an error\n\n\r\r\n\r{DONE}")),
        // The model is known, and the event speaks beside its error.
        (
            format!("{known}{}{error}{DONE}", with_text.replace("\"usage\"", "\"error\"")),
            format!("{known}data: an error\n\ndata: an error\n\n{DONE}"),
        ),
        (format!("{FINISH}{crlf}{DONE}"), format!("{FINISH}{DONE}")),
        (format!("{FINISH}{error}{DONE}"), format!("{FINISH}data: an error\n\n{DONE}")),
        (format!("{FINISH}{}", error.trim_end()), format!("{FINISH}data: an error\n\n")),
        ("event: error\r\ndata: secret\r\n\r\n".to_owned(), "data: an error\n\n".to_owned()),
        (format!("{FINISH}{of_litellm}{DONE}"), format!("{FINISH}{DONE}")),
        (format!("{FINISH}{second_finish}{DONE}"), format!("{FINISH}{second_finish}{DONE}")),
        (format!("{FINISH}{litellm}{DONE}"), format!("{FINISH}{DONE}")),
        (format!("{FINISH}{last_words}{DONE}"), format!("{FINISH}{last_words}{DONE}")),
        (format!("{with_text}{comment}{DONE}"), format!("{with_text}{comment}{DONE}")),
        (format!("{FINISH}data: {{\"choices\":[]"), format!("{FINISH}data: {{\"choices\":[]")),
    ];
    for (stream, expected) in cases {
        for size in 1..=stream.len() {
            assert_eq!(passed(&stream, size), expected, "in pieces of {size}");
        }
    }
}

#[test]
fn what_does_not_end_is_not_held_for_ever() {
    let mut withheld = Withheld::default();
    assert_eq!(withheld.pass(&vec![b'x'; LONGEST], ALL, scrub).len(), 0);
    assert_eq!(withheld.pass(b"y", ALL, scrub).len(), LONGEST + 1 - END);
    assert!(!withheld.leaves_whole_events());
    assert_eq!(withheld.rest(scrub).len(), END);
}

#[test]
fn what_becomes_of_an_overlong_event_does_not_depend_on_how_it_is_split() {
    let pad = "x".repeat(40);
    // Held whole, each would be judged otherwise: as usage, as an event that tells of no error.
    let usage = format!(": {pad}\r\n{}", USAGE.replace('\n', "\r\n"));
    let quoted = format!("data: {{\"choices\":[{{\"error\":1,\"x\":\"{pad}{pad}\"}}]}}\n\n");
    for (long, expected) in [(&usage, usage.as_str()), (&quoted, "data: an error\n\n")] {
        let stream = format!("{long}{USAGE}{DONE}");
        for size in 1..=stream.len() {
            // The second event may be held, the first not.
            let mut withheld = Withheld::bounded(USAGE.len());
            let mut all = Vec::new();
            for piece in stream.as_bytes().chunks(size) {
                all.extend_from_slice(&withheld.pass(piece, ALL, scrub));
                assert!(withheld.held.len() <= USAGE.len(), "in pieces of {size}");
            }
            all.extend_from_slice(&withheld.rest(scrub));
            assert_eq!(String::from_utf8(all).unwrap(), format!("{expected}{DONE}"), "in pieces of {size}");
        }
    }
}

#[test]
fn of_an_overlong_event_nothing_passes_if_it_seems_to_tell_of_an_error() {
    let long = "x".repeat(2 * LONGEST);
    let harmless = format!("data: {{\"error\" : null,\"text\":\"{long}\"}}\n\n");
    for (event, expected) in [
        (format!("data: {{\"error\":{{\"message\":\"{long}\"}}}}\n\n"), "data: an error\n\n"),
        (format!("event: error\ndata: {long}\r\n\r\n"), "data: an error\n\n"),
        (format!("data: {{\"type\":\"error\",\"message\":\"{long}\"}}\n\n"), "data: an error\n\n"),
        (harmless.clone(), harmless.as_str()),
    ] {
        for size in [1, 2, 7, LONGEST - 1, LONGEST + 1, event.len() - 1, event.len() + 1] {
            let passed = passed(&format!("{event}{DONE}"), size);
            assert!(
                passed == format!("{expected}{DONE}"),
                "in pieces of {size}: {}",
                &passed[..99.min(passed.len())]
            );
        }
    }
}
