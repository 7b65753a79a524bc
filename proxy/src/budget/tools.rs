//! Enforces the limits of a run's calls of host tools. They are apart from those of model calls: neither uses up the
//! other's.

use std::{sync::Arc, time::Duration};

use platform_core::host_tools::ToolLimits;

use super::{
    quota::{Quota, QuotaShortfall},
    rate::Rate,
};

/// Calls of host tools that a run has made and is making.
#[derive(Debug)]
pub(crate) struct ToolSpending {
    rate: Rate,
    calls: Quota,
    in_flight: Quota,
}

/// Reason that a call of a host tool may not be made now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolQuotaError {
    /// The call comes too early, by this duration.
    RateLimited(Duration),
    /// As many calls are in flight as there may be.
    InFlight,
    /// The run has made all its calls, or those in flight may be its last.
    Calls(QuotaShortfall),
}

/// A call that counts as in flight. Unless it is settled, it counts no more once this is dropped.
#[derive(Debug)]
pub(crate) struct ToolReservation {
    spending: Arc<ToolSpending>,
    used: u64,
}

impl ToolSpending {
    /// Returns the spending of a run that has made `calls` calls so far.
    pub(crate) fn new(limits: &ToolLimits, calls: u64) -> Self {
        Self {
            rate: Rate::new(Some(limits.calls_per_minute)),
            calls: Quota::new(limits.calls, calls),
            in_flight: Quota::new(limits.calls_in_flight, 0),
        }
    }

    /// Replaces the limits. Calls that were made stay counted.
    pub(crate) fn set_limits(&self, limits: &ToolLimits) {
        self.rate.set_limit(Some(limits.calls_per_minute));
        self.calls.set_limit(limits.calls);
        self.in_flight.set_limit(limits.calls_in_flight);
    }

    /// Counts a call that comes at `now`, since an arbitrary fixed moment, against the rate, whatever becomes of it.
    pub(crate) fn pace(&self, now: Duration) -> Result<(), ToolQuotaError> {
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.rate.take(now).map(drop).map_err(ToolQuotaError::RateLimited)
    }

    /// Counts a call as in flight.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<ToolReservation, ToolQuotaError> {
        self.in_flight.reserve(1).map_err(|_shortfall| ToolQuotaError::InFlight)?;
        self.calls.reserve(1).map_err(|shortfall| {
            self.in_flight.settle(1, 0);
            ToolQuotaError::Calls(shortfall)
        })?;
        Ok(ToolReservation { spending: Arc::clone(self), used: 0 })
    }
}

impl ToolReservation {
    /// Settles the call as made.
    pub(crate) fn settle(mut self) {
        self.used = 1;
    }
}

impl Drop for ToolReservation {
    fn drop(&mut self) {
        self.spending.calls.settle(1, self.used);
        self.spending.in_flight.settle(1, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spending(calls: u64, in_flight: u64) -> Arc<ToolSpending> {
        let limits =
            ToolLimits { calls, calls_in_flight: in_flight, calls_per_minute: 2, ..ToolLimits::default() };
        Arc::new(ToolSpending::new(&limits, 1))
    }

    #[test]
    fn only_settled_calls_are_used_up() {
        let spending = spending(3, 9);
        drop(spending.enter().unwrap());
        spending.enter().unwrap().settle();
        let last = spending.enter().unwrap();
        assert_eq!(spending.enter().unwrap_err(), ToolQuotaError::Calls(QuotaShortfall::Reserved));
        last.settle();
        assert_eq!(
            spending.enter().unwrap_err(),
            ToolQuotaError::Calls(QuotaShortfall::Exhausted { needed: 1, left: 0 })
        );
        spending.set_limits(&ToolLimits::default());
        drop(spending.enter().unwrap());
    }

    #[test]
    fn calls_in_flight_are_bounded() {
        let spending = spending(99, 1);
        let one = spending.enter().unwrap();
        assert_eq!(spending.enter().unwrap_err(), ToolQuotaError::InFlight);
        drop(one);
        drop(spending.enter().unwrap());
    }

    #[test]
    fn calls_are_paced() {
        let spending = spending(99, 1);
        let passed = (0..9).filter(|_| spending.pace(Duration::ZERO).is_ok()).count();
        assert_eq!(passed, 2);
    }
}
