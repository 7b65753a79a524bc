//! Tells how long this process may rely on a lease that it acquired or renewed.
//!
//! Moments are of the boot clock, which neither stops while the host sleeps nor follows a clock that is set.

use std::time::Duration;

use platform_core::limit::Millis;
use rustix::time::{ClockId, clock_gettime};

/// Renewals within the time of one lease, so that some may fail.
pub(crate) const RENEWALS_PER_LEASE: u32 = 4;
/// Returns the moment until which no other process can have taken over what was leased or renewed not before `since` of
/// [`boot_now`].
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
