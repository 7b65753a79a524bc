//! Tests the boundary between two requests on a connection. A request that two readers could read differently is
//! refused (RFC 9112). The upstream never sees a client's framing at all.

use std::time::Duration;

use harness::{World, agent::Answering, agent::chat_body};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

/// Sends `bytes`, and returns what comes back until the connection is closed or quiet.
async fn sent(agent: &harness::Agent, bytes: &[u8]) -> String {
    let mut wire = agent.connect().await.unwrap();
    // One that closes while we write has answered.
    drop(wire.write_all(bytes).await);
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(Ok(length @ 1..)) = timeout(Duration::from_millis(400), wire.read(&mut piece)).await {
        answer.extend_from_slice(&piece[..length]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// Builds a chat request with these lines in the place of its framing, and `body` behind them.
fn framed(lines: &str, body: &str) -> Vec<u8> {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n{lines}\r\n{body}"
    )
    .into_bytes()
}

pub(crate) fn attacks(body: &str) -> Vec<(&'static str, Vec<u8>)> {
    let length = body.len();
    let chunk = format!("{length:x}\r\n{body}\r\n0\r\n\r\n");
    let with = |lines: &str| framed(&format!("content-length: {length}\r\n{lines}"), body);
    vec![
        ("two lengths", with(&format!("content-length: {}\r\n", length + 1))),
        ("two lengths in one", framed(&format!("content-length: {length}, {}\r\n", length + 1), body)),
        ("length with a sign", framed(&format!("content-length: +{length}\r\n"), body)),
        ("chunked is not last", framed("transfer-encoding: chunked, identity\r\n", &chunk)),
        ("an encoding nobody knows", framed("transfer-encoding: xchunked\r\n", &chunk)),
        ("chunked twice", framed("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n", &chunk)),
        ("a folded line", with("x-a: b\r\n c\r\n")),
        ("a blank before the colon", with("x-a : b\r\n")),
        ("a line without a colon", with("x-a\r\n")),
        ("a null in a value", with("x-a: b\0c\r\n")),
        ("a bare carriage return", with("x-a: b\rx-b: c\r\n")),
        ("two hosts", with("host: b\r\n")),
        (
            "no host",
            format!("POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{body}").into(),
        ),
        ("a size of a chunk that is none", framed("transfer-encoding: chunked\r\n", &format!("0x{chunk}"))),
        ("a negative chunk", framed("transfer-encoding: chunked\r\n", &format!("-{chunk}"))),
        (
            "an enormous chunk",
            framed("transfer-encoding: chunked\r\n", &format!("fffffffffffffffff\r\n{body}")),
        ),
        (
            "a chunk longer than it says",
            framed("transfer-encoding: chunked\r\n", &format!("2\r\n{body}\r\n0\r\n\r\n")),
        ),
        ("a flood of headers", with(&"x-a: b\r\n".repeat(200))),
        ("a head without end", with(&format!("x-a: {}\r\n", "b".repeat(400 << 10)))),
        ("HTTP/2 without asking", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
    ]
}

/// Two readers could see different requests in it.
#[tokio::test]
async fn ambiguous_framing_is_refused() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let body = chat_body("fake", Answering::Whole).to_string();
    let mut passed = Vec::new();
    for (name, bytes) in attacks(&body) {
        let answer = sent(&run.agent, &bytes).await;
        if answer.starts_with("HTTP/1.1 200") || !world.upstream.ledger().is_empty() {
            passed.push((name, answer));
            world.upstream.ledger().clear();
        }
    }
    assert!(passed.is_empty(), "{passed:#?}");
    // Control: the same request, framed as it should be, in both ways.
    let length = body.len();
    for good in [
        framed(&format!("content-length: {length}\r\n"), &body),
        framed("transfer-encoding: chunked\r\n", &format!("{length:x}\r\n{body}\r\n0\r\n\r\n")),
    ] {
        let answer = sent(&run.agent, &good).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

/// Codings that nothing decodes here decide where a request ends: what follows may be a part of it.
#[tokio::test]
async fn an_unusable_coding_ends_the_connection() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let body = chat_body("fake", Answering::Whole).to_string();
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let good = framed("transfer-encoding: chunked\r\n", &chunk);
    for lines in [
        "transfer-encoding: gzip, chunked\r\n",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: cow\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\nhost: b\r\n",
    ] {
        let answer = sent(&run.agent, &[framed(lines, &chunk), good.clone()].concat()).await;
        assert!(
            answer.starts_with("HTTP/1.1 400 ") && answer.contains("connection: close"),
            "{lines}: {answer}"
        );
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{lines}: {answer}");
        assert!(world.upstream.ledger().is_empty(), "{lines}");
    }
    let answer = sent(&run.agent, &good.repeat(2)).await;
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 2, "control: {answer}");
}

#[tokio::test]
async fn a_request_inside_a_body_stays_a_body() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let hidden = "POST /key/generate HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n";
    let mut body = chat_body("fake-echo", Answering::Whole);
    body["messages"][0]["content"] = hidden.into();
    let body = body.to_string();
    let answer = sent(&run.agent, &framed(&format!("content-length: {}\r\n", body.len()), &body)).await;
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 1, "one answer: {answer}");
    assert_eq!(world.upstream.ledger().len(), 1);
}

/// A client sends a length beside `chunked`. hyper drops the length before Sluicegate sees it; RFC 9112, 6.1 allows
/// that if the connection is closed then.
#[tokio::test]
async fn a_length_beside_chunked_closes_the_connection() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let body = chat_body("fake", Answering::Whole).to_string();
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for (count, lines) in [
        (1, "transfer-encoding: chunked\r\ncontent-length: 3\r\n"),
        (2, "content-length: 3\r\ntransfer-encoding: chunked\r\n"),
    ] {
        let twice = framed(lines, &chunk).repeat(2);
        let answer = sent(&run.agent, &twice).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("connection: close"), "{answer}");
        assert_eq!(answer.matches("HTTP/1.1 200").count(), 1, "{answer}");
        let seen = world.upstream.ledger().all();
        assert_eq!(seen.len(), count);
        let sent = body.len() + r#""max_tokens":8192,"#.len();
        assert_eq!(seen[0].header("content-length"), [sent.to_string()]);
        assert!(seen[0].header("transfer-encoding").is_empty());
    }
}
