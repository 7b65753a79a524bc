//! Reads the time of day, and issues call ids.

use std::{
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use platform_core::id::CallId;
use platform_runtime::random;

/// Returns the time since the epoch; a clock set before 1970 reads as 1970.
pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Converts `moment` to a clock that never goes back: the time since the first call in this process.
pub(crate) fn uptime(moment: Instant) -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    moment.saturating_duration_since(*START)
}

/// Formats `time` as RFC 3339, UTC, with microseconds.
pub(crate) fn rfc3339(time: Duration) -> String {
    humantime::format_rfc3339_micros(SystemTime::UNIX_EPOCH + time).to_string()
}

/// Issuer of call ids: a random start, then counting. One per data-plane thread.
#[derive(Debug)]
pub(crate) struct CallIds {
    start: u128,
    next: AtomicU64,
}

impl CallIds {
    pub(crate) fn new() -> Self {
        Self { start: random::bits(), next: AtomicU64::new(0) }
    }

    /// Returns the id of a call that begins `now`.
    pub(crate) fn next(&self, now: Duration) -> CallId {
        let count = u128::from(self.next.fetch_add(1, Ordering::Relaxed));
        let unix_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        CallId::new(unix_ms, self.start.wrapping_add(count))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_of_one_moment_differ() {
        let (ids, now) = (CallIds::new(), now());
        let distinct: HashSet<_> = (0..1000).map(|_| ids.next(now)).collect();
        assert_eq!(distinct.len(), 1000);
    }
}
