//! Defines times of the database's clock.

use std::time::Duration;

use platform_core::limit::Millis;
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

    /// Returns the time `span` before this one.
    #[must_use]
    pub fn before(self, span: Millis) -> Self {
        Self(self.0.saturating_sub(signed(span)))
    }

    /// Returns the time `span` after this one.
    #[must_use]
    pub fn after(self, span: Millis) -> Self {
        Self(self.0.saturating_add(signed(span)))
    }
}

fn signed(span: Millis) -> i64 {
    i64::try_from(span.0).unwrap_or(i64::MAX)
}
