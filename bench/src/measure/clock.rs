//! One clock for the load generator and the upstream, which share a process.

use std::{sync::OnceLock, time::Instant};

/// Nanoseconds since this process first asked.
#[must_use]
pub fn nanos() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}
