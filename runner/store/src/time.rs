//! Defines times of the database's clock.

use std::time::Duration;

use serde::Serialize;

/// Time by the database's clock, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct UnixMillis(pub i64);

impl UnixMillis {
    /// Returns the duration from this time to `later`; zero if that is not later.
    #[must_use]
    pub fn until(self, later: Self) -> Duration {
        Duration::from_millis(u64::try_from(later.0 - self.0).unwrap_or_default())
    }
}
