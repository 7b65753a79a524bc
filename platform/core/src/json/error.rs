//! Reasons why a text is refused, with its place.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

use super::names::shown;

/// Reason why a text was not read. Shows line and column, and of the text only names of members: a value may be a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    /// Line and column, from 1, if the place is known.
    place: Option<Place>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    line: usize,
    column: usize,
}

/// Kinds of errors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
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
    /// Returns the error without its place, which is that in a part of a text.
    pub(super) fn without_its_place(self) -> Self {
        Self { place: None, ..self }
    }

    /// Returns the error for a problem at the byte `at` of `text`.
    pub(super) fn at(text: &[u8], at: usize, kind: ErrorKind) -> Self {
        let before = &text[..at.min(text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        Self { kind, place: Some(Place { line, column }) }
    }

    pub(super) const fn without_place(kind: ErrorKind) -> Self {
        Self { kind, place: None }
    }

    /// Adds the place, if none is known.
    pub(super) fn or_at(self, text: &str, at: usize) -> Self {
        if self.place.is_some() { self } else { Self::at(text.as_bytes(), at, self.kind) }
    }

    /// Returns what is wrong.
    #[must_use]
    pub const fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// Returns whether the text is too large: in bytes, depth or values.
    #[must_use]
    pub const fn is_bound(&self) -> bool {
        matches!(self.kind, ErrorKind::Bytes(_) | ErrorKind::Depth(_) | ErrorKind::Values(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        match self.place {
            Some(Place { line, column }) => write!(f, " at line {line} column {column}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::without_place(ErrorKind::Type(message.to_string()))
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let shown = match unexpected {
            Unexpected::Unsigned(_) | Unexpected::Signed(_) => Unexpected::Other("a whole number"),
            Unexpected::Float(_) => Unexpected::Other("a number with a fraction"),
            other => hidden(other),
        };
        Self::custom(format_args!("invalid type: {shown}, expected {expected}"))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("invalid value: {}, expected {expected}", hidden(unexpected)))
    }

    fn unknown_variant(_variant: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(format_args!("unknown variant, expected one of {}", listed(expected)))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(format_args!("unknown field `{}`, expected one of {}", shown(field), listed(expected)))
    }
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns what an error shows of a value.
fn hidden(unexpected: Unexpected<'_>) -> Unexpected<'_> {
    match unexpected {
        Unexpected::Str(_) => Unexpected::Other("a string"),
        Unexpected::Bytes(_) => Unexpected::Other("bytes"),
        other => other,
    }
}
