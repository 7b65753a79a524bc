//! Checks the redaction of an upstream's error texts. An input is such a text, in which control bytes mean secrets:
//!
//! * 0x00 at the very beginning: the rest is a whole answer with known usage (`truth`);
//! * 0x01: the upstream's key; 0x02: its address;
//! * 0x03: another key; 0x04: the hash of a key; 0x05: an address; 0x06: a URL.
//!
//! The upstream's own secrets never get out, whatever surrounds them. The others do not get out unless letters, digits
//! or characters of a name touch them. A document stays a document and an event stays an event, with nothing in them
//! but what clients read.

use proxy::fuzzing;
use serde_json::Value;

use crate::truth;

const OWN: [&str; 2] = ["sk-up.Stream/Key+1=", "gw.internal:4000"];
const HOST: &str = "gw.internal";
const OTHERS: [&str; 4] = [
    "sk-tenant0Key-1",
    "1a00c3d21a00c3d21a00c3d21a00c3d21a00c3d21a00c3d21a00c3d21a00c3d2",
    "10.1.2.3:18080",
    "https://user:pw@litellm.svc/v1?key=AIza&alt=sse",
];
/// Parts of these that must not be found: the host of an address, the host of a URL and the key in its query.
const TRACES: [[&str; 2]; 4] = [[OTHERS[0]; 2], [OTHERS[1]; 2], ["10.1.2.3"; 2], ["litellm.svc", "AIza"]];

/// Members that clients read in an error document, and in its `error`.
const DOCUMENT: [&str; 15] = [
    "choices",
    "code",
    "created",
    "detail",
    "error",
    "id",
    "message",
    "model",
    "object",
    "param",
    "request_id",
    "response",
    "sequence_number",
    "status",
    "type",
];
const ERROR: [&str; 4] = ["message", "type", "param", "code"];
/// Members that contain the model's or the agent's own words.
const OWN_WORDS: [&str; 5] = ["choices", "output", "instructions", "tools", "input"];

/// Checks one input.
///
/// # Panics
/// If a property is violated.
pub fn holds(input: &[u8]) {
    if let [0, known @ ..] = input {
        return truth::whole(known);
    }
    let Ok(marked) = std::str::from_utf8(input) else { return };
    let mut text = String::new();
    let mut apart = [0; 4];
    let characters: Vec<char> = marked.chars().collect();
    for (at, character) in characters.iter().enumerate() {
        match u32::from(*character) {
            code @ (1 | 2) => text += OWN[code as usize - 1],
            code @ 3..=6 => {
                let is_apart = apart_before(&characters[..at])
                    && characters.get(at + 1).is_none_or(|next| ends_word(*next));
                apart[code as usize - 3] += usize::from(is_apart);
                text += OTHERS[code as usize - 3];
            }
            _ => text.push(*character),
        }
    }
    let redacted_terms = [OWN[0], OWN[1], HOST].map(str::to_owned);
    let redacted = fuzzing::redacted(&text, &redacted_terms);
    for secret in OWN.iter().chain([&HOST]) {
        assert!(!redacted.contains(secret), "{secret} gets out: {redacted:?}");
    }
    for (traces, apart) in TRACES.iter().zip(apart) {
        for trace in traces {
            // A trace that is spelled out in the input may be anywhere.
            let hidden = text.matches(trace).count() == apart && redacted.contains(trace);
            assert!(!hidden, "{trace} gets out: {redacted:?}");
        }
    }
    let document = fuzzing::redacted_document(text.as_bytes(), &redacted_terms);
    document.iter().for_each(|redacted| is_clean_document(redacted));
    for event in [format!("data: {text}\n\n"), text] {
        if let Some(redacted) = fuzzing::redacted_event(event.as_bytes(), &redacted_terms) {
            is_clean_event(&redacted);
        }
    }
}

/// Checks one event: its name is a word and its data a document.
fn is_clean_event(event: &str) {
    let lines: Vec<&str> = event.split('\n').collect();
    let (name, data) = match lines[..] {
        [data, "", ""] => (None, data),
        [name, data, "", ""] => (name.strip_prefix("event: "), data),
        _ => panic!("these are several events or none: {event:?}"),
    };
    assert!(name.is_none_or(|name| name.bytes().all(|it| b"abcdefghijklmnopqrstuvwxyz._".contains(&it))));
    assert!(name.is_none_or(|name| name != HOST), "it gets out as a name");
    is_clean_document(data.strip_prefix("data: ").expect("data"));
}

/// Checks a JSON document: only the model's and the agent's own words may contain a secret of the upstream.
fn is_clean_document(redacted: &str) {
    let document: Value = serde_json::from_str(redacted).expect("a document is told as one");
    for name in document.as_object().into_iter().flat_map(serde_json::Map::keys) {
        assert!(DOCUMENT.contains(&name.as_str()), "{name} is told of: {redacted}");
    }
    is_clean(&document);
}

fn is_clean(value: &Value) {
    let is_own = |text: &str| OWN.iter().chain([&HOST]).any(|secret| text.contains(secret));
    match value {
        Value::String(text) => assert!(!is_own(text), "it gets out: {text:?}"),
        Value::Array(items) => items.iter().for_each(is_clean),
        Value::Object(members) => {
            for (name, member) in members {
                assert!(!is_own(name), "it gets out as a name: {name:?}");
                if name == "error" {
                    let mut names = member.as_object().into_iter().flat_map(serde_json::Map::keys);
                    assert!(names.all(|name| ERROR.contains(&name.as_str())), "of an error: {member}");
                }
                if !OWN_WORDS.contains(&name.as_str()) {
                    is_clean(member);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns whether the text before a mark ends there: at a character that ends words, or at an escape of JSON.
fn apart_before(before: &[char]) -> bool {
    match before {
        [.., '\\', 'b' | 'f' | 'n' | 'r' | 't'] => true,
        [.., last] => ends_word(*last),
        [] => true,
    }
}

/// Returns whether `character` ends the word before it.
fn ends_word(character: char) -> bool {
    !character.is_ascii_alphanumeric() && !matches!(character, '_' | '-' | '.' | '\u{1}'..='\u{6}')
}
