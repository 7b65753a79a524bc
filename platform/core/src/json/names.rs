//! Refuses names of members that two readers could understand differently.

use std::cmp::Ordering;

use super::{ErrorKind, text::code_points};

/// First characters of the names that serde_json reserves. Its `Value` takes what stands beside such a name for something
/// else, which is then parsed without a bound.
const RESERVED: &str = "$serde_json::private::";

/// Names of one object, as they are written.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Places in the text, behind the quotes.
    starts: Vec<usize>,
}

impl Names {
    /// Adds the name whose content begins at `start`.
    pub(super) fn push(&mut self, start: usize) {
        self.starts.push(start);
    }

    /// Checks that no two names read the same.
    pub(super) fn check(&mut self, text: &str) -> Result<(), ErrorKind> {
        let order = |one: &usize, other: &usize| compare(content(text, *one), content(text, *other));
        self.starts.sort_unstable_by(order);
        match self.starts.array_windows().find(|[one, other]| order(one, other) == Ordering::Equal) {
            Some([_, name]) => Err(ErrorKind::Twice(shown(content(text, *name)))),
            None => Ok(()),
        }
    }
}

/// Returns whether serde_json reserves the name `name`.
pub(super) fn is_reserved(name: &str) -> bool {
    name.starts_with(RESERVED)
}

/// Returns the content of the string that begins at `start`, behind its quote.
fn content(text: &str, start: usize) -> &str {
    let mut end = start;
    loop {
        match text.as_bytes().get(end) {
            Some(b'\\') => end += 2,
            Some(b'"') | None => return &text[start..end],
            Some(_) => end += 1,
        }
    }
}

/// Compares two names as they read, not as they are written.
fn compare(one: &str, other: &str) -> Ordering {
    if one.contains('\\') || other.contains('\\') {
        code_points(one).cmp(code_points(other))
    } else {
        one.cmp(other)
    }
}

/// Returns a name for an error.
fn shown(name: &str) -> String {
    const MOST: usize = 64;
    let characters =
        code_points(name).map(|point| char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER));
    characters.take(MOST).flat_map(char::escape_default).collect()
}
