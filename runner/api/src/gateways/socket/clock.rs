//! Reads the clock, for the times in frames.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the present time in milliseconds since 1970.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
