//! Calculates the time for which this process may rely on a lease that it acquired or renewed.
//!
//! Moments are of the boot clock. It runs on while the host sleeps, and is not affected when the wall clock is set.

use std::time::Duration;

use platform_core::limit::Millis;
use rustix::time::{ClockId, clock_gettime};

/// Renewals within the time of one lease, so that some may fail.
pub(crate) const RENEWALS_PER_LEASE: u32 = 4;

/// Returns the moment until which no other process can take over a `lease`. `since` is a moment of [`boot_now`] shortly
/// before the lease was acquired or renewed.
pub(crate) fn held_until(since: Duration, lease: Millis) -> Duration {
    let lease = lease.duration();
    // Clocks run at slightly different speeds.
    since + lease - lease / 8
}

/// Returns the time since the host was started, its sleep included.
pub(crate) fn boot_now() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default())
}
