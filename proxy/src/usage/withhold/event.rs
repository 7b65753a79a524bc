//! Judges one event of a stream by its lines, and leaves out of an answer's event the lines that are not part of it.
//!
//! Follows the line rules of the WHATWG HTML standard, 9.2.6.

use bytes::{Bytes, BytesMut};

use super::shape::Shape;

/// Data that ends the streams of OpenAI's APIs.
const DONE: &[u8] = b"[DONE]";
/// Longest name of an event.
const MAX_NAME: usize = 64;

/// A judgement of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// An answer's event, as it is.
    Answer,
    /// An answer's event with lines that clients ignore and an upstream could say anything in.
    NeedsCleaning,
    /// The beginning of an answer's event, before its document has ended.
    Unfinished,
    /// No event of an answer: an error, or anything else.
    Foreign,
}

/// A line, by what it means to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<'a> {
    Data(&'a [u8]),
    Name(&'a [u8]),
    /// An `id` or `retry` that can be nothing else, or an empty comment.
    Harmless,
    Comment,
    /// A line that clients ignore.
    Ignored,
}

impl<'a> Line<'a> {
    fn of(line: &'a [u8]) -> Self {
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let is_number = || value.len() <= 20 && value.iter().all(u8::is_ascii_digit);
        match field {
            b"data" => Self::Data(value),
            b"event" => Self::Name(value),
            b"id" | b"retry" if is_number() => Self::Harmless,
            b"" if value.is_empty() => Self::Harmless,
            b"" => Self::Comment,
            _ => Self::Ignored,
        }
    }
}

/// A line of an event, where it begins, and the line end behind it.
struct EventLine<'e> {
    at: usize,
    line: &'e [u8],
    end: &'e [u8],
}

fn lines(event: &[u8]) -> impl Iterator<Item = EventLine<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = event.get(at..).filter(|rest| !rest.is_empty())?;
        let (line, after) = rest.split_at(memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len()));
        let end = &after[..if after.starts_with(b"\r\n") { 2 } else { after.len().min(1) }];
        let found = EventLine { at, line, end };
        at += line.len() + end.len();
        Some(found)
    })
}

/// Judges `event`; `shape` reads its `data`.
pub(super) fn judge(event: &[u8], shape: &mut Shape) -> Verdict {
    shape.begin();
    let mut data = 0_usize;
    let mut only = &event[..0];
    let mut has_comment = false;
    let mut has_ignored = false;
    for EventLine { at, line, .. } in lines(event).filter(|found| !found.line.is_empty()) {
        match Line::of(line) {
            Line::Data(value) => {
                if data > 0 {
                    shape.read(b"\n", 0);
                }
                shape.read(value, at + line.len() - value.len());
                data += 1;
                only = value;
            }
            Line::Name(name) if !is_name(name) => return Verdict::Foreign,
            Line::Name(_) | Line::Harmless => {}
            Line::Comment => has_comment = true,
            Line::Ignored => has_ignored = true,
        }
    }
    let is_answer = match data {
        // A client ignores it, but an upstream that sends this reports something.
        0 => !has_ignored,
        1 if only.trim_ascii().is_empty() || only.trim_ascii() == DONE => true,
        _ => shape.is_answer(),
    };
    match (is_answer, has_comment || has_ignored) {
        (false, false) if shape.looks_like_an_answer() => Verdict::Unfinished,
        (false, _) => Verdict::Foreign,
        (true, true) => Verdict::NeedsCleaning,
        (true, false) => Verdict::Answer,
    }
}

/// Returns whether an answer's event may have this name.
fn is_name(name: &[u8]) -> bool {
    let name = name.trim_ascii();
    let names_error = name.windows(5).any(|word| word.eq_ignore_ascii_case(b"error"));
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_');
    name.len() <= MAX_NAME && name.iter().all(is_plain) && !names_error
}

/// Returns `event` with empty comments, and without lines that clients ignore.
pub(super) fn cleaned(event: &[u8]) -> Bytes {
    let mut clean = BytesMut::with_capacity(event.len());
    for EventLine { line, end, .. } in lines(event) {
        match Line::of(line) {
            Line::Ignored if !line.is_empty() => continue,
            Line::Comment => clean.extend_from_slice(b":"),
            _ => clean.extend_from_slice(line),
        }
        clean.extend_from_slice(end);
    }
    clean.freeze()
}
