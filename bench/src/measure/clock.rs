//! Provides a single clock for the load generator and the upstream, which share a process.

use std::{sync::OnceLock, time::Instant};

/// Returns nanoseconds since the first call in this process.
#[must_use]
pub fn nanos() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}
