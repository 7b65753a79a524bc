//! Shows what a failing test has seen: the ends of logs.

/// Largest part of a log that is shown, in characters.
const MAX_SHOWN: usize = 4000;

/// Prints `text` with the output of the test, if the test is failing.
pub(crate) fn show(text: impl FnOnce() -> String) {
    if std::thread::panicking() {
        #[expect(clippy::print_stderr, reason = "shown with the test that failed")]
        {
            eprintln!("{}", text());
        }
    }
}

/// Returns the end of `log`.
#[must_use]
pub(crate) fn end_of(log: &str) -> &str {
    let start = log.char_indices().rev().nth(MAX_SHOWN).map_or(0, |(at, _)| at);
    &log[start..]
}
