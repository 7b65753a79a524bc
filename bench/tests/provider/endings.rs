//! Tests requests that do not end well, on the wire and in the ledger.

use std::{io, time::Duration};

use bench::upstream::{Ending, ScriptedUpstream};
use serde_json::Value;
use tokio::io::AsyncReadExt;

use crate::client::{CHAT, Mode, PATIENCE, ask, entry, joined, read, request, send};

#[tokio::test]
async fn a_cut_resets_the_connection() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let table = [
        ("fake-cut0", Mode::Whole, 0),
        ("fake-cut0", Mode::Streamed, 0),
        ("fake-cut3", Mode::Whole, 0),
        ("fake-cut3", Mode::Streamed, 3),
        ("fake-words2-cut9", Mode::Streamed, 2),
    ];
    for (seq, (model, mode, events)) in (1..).zip(table) {
        let reply = ask(&upstream, CHAT, model, mode).await;
        let kind = reply.ended.map_err(|error| error.kind());
        assert_eq!(kind, Err(io::ErrorKind::ConnectionReset), "{model} {mode:?}: {}", reply.text);
        assert_eq!(reply.text.is_empty(), model == "fake-cut0", "{model} {mode:?}: {}", reply.text);
        let sent = reply.text.matches("data: ").count();
        assert_eq!(sent, events + usize::from(events > 0), "the role and the words: {}", reply.text);
        let ending = entry(&upstream, seq).await.ending;
        assert!(
            matches!(ending, Ending::CutByScript { after_events, .. } if after_events == events),
            "{ending:?}"
        );
    }
}

#[tokio::test]
async fn an_error_in_the_middle_ends_cleanly() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let reply = ask(&upstream, CHAT, "fake-errmid3", Mode::Streamed).await;
    let events = reply.events();
    assert_eq!(joined(&events, "/choices/0/delta/content"), "Hello from the");
    assert!(events.last().unwrap().pointer("/error/message").is_some(), "{events:?}");
    assert!(!events.contains(&Value::Null) && reply.text.ends_with("0\r\n\r\n"), "{}", reply.text);
    assert!(reply.ended.is_ok());
    for path in ["/v1/responses", "/v1/messages"] {
        let reply = ask(&upstream, path, "fake-errmid1", Mode::Streamed).await;
        assert_eq!(reply.event_names().last(), Some(&"error"), "{path}");
        assert!(reply.events().last().unwrap().pointer("/error/message").is_some(), "{}", reply.text);
    }
    let whole = ask(&upstream, CHAT, "fake-errmid3", Mode::Whole).await;
    assert!(whole.text.starts_with("HTTP/1.1 500"), "{}", whole.text);
}

#[tokio::test]
async fn a_stall_sends_what_it_should_and_then_nothing() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let mut stream = send(&upstream, &request(CHAT, "fake-stall3", Mode::Streamed)).await;
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while let Ok(read) = tokio::time::timeout(Duration::from_millis(100), stream.read(&mut buffer)).await {
        let read = read.unwrap();
        assert!(read > 0, "the connection was closed after {text}");
        text += std::str::from_utf8(&buffer[..read]).unwrap();
    }
    assert_eq!(text.matches("data: ").count(), 4, "the role and three words: {text}");
    assert_eq!(upstream.ledger().last().unwrap().ending, Ending::Open);
    drop(stream);
    let ending = entry(&upstream, 1).await.ending;
    assert!(matches!(ending, Ending::ClientGone { after_events: 3, .. }), "{ending:?}");
}

#[tokio::test]
async fn a_client_that_leaves_sending_is_gone() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: u\r\ncontent-length: 100\r\n\r\n{\"mod";
    let client = send(&upstream, head).await;
    let whole = upstream.ledger().wait_for(1, Duration::from_millis(50)).await;
    assert!(
        whole.unwrap_err().to_string().contains("Arriving"),
        "a request that still arrives is not waited for"
    );
    drop(client);
    let entry = entry(&upstream, 1).await;
    assert!(matches!(entry.ending, Ending::ClientGone { after_events: 0, .. }), "{entry:?}");
    assert_eq!(entry.body, "{\"mod");
}

#[tokio::test]
async fn a_left_answer_is_generated_as_at_litellm() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let table = [
        ("fake-words9-gap60000ms", Mode::Whole, Some(9)),
        ("fake-words9-firstbyte60000ms", Mode::Whole, Some(9)),
        ("fake-words9-firstbyte60000ms", Mode::Streamed, Some(0)),
        ("fake-hang", Mode::Whole, None),
        ("fake-stall2", Mode::Whole, None),
    ];
    for (seq, (model, mode, output)) in (1..).zip(table) {
        let client = send(&upstream, &request(CHAT, model, mode)).await;
        upstream.ledger().wait_for(seq, PATIENCE).await.unwrap();
        drop(client);
        let entry = entry(&upstream, seq as u64).await;
        assert!(matches!(entry.ending, Ending::ClientGone { .. }), "{entry:?}");
        assert_eq!(entry.generated.map(|usage| usage.output), output, "{model} {mode:?}");
        assert_eq!(entry.reported, None);
    }
    // Control: a stream that is read to its end is generated whole.
    ask(&upstream, CHAT, "fake-words9", Mode::Streamed).await.ended.unwrap();
    assert_eq!(entry(&upstream, 6).await.generated.unwrap().output, 9);
}

#[tokio::test]
async fn a_stop_ends_everything_before_it_returns() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let (ledger, address) = (upstream.ledger(), upstream.address());
    let hanging = send(&upstream, &request(CHAT, "fake-hang", Mode::Whole)).await;
    let stalled = send(&upstream, &request(CHAT, "fake-stall2", Mode::Streamed)).await;
    ledger.wait_for(2, PATIENCE).await.unwrap();
    upstream.stop().await;
    let endings: Vec<_> = ledger.all().into_iter().map(|entry| entry.ending).collect();
    assert!(endings.iter().all(|ending| matches!(ending, Ending::UpstreamStopped { .. })), "{endings:?}");
    assert_eq!(read(hanging).await.text, "");
    assert!(!read(stalled).await.text.ends_with("0\r\n\r\n"), "a stop is not a clean end");
    ScriptedUpstream::start_on(address).await.unwrap();
}

#[tokio::test]
async fn answers_without_content_are_answers() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let head =
        read(send(&upstream, "HEAD /v1/models HTTP/1.1\r\nhost: u\r\nconnection: close\r\n\r\n").await).await;
    assert!(head.text.starts_with("HTTP/1.1 404"), "{}", head.text);
    for status in [204, 205, 304, 503] {
        ask(&upstream, CHAT, &format!("fake-status{status}"), Mode::Whole).await.ended.unwrap();
    }
    for seq in 1..=5 {
        let ending = entry(&upstream, seq).await.ending;
        assert!(matches!(ending, Ending::Answered { events: 0, .. }), "{seq}: {ending:?}");
    }
}
