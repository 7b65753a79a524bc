//! Parses whole numbers of options.

/// Parses the number of a limit.
///
/// # Errors
/// If `text` is not a whole number, with an example of one.
pub(super) fn parse_count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_not_a_count| "expected a whole number such as 50000".to_owned())
}
