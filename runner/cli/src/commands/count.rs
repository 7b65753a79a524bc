//! Parses whole numbers of options.

use platform_core::invalid::InvalidValue;

/// Parses the number of a limit.
///
/// # Errors
/// If `text` is not a whole number, with an example of one.
pub(super) fn parse_count(text: &str) -> Result<u64, InvalidValue> {
    text.parse().map_err(|_not_a_count| "expected a whole number such as 50000".into())
}
