//! Writes times as clients read them.

use std::time::{Duration, UNIX_EPOCH};

use runner_store::UnixMillis;

/// Formats a time as RFC 3339 with milliseconds.
pub(crate) fn rfc3339(time: UnixMillis) -> String {
    let since = Duration::from_millis(u64::try_from(time.0).unwrap_or_default());
    humantime::format_rfc3339_millis(UNIX_EPOCH + since).to_string()
}
