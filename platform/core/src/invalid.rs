//! Defines the error of a value that a person or a program outside gave, and that cannot be used.

/// Fault of a value from outside, in words that follow the value's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidValue(String);

impl InvalidValue {
    /// Returns the fault that another error describes.
    pub fn of(error: impl ToString) -> Self {
        Self(error.to_string())
    }
}

impl From<String> for InvalidValue {
    fn from(words: String) -> Self {
        Self(words)
    }
}

impl From<&str> for InvalidValue {
    fn from(words: &str) -> Self {
        Self(words.to_owned())
    }
}
