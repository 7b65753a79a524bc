//! Limits the rate of calls with the generic cell rate algorithm (ITU-T I.371), one compare-and-swap a call.
//!
//! A pause of a minute or more saves up a minute's worth of calls, and no more.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

const MINUTE: u64 = 60_000_000_000;

const NO_LIMIT: u64 = u64::MAX;

/// Limit of calls a minute. Times are nanoseconds since an arbitrary fixed moment.
#[derive(Debug)]
pub(super) struct Rate {
    /// Calls a minute; [`NO_LIMIT`] without a limit.
    per_minute: AtomicU64,
    /// Time at which the next call would be due if all came evenly.
    due: AtomicU64,
}

impl Rate {
    pub(super) fn new(per_minute: Option<u64>) -> Self {
        Self { per_minute: AtomicU64::new(per_minute.unwrap_or(NO_LIMIT)), due: AtomicU64::new(0) }
    }

    pub(super) fn set_limit(&self, per_minute: Option<u64>) {
        self.per_minute.store(per_minute.unwrap_or(NO_LIMIT), Ordering::Relaxed);
    }

    pub(super) fn allowed(&self) -> Option<u64> {
        Some(self.per_minute.load(Ordering::Relaxed)).filter(|per_minute| *per_minute != NO_LIMIT)
    }

    /// Counts a call that comes `now`, and returns its share of the rate. The error says by how much it comes too
    /// early.
    pub(super) fn take(&self, now: u64) -> Result<RateShare, Duration> {
        let Some(per_minute) = self.allowed() else { return Ok(RateShare(0)) };
        let Some(interval) = MINUTE.checked_div(per_minute) else { return Err(Duration::from_nanos(MINUTE)) };
        let interval = interval.max(1);
        let burst = MINUTE - interval;
        let next = |due: u64| {
            let due = due.max(now);
            (due - now <= burst).then_some(due + interval)
        };
        let taken = self.due.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        match taken {
            Ok(_) => Ok(RateShare(interval)),
            Err(due) => Err(Duration::from_nanos(due.saturating_sub(now).saturating_sub(burst))),
        }
    }

    /// Undoes the count of a call that is not made.
    pub(super) fn give_back(&self, RateShare(interval): RateShare) {
        // The due time is never less than the shares taken of it.
        self.due.fetch_sub(interval, Ordering::Relaxed);
    }
}

/// Share of the rate that a call took, to be given back if it is not made.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(super) struct RateShare(u64);

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Returns how many of `tries` calls at `now` pass.
    fn passed(rate: &Rate, now: u64, tries: usize) -> usize {
        (0..tries).filter(|_| rate.take(now).is_ok()).count()
    }

    #[test]
    fn a_minute_of_calls_may_come_at_once() {
        let rate = Rate::new(Some(60));
        assert_eq!(passed(&rate, 0, 100), 60);
        assert_eq!(rate.take(0), Err(Duration::from_secs(1)));
        assert_eq!(passed(&rate, SECOND, 10), 1);
        assert_eq!(passed(&rate, 11 * SECOND, 20), 10);
        assert_eq!(passed(&rate, 1000 * SECOND, 100), 60, "no more is ever saved up");
    }

    #[test]
    fn a_rate_given_back_can_be_taken_again() {
        let rate = Rate::new(Some(3));
        for _ in 0..100 {
            rate.give_back(rate.take(0).unwrap());
        }
        assert_eq!(passed(&rate, 0, 100), 3);
        let free = Rate::new(None);
        free.give_back(free.take(0).unwrap());
        assert_eq!(passed(&free, 0, 100), 100);
    }

    #[test]
    fn a_limit_can_be_changed_and_taken_away() {
        let rate = Rate::new(Some(1));
        assert_eq!(passed(&rate, 0, 3), 1);
        rate.set_limit(None);
        assert_eq!(passed(&rate, 0, 1000), 1000);
        rate.set_limit(Some(0));
        assert_eq!(passed(&rate, 0, 3), 0);
        rate.set_limit(Some(2));
        assert_eq!(passed(&rate, 61 * SECOND, 9), 2);
    }

    #[test]
    fn no_minute_passes_more_than_twice_the_limit() {
        let rate = Rate::new(Some(30));
        let times: Vec<u64> = (0..4000).map(|n| n * 37 % 200 * SECOND).collect();
        let mut sorted = times;
        sorted.sort_unstable();
        let passed: Vec<u64> = sorted.into_iter().filter(|now| rate.take(*now).is_ok()).collect();
        for start in &passed {
            let within = passed.iter().filter(|time| (*start..start + MINUTE).contains(*time)).count();
            assert!(within <= 60, "{within} within a minute from {start}");
        }
        assert!(passed.len() > 100);
    }
}
