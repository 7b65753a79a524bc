//! Each directive that changes what is said, reported or waited for.

use std::time::{Duration, Instant};

use bench::upstream::ScriptedUpstream;
use serde_json::{Value, json};

use crate::client::{CHAT, Mode, ask, joined, read, send, with_body};

const ANSWER: &str = "/choices/0/message/content";

#[tokio::test]
async fn the_answer_is_as_long_as_asked_or_an_echo() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let big = ask(&upstream, CHAT, "fake-big200k", Mode::Whole).await.json();
    assert_eq!(big.pointer(ANSWER).and_then(Value::as_str).map(str::len), Some(204_800));
    let words = ask(&upstream, CHAT, "fake-words50", Mode::Whole).await.json();
    assert_eq!(words.pointer("/usage/completion_tokens"), Some(&json!(50)));
    let body = json!({ "model": "fake-echo", "stream": true, "messages": [{ "role": "user", "content": "no" },
        { "role": "user", "content": "  say\n\nthis " }, { "role": "assistant", "content": "not this" }] });
    let echo = read(send(&upstream, &with_body(CHAT, &body.to_string())).await).await;
    assert_eq!(joined(&echo.events(), "/choices/0/delta/content"), "  say\n\nthis ");
}

#[tokio::test]
async fn figures_are_told_or_withheld() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let whole = ask(&upstream, CHAT, "fake-cost", Mode::Whole).await;
    assert!(whole.text.contains("x-litellm-response-cost: 2.1e-05\r\n"), "{}", whole.text);
    assert_eq!(whole.json().pointer("/usage/cost"), Some(&json!(2.1e-5)));

    let streamed = ask(&upstream, CHAT, "fake-cost", Mode::Streamed).await;
    assert!(!streamed.text.contains("x-litellm-response-cost"), "{}", streamed.text);
    assert!(streamed.events().iter().any(|event| event.pointer("/usage/cost") == Some(&json!(2.1e-5))));

    let free = ask(&upstream, CHAT, "fake-nousage-cost", Mode::Whole).await;
    assert!(free.text.contains("x-litellm-response-cost: 2.1e-05\r\n"), "{}", free.text);
    for path in [CHAT, "/v1/completions", "/v1/messages", "/v1/embeddings"] {
        for mode in [Mode::Whole, Mode::Streamed] {
            let reply = ask(&upstream, path, "fake-nousage", mode).await;
            assert!(!reply.text.contains("_tokens"), "{path} {mode:?}: {}", reply.text);
        }
    }
}

#[tokio::test]
async fn pauses_are_where_the_script_wants_them() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let begun = Instant::now();
    let reply = ask(&upstream, CHAT, "fake-words1-gap20ms", Mode::Streamed).await;
    let events = u32::try_from(reply.events().len()).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(20) * events, "{events} in {:?}", begun.elapsed());

    let begun = Instant::now();
    let stream =
        send(&upstream, &crate::client::request(CHAT, "fake-firstbyte50ms-stall0", Mode::Streamed)).await;
    stream.readable().await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(50), "headers after {:?}", begun.elapsed());
}

#[tokio::test]
async fn statuses_have_the_error_object_of_their_api() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    for status in [401, 402, 429, 500, 529] {
        for (path, kind) in [(CHAT, None), ("/v1/messages", Some("error"))] {
            let reply = ask(&upstream, path, &format!("fake-status{status}"), Mode::Streamed).await;
            assert!(reply.text.starts_with(&format!("HTTP/1.1 {status}")), "{}", reply.text);
            assert_eq!(reply.text.contains("retry-after: 7\r\n"), status == 429, "{}", reply.text);
            let body = reply.json();
            assert_eq!(body.get("type").and_then(Value::as_str), kind, "{body}");
            assert!(body.pointer("/error/message").is_some(), "{body}");
        }
    }
    let reply = ask(&upstream, CHAT, "fake-toolong", Mode::Streamed).await;
    assert!(reply.text.starts_with("HTTP/1.1 400"), "{}", reply.text);
    assert!(reply.text.contains("maximum context length"), "{}", reply.text);
}
