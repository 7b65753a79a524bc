//! Defines the visitor to which a [`Scanner`](super::Scanner) reports the parts of a document.

use std::borrow::Cow;

use platform_core::json::{self, Bounds};

/// Visitor that gives the positions in a document a meaning, and receives the values there.
pub(in crate::usage) trait Visit {
    /// Meaning of a position in a document.
    type Field: Copy + Eq;
    /// Field that does not matter.
    const SKIPPED: Self::Field;

    /// Returns the field of the outermost object.
    fn root(&self) -> Self::Field;
    /// Returns the field of the member called `name` of an object at `field`.
    fn member(&self, field: Self::Field, name: &[u8]) -> Self::Field;
    /// Returns the field of the elements of an array at `field`.
    fn element(&self, field: Self::Field) -> Self::Field;
    /// Returns how much of a string or number at `field` is needed.
    fn wants(&self, field: Self::Field) -> Wants;
    /// Receives the beginning of a container; returns how it is read.
    fn begins(&mut self, field: Self::Field, bracket: Bracket) -> ContainerMode;
    /// Receives the end of a container that was [entered](ContainerMode::Entered).
    fn ends(&mut self, field: Self::Field);
    /// Receives more of a long string of which [all](Wants::All) is needed; [`Visit::string`] gets the rest.
    fn piece(&mut self, field: Self::Field, text: StringText<'_>);
    /// Receives a string that has ended.
    fn string(&mut self, field: Self::Field, text: StringText<'_>);
    /// Receives a number or a word that has ended.
    fn scalar(&mut self, field: Self::Field, raw: &[u8]);
    /// Returns whether strings of the member called `name` are not text, in a container that is
    /// [measured](ContainerMode::Measured).
    fn is_no_text(&self, name: &[u8]) -> bool;
    /// Receives the number of bytes of text in a container that is measured.
    fn measured(&mut self, bytes: u64);
}

/// Amount of a value that is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::usage) enum Wants {
    /// At most so many bytes of its beginning.
    Beginning(usize),
    /// All of it, in pieces that are kept until they have so many bytes.
    All(usize),
}

impl Wants {
    /// Returns the part that is shown of a value within one piece.
    pub(super) fn of(self, chunk: &[u8]) -> &[u8] {
        match self {
            Self::Beginning(most) => chunk.get(..most).unwrap_or(chunk),
            Self::All(_) => chunk,
        }
    }
}

/// Bracket that a container begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::usage) enum Bracket {
    /// `{`
    Object,
    /// `[`
    Array,
}

/// Way in which a container is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::usage) enum ContainerMode {
    /// Member by member.
    Entered,
    /// All text in it is measured, and nothing else is known of it.
    Measured,
    /// The container does not matter.
    Skipped,
}

/// A part of the piece that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::usage) struct TextRange {
    pub(in crate::usage) begin: usize,
    pub(in crate::usage) end: usize,
}

/// The content of a string.
#[derive(Debug, Clone, Copy)]
pub(in crate::usage) struct StringText<'a> {
    /// As it is written, as much of it as was wanted.
    pub(super) raw: &'a [u8],
    /// Bytes of all of it, each escape counted for what it means.
    pub(in crate::usage) bytes: u64,
    /// Set if it has escapes.
    pub(super) is_escaped: bool,
    /// Set if there is more than `raw`.
    pub(super) is_cut: bool,
    /// Position in the piece that is read, if all of it is there.
    pub(in crate::usage) range: Option<TextRange>,
}

impl<'a> StringText<'a> {
    /// Returns the text as it is written, as much of it as was wanted.
    pub(in crate::usage) const fn written(self) -> &'a [u8] {
        self.raw
    }

    /// Returns the text without escapes. Of a text that was cut, as much as is whole; nothing of one that is not UTF-8.
    pub(in crate::usage) fn decoded(self) -> Option<Cow<'a, str>> {
        let raw = if self.is_cut { whole_of(self.raw) } else { self.raw };
        if !self.is_escaped {
            return std::str::from_utf8(raw).ok().map(Cow::Borrowed);
        }
        let quoted = [b"\"", raw, b"\""].concat();
        json::from_slice(&quoted, Bounds::of(quoted.len())).ok().map(Cow::Owned)
    }
}

/// Returns as much of `raw` as ends with a whole character.
pub(super) fn whole_of(raw: &[u8]) -> &[u8] {
    // Two escapes of six bytes may make one character.
    const ESCAPE: usize = 6;
    let tail = raw.len().saturating_sub(2 * ESCAPE);
    let mut end = memchr::memchr(b'\\', &raw[tail..]).map_or(raw.len(), |at| tail + at);
    if end < raw.len() {
        // Of several, the first begins an escape.
        end -= raw[..end].iter().rev().take_while(|byte| **byte == b'\\').count();
        let before = &raw[end.saturating_sub(ESCAPE)..end];
        if matches!(before, [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a'..=b'b' | b'A'..=b'B', ..]) {
            end -= ESCAPE;
        }
    }
    let raw = &raw[..end];
    match std::str::from_utf8(raw) {
        Err(error) if error.error_len().is_none() => &raw[..error.valid_up_to()],
        _ => raw,
    }
}
