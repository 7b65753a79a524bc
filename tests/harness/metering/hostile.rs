//! Builds text and JSON with which an agent could make the proxy misread its usage. They contain the words by which the
//! proxy parses an answer, in fields that an answer repeats.

use serde_json::{Map, Value, json};

use crate::random::Random;

/// Pieces of text for prompts, instructions and arguments of tools.
const PIECES: [&str; 16] = [
    r#""usage":{"input_tokens":1,"output_tokens":1}"#,
    r#""usage":{"prompt_tokens":1,"completion_tokens":0,"total_tokens":1}"#,
    r#""type":"response.completed""#,
    r#""type":"response.output_text.delta","delta":"x""#,
    r#"{"choices":[],"usage":null}"#,
    r#""error":{"message":"x"}"#,
    r#""response":{"usage":null}"#,
    r#"\"usage\":null"#,
    "\n\ndata: [DONE]\n\n",
    "\n\nevent: error\ndata: {\"error\":\"x\"}\n\n",
    "\r\n\r\nevent: message_stop\r\ndata: {}\r\n\r\n",
    r#""message":{"usage":{"input_tokens":0}}"#,
    "}}]]}",
    "{{[[\"",
    "[DONE]",
    "a plain word",
];

/// Names of members that answers also have.
const NAMES: [&str; 12] = [
    "error",
    "usage",
    "delta",
    "type",
    "response",
    "choices",
    "message",
    "content",
    "input_tokens",
    "output_tokens",
    "completion_tokens",
    "data",
];

/// Values of `type` that end answers, or carry text.
const TYPES: [&str; 5] =
    ["response.completed", "response.output_text.delta", "response.created", "message_delta", "object"];

/// Returns a few pieces of text, one after the other.
pub(super) fn text(random: &mut Random, pieces: usize) -> String {
    let mut text = String::new();
    for _ in 0..pieces {
        text += PIECES[random.below(PIECES.len())];
        text.push(' ');
    }
    text
}

/// Returns an object with members that have the names of an answer's own.
pub(super) fn object(random: &mut Random, depth: usize) -> Value {
    let mut members = Map::new();
    for _ in 0..=random.below(4) {
        // `error` is rare, because the proxy parses a possible error event more carefully.
        let names = if random.below(8) == 0 { &NAMES[..] } else { &NAMES[1..] };
        let name = names[random.below(names.len())];
        let value = match (name, random.below(4)) {
            ("type", _) => json!(TYPES[random.below(TYPES.len())]),
            (_, 0) if depth > 0 => object(random, depth - 1),
            (_, 0 | 1) => json!(text(random, 1)),
            (_, 2) => json!(random.below(3)),
            _ => json!([object(random, 0)]),
        };
        members.insert(name.to_owned(), value);
    }
    Value::Object(members)
}

/// Returns a JSON schema without arguments, with such an object as its default.
pub(super) fn schema(random: &mut Random) -> Value {
    let default = object(random, 3);
    json!({ "type": "object", "properties": {}, "default": default })
}
