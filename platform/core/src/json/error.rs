//! Reasons why a text is refused, with its place.

use std::fmt;

use serde::de;

/// Reason why a text was not read. Shows line and column, and nothing of the text but names of members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    problem: Problem,
    /// Line and column, from 1, if the place is known.
    place: Option<Place>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    line: usize,
    column: usize,
}

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The text is too long.
    #[error("the JSON text is longer than {0} bytes")]
    Bytes(usize),
    /// Arrays and objects are nested too deeply.
    #[error("the JSON text is nested deeper than {0} levels")]
    Depth(usize),
    /// There are too many values.
    #[error("the JSON text has more than {0} values")]
    Values(usize),
    /// The text is not UTF-8.
    #[error("the text is not UTF-8")]
    Utf8,
    /// The text breaks off.
    #[error("the JSON text breaks off")]
    End,
    /// Something else is expected here.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A member occurs twice in one object.
    #[error("the member `{0}` occurs twice")]
    Twice(String),
    /// A member has a name that serde_json reserves.
    #[error("the name of a member is reserved")]
    Reserved,
    /// A whole number is larger than 64 bits, or a number is not finite.
    #[error("a number is out of range")]
    Number,
    /// A text holds one half of a surrogate pair.
    #[error("a string has an unpaired surrogate")]
    Surrogate,
    /// The type demands something else.
    #[error("{0}")]
    Type(String),
}

impl Error {
    /// Returns the error for a problem at the byte `at` of `text`.
    pub(super) fn at(text: &[u8], at: usize, problem: Problem) -> Self {
        let before = &text[..at.min(text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        Self { problem, place: Some(Place { line, column }) }
    }

    pub(super) const fn without_place(problem: Problem) -> Self {
        Self { problem, place: None }
    }

    /// Adds the place, if none is known.
    pub(super) fn or_at(self, text: &str, at: usize) -> Self {
        if self.place.is_some() { self } else { Self::at(text.as_bytes(), at, self.problem) }
    }

    /// Returns what is wrong.
    #[must_use]
    pub const fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Returns whether the text is too large: in bytes, depth or values.
    #[must_use]
    pub const fn is_bound(&self) -> bool {
        matches!(self.problem, Problem::Bytes(_) | Problem::Depth(_) | Problem::Values(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.problem)?;
        match self.place {
            Some(Place { line, column }) => write!(f, " at line {line} column {column}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::without_place(Problem::Type(message.to_string()))
    }
}
