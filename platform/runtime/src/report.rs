//! Prints an error on stderr for a person, once and with its whole chain of causes.

use std::{
    error::Error,
    io::{self, Write},
};

/// Prints `error` and its causes, each on its own line.
pub fn error(program: &str, error: &dyn Error) {
    let mut text = format!("{program}: {error}\n");
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!("  because: {error}\n");
        cause = error.source();
    }
    // A reader that has closed standard error does not want the text; the exit code says the rest.
    drop(io::stderr().write_all(text.as_bytes()));
}

/// Error of which only the text is kept, with those of its causes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ErrorText(pub String);

impl ErrorText {
    /// Returns the text of `error` and its causes.
    #[must_use]
    pub fn of(error: &dyn Error) -> Self {
        Self(chain(error))
    }
}

/// Returns `error` and its causes in one line, for a log or an answer.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
