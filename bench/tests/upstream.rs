//! The scripted upstream as its clients meet it: over TCP, with none of its code in between.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{io, time::Duration};

use bench::upstream::{DIRECTIVES, Ending, ScriptedUpstream};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const PATIENCE: Duration = Duration::from_secs(30);

async fn begin(upstream: &ScriptedUpstream, method: &str, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(upstream.address()).await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: u\r\nX-Seen: yes\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).await.unwrap();
    stream
}

/// The whole response as text, and whether the connection ended as it should.
async fn whole(mut stream: TcpStream) -> (String, io::Result<()>) {
    let mut bytes = Vec::new();
    let ended = stream.read_to_end(&mut bytes).await.map(drop);
    (String::from_utf8(bytes).unwrap(), ended)
}

async fn post(upstream: &ScriptedUpstream, path: &str, model: &str, streamed: Value) -> String {
    let body = json!({ "model": model, "stream": streamed, "stream_options": { "include_usage": true }, "input": "hi", "prompt": "hi",
        "messages": [{ "role": "user", "content": "hi" }] });
    whole(begin(upstream, "POST", path, &body.to_string()).await).await.0
}

/// The JSON of a response in one piece.
fn document(response: &str) -> Value {
    serde_json::from_str(response.split_once("\r\n\r\n").unwrap().1)
        .unwrap_or_else(|error| panic!("{error}: {response}"))
}

/// The JSON of each event of a stream.
fn events(response: &str) -> Vec<Value> {
    let data =
        response.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    data.map(|data| serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}"))).collect()
}

#[tokio::test]
async fn every_api_answers_whole_and_streamed() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    for (path, pointer) in [
        ("/v1/chat/completions", "/choices/0/message/content"),
        ("/v1/completions", "/choices/0/text"),
        ("/v1/responses", "/output/0/content/0/text"),
        ("/v1/messages", "/content/0/text"),
        ("/chat/completions", "/choices/0/message/content"),
    ] {
        let answer = document(&post(&upstream, path, "fake", json!(false)).await);
        let text = answer.pointer(pointer).and_then(Value::as_str);
        assert_eq!(text, Some("Hello from the scripted upstream, it is a lovely day."), "{path}: {answer}");
        assert!(answer.get("usage").is_some(), "{path}: {answer}");
        assert!(events(&post(&upstream, path, "fake", json!(true)).await).len() >= 10, "{path}");
    }
    let embedding = document(&post(&upstream, "/v1/embeddings", "fake", json!(false)).await);
    assert!(embedding.pointer("/data/0/embedding").is_some(), "{embedding}");
}

#[tokio::test]
async fn every_directive_has_an_example_that_is_taken() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let models = document(&whole(begin(&upstream, "GET", "/v1/models", "").await).await.0);
    // `fake` and the pattern of all names are listed besides.
    assert_eq!(models["data"].as_array().unwrap().len(), DIRECTIVES.len() + 2);
    let refused = post(&upstream, "/v1/chat/completions", "fake-nonsense", json!(false)).await;
    assert!(refused.starts_with("HTTP/1.1 400") && refused.contains("gap<N>ms"), "{refused}");
    let limited = post(&upstream, "/v1/chat/completions", "fake-status429", json!(false)).await;
    assert!(limited.starts_with("HTTP/1.1 429") && limited.contains("retry-after: 7"), "{limited}");
}

#[tokio::test]
async fn streams_break_as_the_script_wants() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let cut =
        begin(&upstream, "POST", "/v1/chat/completions", r#"{"model":"fake-cut3","stream":true}"#).await;
    let (text, _) = whole(cut).await;
    assert!(!text.ends_with("0\r\n\r\n") && text.matches("\"content\":\"").count() >= 3, "{text}");
    let headless = begin(&upstream, "POST", "/v1/chat/completions", r#"{"model":"fake-cut0"}"#).await;
    assert_eq!(whole(headless).await.0, "");
    let error = post(&upstream, "/v1/chat/completions", "fake-errmid3", json!(true)).await;
    assert!(
        error.ends_with("0\r\n\r\n") && error.contains("{\"error\":") && !error.contains("[DONE]"),
        "{error}"
    );
    let endings: Vec<_> = upstream.ledger().all().into_iter().map(|entry| entry.ending).collect();
    assert!(matches!(endings[0], Ending::CutByScript { after_events: 3, .. }), "{endings:?}");
    assert!(matches!(endings[1], Ending::CutByScript { after_events: 0, .. }), "{endings:?}");
    assert!(matches!(endings[2], Ending::Answered { events: 3, .. }), "{endings:?}");
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed_at_once() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    for (seq, model) in (1..).zip(["fake-hang", "fake-stall2", "fake-firstbyte60000ms", "fake-gap60000ms"]) {
        let body = format!("{{\"model\":\"{model}\",\"stream\":true}}");
        let client = begin(&upstream, "POST", "/v1/chat/completions", &body).await;
        upstream.ledger().wait_for(seq, PATIENCE).await.unwrap();
        drop(client);
        let entry = upstream.ledger().wait_for_ending(seq as u64, PATIENCE).await.unwrap();
        assert!(matches!(entry.ending, Ending::ClientGone { .. }), "{model}: {:?}", entry.ending);
    }
}

#[tokio::test]
async fn reading_the_ledger_is_not_recorded_in_it() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    post(&upstream, "/v1/chat/completions?q=1", "fake", json!(false)).await;
    let told = document(&whole(begin(&upstream, "GET", "/_ledger", "").await).await.0);
    assert_eq!(told.as_array().unwrap().len(), 1);
    assert_eq!(
        (told[0]["path"].as_str(), told[0]["body"]["model"].as_str()),
        (Some("/v1/chat/completions?q=1"), Some("fake"))
    );
    assert_eq!(upstream.ledger().last().unwrap().header("x-seen"), ["yes"]);
    whole(begin(&upstream, "DELETE", "/_ledger", "").await).await.1.unwrap();
    assert!(upstream.ledger().is_empty());
}
