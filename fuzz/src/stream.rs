//! Checks answers in pieces. An input is a letter for the route and format, a digit for how much may be held, and the
//! answer.
//!
//! The letters are `c` chat, `p` completions, `r` responses and `m` messages as events, and as capitals one JSON
//! document. The answer is cut at each 0x1f. After a `k` comes an answer with known usage (`truth`).
//!
//! However an answer is cut, the meter reads the same in it and the same bytes pass, watched or not. An event passes as
//! it came, or without the lines that clients ignore. Events with nothing but usage are removed where Sluicegate
//! requested usage. Events that belong to no answer are redacted. No buffer ever exceeds its bound.

use bytes::Bytes;
use platform_core::route::Route;
use proxy::fuzzing::{self, Answer};
use serde_json::Value;

use crate::{
    json::{Members, elements},
    truth,
};

const CUT: u8 = 0x1f;
/// A byte order mark, which may come before a stream.
const BOM: &[u8] = b"\xef\xbb\xbf";
/// Mark around an event that was redacted. No answer contains it.
const MARK: u8 = 0x1e;
/// Most of a document that is held back: a secret with all letters but one, each escaped.
const LONGEST_MASKED: usize = 6 * fuzzing::SECRET.len();

/// Checks one input.
///
/// # Panics
/// If a property is violated.
pub fn holds(input: &[u8]) {
    if let [b'k', known @ ..] = input {
        return truth::streamed(known);
    }
    let [letter, bound, pieces @ ..] = input else { return };
    let is_stream = letter.is_ascii_lowercase();
    let route = match letter.to_ascii_lowercase() {
        b'c' => Route::ChatCompletions,
        b'p' => Route::Completions,
        b'r' => Route::Responses,
        b'm' => Route::Messages,
        _ => return,
    };
    if pieces.contains(&MARK) {
        return;
    }
    let longest = 16 << bound.wrapping_sub(b'0').min(9);
    let content_type = if is_stream { "text/event-stream" } else { "application/json" };
    let answer = Answer { route, content_type, longest };
    let whole: Vec<u8> = pieces.iter().copied().filter(|byte| *byte != CUT).collect();
    let ways: [Vec<&[u8]>; 3] = [
        vec![&whole],
        pieces.split(|byte| *byte == CUT).collect(),
        whole.chunks(1 + whole.len() / 32).collect(),
    ];
    for deltas in [None, Some(Vec::new())] {
        let observed =
            ways.each_ref().map(|way| fuzzing::observed(answer, deltas.clone(), way.iter().copied(), redact));
        let (read, passed) = &observed[0];
        for (other, rest) in &observed {
            assert_eq!(other, read, "the meter reads otherwise when it is cut");
            assert_eq!(rest.bytes, passed.bytes, "something else passes when it is cut");
            assert_eq!(rest.is_answer, passed.is_answer, "it is an answer only when it is cut");
            assert!(rest.kept <= fuzzing::MAX_KEPT, "the meter keeps {}", rest.kept);
            let longest = if is_stream { longest } else { LONGEST_MASKED };
            assert!(rest.held <= longest, "{} are held back of {longest}", rest.held);
        }
        if is_stream {
            only_what_may_is_missing(answer, &whole, &passed.bytes);
        } else {
            only_the_secret_is_masked(&whole, &passed.bytes);
            assert!(!is_plain_answer(&whole) || passed.is_answer, "an answer is refused");
        }
    }
}

/// Compares a document that passed with the one that came.
fn only_the_secret_is_masked(whole: &[u8], passed: &[u8]) {
    let secret = fuzzing::SECRET.as_bytes();
    let has = |bytes: &[u8]| bytes.windows(secret.len()).any(|window| window == secret);
    assert!(!has(passed), "the secret passes");
    assert_eq!(passed.len(), whole.len(), "masked bytes keep their length");
    // With escapes the secret may be spelled otherwise.
    if !has(whole) && !whole.contains(&b'\\') {
        assert_eq!(passed, whole, "a document does not pass as it came");
    }
    let is_masked = |(came, passed): (&u8, &u8)| came == passed || *passed == b'*';
    assert!(whole.iter().zip(passed).all(is_masked), "something else is written over");
}

/// Returns whether `document` is an answer by any rule: an object of plain members, none of which reports an error.
fn is_plain_answer(document: &[u8]) -> bool {
    let Ok(Value::Object(members)) = serde_json::from_slice(document) else { return false };
    let plain = ["id", "model", "tools", "usage", "created"];
    !document.contains(&b'\\')
        && members.iter().all(|(name, value)| plain.contains(&&**name) && !value.is_string())
}

fn redact(event: &[u8]) -> Bytes {
    [&[MARK], event, &[MARK]].concat().into()
}

/// Event that passed, was redacted or is missing, and must not.
struct Violation(String);

/// Compares what passes with the events that came.
fn only_what_may_is_missing(answer: Answer<'_>, whole: &[u8], passed: &[u8]) {
    let (mut left, mut rest) = (passed, whole);
    // A byte order mark is held with the first event, and passes by itself.
    let mut held = 0;
    if let (Some(marked), Some(passed)) = (rest.strip_prefix(BOM), left.strip_prefix(BOM)) {
        (left, rest) = (passed, marked);
        held = BOM.len();
    }
    let all = String::from_utf8_lossy(passed);
    explain(answer, held, rest, left)
        .unwrap_or_else(|Violation(event)| panic!("{event}\n--- all that passed\n{all}"));
}

/// Explains `left`, which passed, by the events of `rest`. `held` bytes were held with the first event. One explanation of
/// several may fail, so none panics.
///
/// # Errors
/// The first event that passed, was redacted or is missing, and must not.
fn explain(answer: Answer<'_>, mut held: usize, mut rest: &[u8], mut left: &[u8]) -> Result<(), Violation> {
    let is_ours = matches!(answer.route, Route::ChatCompletions | Route::Completions);
    while !rest.is_empty() {
        let event;
        // The line of a mark is not blank, so an event that begins with it goes on behind a line end.
        let mark = &BOM[..held];
        let end = event_end(&[mark, rest].concat()).map(|end| end - held);
        (event, rest) = rest.split_at(end.unwrap_or(rest.len()));
        let fits = std::mem::take(&mut held) + event.len() <= answer.longest;
        let text = String::from_utf8_lossy(event);
        // Cut off before its end. The end of what was added could otherwise be taken for the event's own.
        if let Some(after) = cut(left, event).filter(|_| !fits) {
            // The mark behind a whole event may also be that of the next one, which was dropped.
            let whole = left.strip_prefix(event);
            if whole.is_some_and(|left| explain(answer, 0, rest, left).is_ok()) {
                return Ok(());
            }
            left = after;
            continue;
        }
        if let Some(after) = left.strip_prefix(event) {
            left = after;
            ensure(!(fits && is_plain_error(event)), || format!("an error passes: {text}"))?;
            let is_withheld = fits && is_ours && end.is_some() && is_plain_usage(event);
            ensure(!is_withheld, || format!("usage passes: {text}"))?;
            continue;
        }
        if let Some(after) = left.strip_prefix(&*redact(if fits { event } else { b"" })) {
            ensure(!is_plain_text(event, answer.route), || format!("an answer is redacted: {text}"))?;
            left = after;
            continue;
        }
        let clean = cleaned(event);
        if let Some(after) = left.strip_prefix(&*clean) {
            ensure(!(fits && is_plain_error(event)), || format!("an error passes: {text}"))?;
            left = after;
            continue;
        }
        if let Some(after) = cut(left, &clean).filter(|_| !fits) {
            left = after;
            continue;
        }
        let is_usage =
            is_ours && fits && end.is_some() && only(event).is_some_and(|data| has_nothing_but_usage(&data));
        ensure(is_usage, || format!("missing: {text}"))?;
    }
    ensure(left.is_empty(), || "no event explains the rest of what passed".to_owned())
}

/// Returns an error if `holds` is false.
fn ensure(holds: bool, violation: impl FnOnce() -> String) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation(violation())) }
}

/// Returns the rest of `passed` after the beginning of an `event` that was cut off.
fn cut<'p>(passed: &'p [u8], event: &[u8]) -> Option<&'p [u8]> {
    let end = [b"\n\n", &*redact(b"")].concat();
    let at = passed.windows(end.len()).position(|window| window == end)?;
    (at < event.len() && event.starts_with(&passed[..at])).then(|| &passed[at + end.len()..])
}

/// Returns the event with empty comments and without lines that clients ignore, line by line.
fn cleaned(event: &[u8]) -> Vec<u8> {
    let (mut clean, mut rest) = (Vec::new(), event);
    while !rest.is_empty() {
        let length = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
        let (line, after) = rest.split_at(length);
        let end = if after.starts_with(b"\r\n") { 2 } else { after.len().min(1) };
        let is_number = |value: &[u8]| value.len() <= 20 && value.iter().all(u8::is_ascii_digit);
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let kept = match &line[..colon] {
            b"data" | b"event" => Some(line),
            b"id" | b"retry" if is_number(value) => Some(line),
            b"" if !line.is_empty() && value.is_empty() => Some(line),
            b"" => Some(&line[..line.len().min(1)]),
            _ => None,
        };
        if let Some(line) = kept {
            clean.extend_from_slice(line);
            clean.extend_from_slice(&after[..end]);
        }
        rest = &after[end..];
    }
    clean
}

/// Returns whether an event is text as every chat writes it.
fn is_plain_text(event: &[u8], route: Route) -> bool {
    let is_data = lines(event).all(|line| line.is_empty() || line.starts_with(b"data:"));
    let Some(object) = only(event).as_deref().and_then(plain).filter(|_| is_data) else { return false };
    let text = |choice: &Value| {
        choice.as_object().is_some_and(|choice| choice.len() == 1 && choice.contains_key("index"))
    };
    let choices = object.get("choices").and_then(Value::as_array);
    route == Route::ChatCompletions
        && object.keys().all(|key| key == "choices" || key == "model")
        && choices.is_some_and(|choices| choices.iter().all(text))
}

/// Returns the only `data` of an event. Bytes that are not UTF-8 are replaced.
fn only(event: &[u8]) -> Option<String> {
    let mut data = lines(event).filter_map(|line| line.strip_prefix(b"data:"));
    let first = data.next().filter(|_| data.next().is_none())?;
    Some(String::from_utf8_lossy(first).into_owned())
}

fn lines(event: &[u8]) -> impl Iterator<Item = &[u8]> {
    event.split(|byte| matches!(byte, b'\n' | b'\r'))
}

/// Returns whether an event has only counts and choices without text. It may be broken otherwise.
fn has_nothing_but_usage(data: &str) -> bool {
    if !(data.contains("\"usage\"") && data.contains("\"choices\"")) {
        return false;
    }
    let Some(members) = Members::of(data) else { return true };
    let said = |members: &Members<'_>, name: &str| {
        members
            .0
            .iter()
            .rev()
            .find(|(other, value)| other == name && *value != "null")
            .map(|it| it.1.to_owned())
    };
    let says_nothing = |(name, value): &(String, &str)| match name.as_str() {
        _ if *value == "null" => true,
        "index" => true,
        "delta" => Members::of(value).is_some_and(|delta| delta.0.iter().all(|it| it.1 == "null")),
        "text" => *value == r#""""#,
        _ => false,
    };
    let choices = said(&members, "choices").unwrap_or_default();
    said(&members, "error").is_none()
        && elements(&choices)
            .into_iter()
            .all(|choice| Members::of(choice).is_some_and(|choice| choice.0.iter().all(says_nothing)))
}

/// Parses an object as every API writes it: each name once and without escapes.
fn plain(data: &str) -> Option<serde_json::Map<String, Value>> {
    let once = |text: &str| Members::of(text).is_none_or(|members| members.twice().is_none());
    let members = Members::of(data)?;
    let is_plain = once(data) && !data.contains(['\\', char::REPLACEMENT_CHARACTER]);
    let values_are = members.0.iter().all(|(_, value)| once(value));
    serde_json::from_str(data).ok().filter(|_| is_plain && values_are)
}

/// Returns whether an event is usage as every API writes it: counts and no choices.
fn is_plain_usage(event: &[u8]) -> bool {
    let Some(object) = only(event).as_deref().and_then(plain) else { return false };
    let counts = object.get("usage").and_then(Value::as_object);
    object.keys().all(|key| key == "choices" || key == "usage")
        && object.get("choices") == Some(&serde_json::json!([]))
        && counts.is_some_and(|counts| counts.get("prompt_tokens").is_some_and(Value::is_u64))
}

/// Returns whether an event is an error as every API writes it.
fn is_plain_error(event: &[u8]) -> bool {
    if lines(event).any(|line| line == b"event: error") {
        return true;
    }
    let Some(object) = only(event).as_deref().and_then(plain) else { return false };
    let is_there = |object: &Value| object.get("error").is_some_and(|error| !error.is_null());
    object.get("type").is_some_and(|kind| kind == "error")
        || is_there(&Value::Object(object.clone()))
        || object.get("response").is_some_and(is_there)
}

/// Returns the end of the first event, line by line: behind a blank line. A blank line by itself belongs to no event.
fn event_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < bytes.len() {
        let length = bytes[at..].iter().position(|byte| matches!(byte, b'\n' | b'\r'))?;
        let end = at + length;
        let next = match bytes[end..] {
            // A CR at the very end may be half a line end.
            [b'\r'] => return None,
            [b'\r', b'\n', ..] => end + 2,
            _ => end + 1,
        };
        if length == 0 {
            return Some(next);
        }
        at = next;
    }
    None
}
