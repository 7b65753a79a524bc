//! Prints an error on stderr for a person, once and with its whole chain of causes.

use std::error::Error;

/// Prints `error` and its causes, each on a line of its own.
#[expect(clippy::print_stderr, reason = "this is where a command says why it failed")]
pub fn error(program: &str, error: &dyn Error) {
    eprintln!("{program}: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        eprintln!("  because: {error}");
        cause = error.source();
    }
}

/// Returns `error` and its causes in one line, for a log or an answer.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
