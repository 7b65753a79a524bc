//! A client that shows what is on the wire: one request per connection, nothing interpreted but chunks.

use std::{io, time::Duration};

use bench::upstream::{Entry, ScriptedUpstream};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
pub(crate) const CHAT: &str = "/v1/chat/completions";

/// Kind of answer that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Whole,
    Streamed,
}

/// The bytes that came back until the connection ended, and its end.
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) ended: io::Result<()>,
}

pub(crate) async fn send(upstream: &ScriptedUpstream, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(upstream.address()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// A request for all APIs at once: each finds its own prompt of two bytes.
pub(crate) fn request(path: &str, model: &str, mode: Mode) -> String {
    let body = json!({ "model": model, "stream": mode == Mode::Streamed, "input": "hi", "prompt": "hi",
        "stream_options": { "include_usage": true }, "messages": [{ "role": "user", "content": "hi" }] });
    with_body(path, &body.to_string())
}

pub(crate) fn with_body(path: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: u\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
}

pub(crate) async fn read(mut stream: TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let ended = stream.read_to_end(&mut bytes).await.map(drop);
    Reply { text: String::from_utf8(bytes).unwrap(), ended }
}

pub(crate) async fn ask(upstream: &ScriptedUpstream, path: &str, model: &str, mode: Mode) -> Reply {
    read(send(upstream, &request(path, model, mode)).await).await
}

pub(crate) async fn entry(upstream: &ScriptedUpstream, seq: u64) -> Entry {
    upstream.ledger().wait_for_ending(seq, PATIENCE).await.unwrap()
}

impl Reply {
    pub(crate) fn body(&self) -> &str {
        self.text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {}", self.text)).1
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(self.body()).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// Each event's data; `null` for `[DONE]`.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self.text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| match data {
            "[DONE]" => Value::Null,
            data => serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}")),
        })
        .collect()
    }

    /// The `event:` lines.
    pub(crate) fn event_names(&self) -> Vec<&str> {
        self.text.lines().filter_map(|line| line.strip_prefix("event: ")).collect()
    }
}

/// The strings at `pointer` in each event that has one, joined.
pub(crate) fn joined(events: &[Value], pointer: &str) -> String {
    events.iter().filter_map(|event| event.pointer(pointer)?.as_str()).collect()
}
