//! Splits JSON into pieces that can be taken out or written twice, and leave JSON. It need not be whole.

use std::{mem, ops::Range};

use serde_json::Value;

/// Sort of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// Name and value, in an object.
    Member,
    /// Value in a list.
    Element,
    /// Value of a member, or alone.
    Value,
    /// Anything else.
    Fragment,
}

impl Sort {
    pub(super) fn of(text: &str) -> Self {
        if serde_json::from_str::<Value>(text).is_ok() {
            Self::Value
        } else if serde_json::from_str::<Value>(&format!("{{{text}}}")).is_ok() {
            Self::Member
        } else {
            Self::Fragment
        }
    }
}

/// Piece of a text, with the comma that would be too many without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JsonPiece {
    pub(super) range: Range<usize>,
    pub(super) sort: Sort,
}

impl JsonPiece {
    /// Returns the piece without its comma.
    pub(super) fn content(&self, text: &[u8]) -> Range<usize> {
        let piece = &text[self.range.clone()];
        let [before, after] = [piece.starts_with(b","), piece.ends_with(b",")].map(usize::from);
        // A piece can be a comma alone.
        let start = self.range.start + before;
        start..start.max(self.range.end - after)
    }
}

/// Object or list that has begun.
struct Open {
    /// Sort of what it consists of.
    sort: Sort,
    /// Place where its current piece begins.
    start: usize,
    /// Place where the value of its current member begins.
    value: Option<usize>,
}

/// Returns the pieces of objects and lists in a text.
pub(super) fn pieces(text: &[u8]) -> Vec<JsonPiece> {
    let mut pieces = Vec::new();
    let mut opened: Vec<Open> = Vec::new();
    let mut is_text = false;
    let mut is_escaped = false;
    for (at, byte) in text.iter().enumerate() {
        if is_text {
            is_text = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
            continue;
        }
        match (byte, opened.last_mut()) {
            (b'"', _) => is_text = true,
            (b'{', _) => opened.push(Open { sort: Sort::Member, start: at + 1, value: None }),
            (b'[', _) => opened.push(Open { sort: Sort::Element, start: at + 1, value: None }),
            (b':', Some(open)) => open.value = Some(at + 1),
            (b',', Some(open)) => {
                pieces
                    .extend(open.value.take().map(|value| JsonPiece { range: value..at, sort: Sort::Value }));
                let start = mem::replace(&mut open.start, at + 1);
                pieces.push(JsonPiece { range: start..at + 1, sort: open.sort });
            }
            (b'}' | b']', Some(_)) => {
                pieces.extend(opened.pop().into_iter().flat_map(|open| open.last(text, at)))
            }
            _ => {}
        }
    }
    pieces
}

impl Open {
    /// Returns the last pieces of an object or a list that ends at `end`.
    fn last(self, text: &[u8], end: usize) -> impl Iterator<Item = JsonPiece> {
        let follows = text[..self.start].ends_with(b",");
        let whole = self.start - usize::from(follows)..end;
        let value = self.value.map(|value| JsonPiece { range: value..end, sort: Sort::Value });
        let whole = (!whole.is_empty()).then_some(JsonPiece { range: whole, sort: self.sort });
        value.into_iter().chain(whole)
    }
}

#[test]
fn json_is_split_into_members_and_values() {
    let text = br#"{"a":1,"b,]":["x","\"}"],"c":{}}"#;
    let found = pieces(text).into_iter();
    let found: Vec<_> =
        found.map(|piece| (str::from_utf8(&text[piece.range]).unwrap(), piece.sort)).collect();
    let expected = [
        ("1", Sort::Value),
        (r#""a":1,"#, Sort::Member),
        (r#""x","#, Sort::Element),
        (r#","\"}""#, Sort::Element),
        (r#"["x","\"}"]"#, Sort::Value),
        (r#""b,]":["x","\"}"],"#, Sort::Member),
        ("{}", Sort::Value),
        (r#","c":{}"#, Sort::Member),
    ];
    assert_eq!(found, expected);
}
