//! Formats moments and spans for a terminal.

use std::time::{Duration, UNIX_EPOCH};

use runner_store::UnixMillis;

/// Formats a date and time of day, UTC.
pub(super) fn format_time(time: UnixMillis) -> String {
    let since = Duration::from_millis(u64::try_from(time.0).unwrap_or_default());
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since).to_string()
}

/// Formats a time of day, UTC.
pub(super) fn time_of_day(time: UnixMillis) -> String {
    format_time(time).get(11..19).unwrap_or_default().to_owned()
}

/// Formats the time between two moments, in whole seconds from ten seconds on.
pub(super) fn format_span(from: UnixMillis, to: UnixMillis) -> String {
    let span = from.until(to);
    let shown = if span.as_secs() < 10 { span } else { Duration::from_secs(span.as_secs()) };
    humantime::format_duration(shown).to_string()
}
