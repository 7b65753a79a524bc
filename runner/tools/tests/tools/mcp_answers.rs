//! mcp_answers sends each kind of message of the Model Context Protocol, and compares the answer with the recorded one.
//!
//! `mcp_answers.txt` has the answers that the official SDK for Rust gave to this gateway's tools (rmcp 3.11). A line with
//! `>` is the version in the header, and the message. The line with `<` below is the answer to each of them: its status,
//! the outcome of a call, and the body. The member `jsonrpc` is left out of both, and a word with `$` is short for a text.
//!
//! Two kinds of message are answered otherwise than by the SDK. It took one of two members with the same name. And it refused
//! a number or a text that cannot be represented also where nothing reads it.

use serde_json::{Value, json};

use crate::world::{Answer, RawCall, World};

const TIME: &str = "core__get_current_time";
const RECORD: &str = include_str!("mcp_answers.txt");
/// Short words, and their texts.
const SHORT: [(&str, &str); 10] = [
    ("$new", r#""_meta":{$version:"2026-07-28",$client}"#),
    ("$old", r#""_meta":{$version:"2025-06-18",$client}"#),
    ("$far", r#""_meta":{$version:"2099-01-01",$client}"#),
    ("$client", r#"$able:{}"#),
    ("$version", r#""io.modelcontextprotocol/protocolVersion""#),
    ("$able", r#""io.modelcontextprotocol/clientCapabilities""#),
    ("$me", r#""capabilities":{"roots":{"listChanged":true}},"clientInfo":{"name":"x","version":"1"}"#),
    ("$server", concat!(r#"{"name":"sluicegate","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#)),
    ("$call", r#""method":"tools/call","params":{"name":"core__get_current_time""#),
    (
        "$tool",
        r#"{"name":"core__get_current_time","description":"Returns the current time in UTC.","inputSchema":{"type":"object","properties":{},"additionalProperties":false},"annotations":{"readOnlyHint":true,"idempotentHint":true,"destructiveHint":false}}"#,
    ),
];

/// Answer, as far as a client sees it.
#[derive(Debug, PartialEq)]
struct Seen {
    status: u16,
    outcome: String,
    form: Option<String>,
    body: Value,
}

impl Seen {
    /// Reads a recorded answer.
    fn recorded(line: &str) -> Self {
        let (head, body) = line.split_once('|').unwrap();
        let (status, outcome) = head.split_once(' ').unwrap_or((head, ""));
        let is_json = body.starts_with('"');
        Self {
            status: status.parse().unwrap(),
            outcome: outcome.to_owned(),
            form: is_json.then(|| "application/json".to_owned()),
            body: if is_json { serde_json::from_str(&message(body)).unwrap() } else { json!(body) },
        }
    }

    /// Returns what is seen of `answer`, without the time that it tells.
    fn of(answer: Answer) -> Self {
        let outcome = answer.outcome().to_owned();
        let form = answer.headers.get("content-type").map(|form| form.to_str().unwrap().to_owned());
        let mut body = answer.body;
        if body.pointer("/result/structuredContent/utc").is_some() {
            let text = body["result"]["content"][0]["text"].as_str().unwrap();
            assert_eq!(serde_json::from_str::<Value>(text).unwrap(), body["result"]["structuredContent"]);
            body["result"]["structuredContent"] = json!("now");
            body["result"]["content"][0]["text"] = json!("now");
        }
        Self { status: answer.status, outcome, form, body }
    }
}

/// Returns a message with these members.
fn message(members: &str) -> String {
    let members = SHORT.iter().fold(members.to_owned(), |text, (short, long)| text.replace(short, long));
    format!(r#"{{"jsonrpc":"2.0",{members}}}"#)
}

async fn ask(world: &World, line: &str) -> Seen {
    let (version, members) = line.split_once('|').unwrap();
    let call = RawCall::of("/mcp", TIME, message(members).into_bytes());
    let answer = world.send(call.with("mcp-protocol-version", version)).await;
    assert!(!answer.headers.contains_key("mcp-session-id"), "{line}");
    Seen::of(answer)
}

#[tokio::test]
async fn answers_are_those_that_are_recorded() {
    let world = World::start().await;
    let (mut asked, mut differing) = (Vec::new(), Vec::new());
    for line in RECORD.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if let Some(asking) = line.strip_prefix("> ") {
            asked.push((asking, ask(&world, asking).await));
            continue;
        }
        let recorded = Seen::recorded(line.strip_prefix("< ").unwrap());
        assert!(!asked.is_empty(), "an answer to nothing: {line}");
        differing.extend(asked.drain(..).filter(|(_, seen)| *seen != recorded));
    }
    assert!(asked.is_empty() && differing.is_empty(), "{asked:#?} {differing:#?}");
}
