//! Removes from an upstream's error all that reveals its internals: keys, hashes of keys, addresses, files, names of
//! deployments and teams.
//!
//! Only the members of an error that clients read pass, and their texts are checked word by word. This is a filter, not
//! a proof: prose about the upstream passes.

use platform_core::json::{self, Bounds};
use serde_json::{Map, Value};

#[cfg(test)]
mod tests;

/// Largest error that is passed on, bytes.
pub(super) const MAX_ERROR: usize = 64 << 10;
/// Bounds of an error. One that exceeds them is replaced as a whole.
const BOUNDS: Bounds = Bounds::of(MAX_ERROR).with_values(10_000);
/// Members of an error document or event that pass.
const DOCUMENT: [&str; 15] = [
    "error",
    "type",
    "message",
    "code",
    "param",
    "detail",
    "request_id",
    "sequence_number",
    "response",
    "id",
    "object",
    "created",
    "model",
    "status",
    "choices",
];
/// Members of its `error` that pass: those that official SDKs know.
const ERROR: [&str; 4] = ["message", "type", "param", "code"];
/// Members that contain the model's text, in objects of a list.
const MODEL_TEXT: [&str; 2] = ["choices", "output"];
/// Members that repeat the agent's request, which is left as it is.
const REQUEST_ECHO: [&str; 3] = ["instructions", "tools", "input"];
/// Members of a choice that pass.
const CHOICE: [&str; 7] = ["index", "delta", "message", "text", "finish_reason", "logprobs", "error"];

/// Returns the part of an error, a JSON document, that may be passed on; none if nothing is left.
pub(super) fn document(text: &[u8], terms: &[String]) -> Option<String> {
    cleaned(text, terms).map(|document| document.to_string())
}

/// Returns the same for a document without an error status; none if clients would find no error in the rest.
pub(super) fn error(text: &[u8], terms: &[String]) -> Option<String> {
    let is_there = |error: Option<&Value>| error.is_some_and(|error| !error.is_null());
    let reports_error = |document: &Value| {
        is_there(document.get("error"))
            || is_there(document.pointer("/response/error"))
            || document.get("type").is_some_and(|kind| kind == "error")
    };
    cleaned(text, terms).filter(reports_error).map(|document| document.to_string())
}

fn cleaned(text: &[u8], terms: &[String]) -> Option<Value> {
    let mut document: Value = json::from_slice(text, BOUNDS).ok()?;
    if let Value::Object(members) = &mut document {
        members.retain(|name, _| DOCUMENT.contains(&name.as_str()));
        if members.is_empty() {
            return None;
        }
    }
    clean(&mut document, terms);
    Some(document)
}

/// Returns the part of a stream's event, an error in JSON, that may be passed on.
pub(super) fn event(event: &[u8], terms: &[String]) -> Option<String> {
    let lines = || std::str::from_utf8(event).unwrap_or_default().split(['\n', '\r']);
    let data: Vec<_> = lines().filter_map(|line| line.strip_prefix("data:")).collect();
    let document = error(data.join("\n").as_bytes(), terms)?;
    let is_name =
        |name: &&str| name.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'.' | b'_'));
    let mut names = lines().filter_map(|line| line.strip_prefix("event:")).map(str::trim).filter(is_name);
    let name = names.find(|name| redact(name, terms) == *name);
    Some(name.map(|name| format!("event: {name}\n")).unwrap_or_default() + "data: " + &document + "\n\n")
}

fn clean(value: &mut Value, terms: &[String]) {
    match value {
        Value::String(text) => *text = redact(text, terms),
        Value::Array(items) => items.iter_mut().for_each(|item| clean(item, terms)),
        Value::Object(members) => {
            if let Some(error) = members.get_mut("error") {
                keep_known(error);
            }
            let cleaned = std::mem::take(members).into_iter().map(|(name, mut member)| {
                match name.as_str() {
                    said if MODEL_TEXT.contains(&said) => clean_model_text(&mut member, terms),
                    asked if REQUEST_ECHO.contains(&asked) => {}
                    _ => clean(&mut member, terms),
                }
                (redact(&name, terms), member)
            });
            *members = cleaned.collect::<Map<_, _>>();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn keep_known(error: &mut Value) {
    if let Value::Object(error) = error {
        error.retain(|name, _| ERROR.contains(&name.as_str()));
    }
}

/// Leaves the model's text as it is, but cleans a value of another type in its place.
fn clean_model_text(said: &mut Value, terms: &[String]) {
    match said {
        Value::Array(parts) if parts.iter().all(Value::is_object) => {
            parts.iter_mut().filter_map(Value::as_object_mut).for_each(|part| clean_part(part, terms));
        }
        other => clean(other, terms),
    }
}

/// Does the same for a choice, or for a part of OpenAI's `output`, which has a type.
fn clean_part(part: &mut Map<String, Value>, terms: &[String]) {
    if !part.contains_key("type") {
        part.retain(|name, _| CHOICE.contains(&name.as_str()));
    }
    for (name, member) in part.iter_mut() {
        match (name.as_str(), member) {
            ("error", error) => {
                keep_known(error);
                clean(error, terms);
            }
            ("delta" | "message", Value::Object(said)) => {
                said.retain(|name, _| name != "error");
            }
            ("delta" | "message" | "finish_reason", other) => clean(other, terms),
            _ => {}
        }
    }
}

/// Start of a Python stack trace, which names the upstream's code.
const TRACE: &str = "Traceback (most recent call last)";

/// Returns `text` without the `terms`, and without words that look like a key, a hash, an address, a file or a URL.
pub(super) fn redact(text: &str, terms: &[String]) -> String {
    let text = terms.iter().fold(text.to_owned(), |text, word| text.replace(word, "[upstream]"));
    let (text, trace) = text.split_once(TRACE).map_or((text.as_str(), ""), |(text, _)| (text, "[trace]"));
    let mut clean = String::with_capacity(text.len());
    let mut label = "";
    // `clean` contains the text before `done`. The last word ended at `labelled`: what follows separates it from the
    // next.
    let mut done = 0;
    let mut labelled = 0;
    while let Some(found) = text[done..].find(is_word).map(|at| done + at) {
        let start = found + escape(&text[..found], &text[found..]);
        let end = start + word_length(&text[start..]);
        let bare = text[start..end].trim_end_matches(['.', ':', '/', '-', ',', ';']);
        clean.push_str(&text[done..start]);
        if !bare.is_empty() {
            let withheld = || is_value_of(label, &text[labelled..start]).then_some("[withheld]");
            clean.push_str(replacement(bare).or_else(withheld).unwrap_or(bare));
            (label, labelled) = (bare, start + bare.len());
        }
        clean.push_str(&text[start + bare.len()..end]);
        done = end;
    }
    clean + &text[done..] + trace
}

/// Returns the length of the word at the start of `text`. A URL ends where it is closed: its query may contain keys.
fn word_length(text: &str) -> usize {
    let length = |belongs: fn(char) -> bool| text.find(|c| !belongs(c)).unwrap_or(text.len());
    let word = length(is_word);
    if text[..word].contains("://") { length(is_url) } else { word }
}

const fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || matches!(character, '_' | '-' | '.' | ':' | '/' | '%' | '~' | '*' | '@')
}

fn is_url(character: char) -> bool {
    let closes =
        matches!(character, '"' | '\'' | '`' | '\\' | '<' | '>' | '(' | ')' | '[' | ']' | '{' | '}' | '|');
    !closes && !character.is_whitespace() && !character.is_control()
}

/// Returns how much of `word` belongs to the backslash before it: texts may contain quoted JSON.
fn escape(before: &str, word: &str) -> usize {
    let is_escaped = before.ends_with('\\');
    let is_code = |code: &str| code.bytes().all(|byte| byte.is_ascii_hexdigit());
    match word.as_bytes().first() {
        Some(b'n' | b'r' | b't' | b'b' | b'f' | b'/') if is_escaped => 1,
        Some(b'u') if is_escaped && word.get(1..5).is_some_and(is_code) => 5,
        _ => 0,
    }
}

/// Names of values that identify the upstream's owner.
const LABELS: [&str; 14] = [
    "team",
    "team_id",
    "team_alias",
    "api_base",
    "base_url",
    "deployment",
    "deployment_id",
    "model_id",
    "model_info",
    "organization",
    "organization_id",
    "key_alias",
    "user_id",
    "hashed_token",
];

/// Returns whether `between` a label and a word makes the word its value: `Team=`, `'team_id': '`, `team "`.
fn is_value_of(label: &str, between: &str) -> bool {
    const QUOTES: [char; 4] = ['\'', '"', '`', '\\'];
    let is_assigned = match between.trim_matches(|character| character == ' ' || QUOTES.contains(&character))
    {
        "=" | ":" => true,
        "" => between.contains(QUOTES),
        _ => false,
    };
    is_assigned && LABELS.iter().any(|name| label.eq_ignore_ascii_case(name))
}

/// Returns the replacement for `word`, if it may not pass.
fn replacement(word: &str) -> Option<&'static str> {
    let is_hash = |part: &str| part.len() >= 32 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    if word.contains("://") {
        Some("[url]")
    } else if has_key(word) {
        Some("[key]")
    } else if word.split(|character: char| !character.is_ascii_alphanumeric()).any(is_hash) {
        Some("[hash]")
    } else if is_address(word) {
        Some("[address]")
    } else if is_file(word) {
        Some("[file]")
    } else {
        None
    }
}

/// Returns whether `word` contains a key: `sk-…` at its start or behind anything but a letter, so not `risk-free`.
fn has_key(word: &str) -> bool {
    let mut parts = word.split("sk-");
    let mut before = parts.next().unwrap_or_default();
    parts.any(|key| {
        let is_apart = !before.ends_with(|last: char| last.is_ascii_alphabetic());
        before = key;
        is_apart && key.len() >= 4
    })
}

/// Directories in which a host keeps its own files.
const ROOTS: [&str; 10] =
    ["/app/", "/etc/", "/home/", "/opt/", "/root/", "/run/", "/srv/", "/tmp/", "/usr/", "/var/"];

fn is_file(word: &str) -> bool {
    ROOTS.iter().any(|root| word.starts_with(root))
}

/// Suffixes of names in private networks.
const PRIVATE: [&str; 4] = [".internal", ".local", ".svc", ".lan"];

/// Returns whether `word` contains an address: `10.0.0.1`, `host/10.0.0.1:80`, `peer:10.0.0.1`, `::1`, `fe80::1`,
/// `litellm:4000`, `db.internal`
fn is_address(word: &str) -> bool {
    let is_part = |character: char| character.is_ascii_digit() || character == '.';
    let mut numbers = word.split(|character| !is_part(character)).map(|part| part.trim_matches('.'));
    word.split(['/', '%', '~', '*', '@']).any(is_host)
        || numbers.any(|part| part.parse::<std::net::Ipv4Addr>().is_ok())
}

fn is_host(host: &str) -> bool {
    if host.parse::<std::net::IpAddr>().is_ok() || host.parse::<std::net::SocketAddr>().is_ok() {
        return host.contains(|c: char| c.is_ascii_digit());
    }
    if host.split(':').any(|name| PRIVATE.iter().any(|end| name.ends_with(end))) {
        return true;
    }
    let Some((name, port)) = host.rsplit_once(':') else { return false };
    let is_port = (2..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = name.bytes().any(|byte| byte.is_ascii_alphabetic()) && !name.contains(':');
    is_port && is_name && (name.contains('.') || port.len() >= 4)
}
