//! Counts one limited amount that many threads draw on: its limit, its usage, and its reservations.
//!
//! It never grants too much. Near the limit it may briefly refuse an amount that would have fitted. It uses no locks.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::sum;

/// Largest amount a call may set aside, and more than any needs. Even for the greatest number of calls in flight the
/// sum stays below 2^64.
const MAX_RESERVATION: u64 = 1 << 44;

/// No limit.
pub(super) const UNLIMITED: u64 = u64::MAX;

/// An amount that can be drawn on.
#[derive(Debug)]
pub(super) struct Quota {
    allowed: AtomicU64,
    used: AtomicU64,
    reserved: AtomicU64,
}

/// Reason that an amount cannot be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuotaShortfall {
    /// There is not enough left, whatever becomes of the calls in flight.
    Exhausted {
        /// Amount that was asked for.
        needed: u64,
        /// Amount that is not used.
        left: u64,
    },
    /// There may be enough once calls in flight have ended.
    Reserved,
}

impl Quota {
    pub(super) const fn new(allowed: u64, used: u64) -> Self {
        Self { allowed: AtomicU64::new(allowed), used: AtomicU64::new(used), reserved: AtomicU64::new(0) }
    }

    pub(super) fn set_limit(&self, allowed: u64) {
        self.allowed.store(allowed, Ordering::Release);
    }

    pub(super) fn allowed(&self) -> Option<u64> {
        Some(self.allowed.load(Ordering::Acquire)).filter(|allowed| *allowed != UNLIMITED)
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Acquire)
    }

    pub(super) fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::Acquire)
    }

    /// Returns the amount that is not used, reserved or not; [`UNLIMITED`] without a limit.
    pub(super) fn unused(&self) -> u64 {
        match self.allowed() {
            Some(allowed) => allowed.saturating_sub(self.used()),
            None => UNLIMITED,
        }
    }

    /// Sets `amount` aside. Without an amount it only reads, so that calls share no written memory for what they do not
    /// need.
    pub(super) fn reserve(&self, amount: u64) -> Result<(), QuotaShortfall> {
        if amount == 0 {
            let is_covered = self.reserved() <= self.unused();
            return if is_covered { Ok(()) } else { Err(QuotaShortfall::Reserved) };
        }
        let left = self.unused();
        if amount > left.min(MAX_RESERVATION) {
            return Err(QuotaShortfall::Exhausted { needed: amount, left });
        }
        // Adds first and compares second: of two concurrent reservations, at least one sees the other. Usage is read
        // after reservations, and `settle` writes them in the opposite order, so no amount is missed in between.
        let reserved = self.reserved.fetch_add(amount, Ordering::AcqRel) + amount;
        if reserved <= self.unused() {
            return Ok(());
        }
        self.reserved.fetch_sub(amount, Ordering::AcqRel);
        let left = self.unused();
        Err(if amount > left {
            QuotaShortfall::Exhausted { needed: amount, left }
        } else {
            QuotaShortfall::Reserved
        })
    }

    /// Turns a reservation into the usage that it really became.
    pub(super) fn settle(&self, reserved: u64, used: u64) {
        if used > 0 {
            sum::add(&self.used, used, Ordering::AcqRel);
        }
        if reserved > 0 {
            self.reserved.fetch_sub(reserved, Ordering::AcqRel);
        }
    }

    /// Replaces the usage of a call that has ended.
    pub(super) fn correct(&self, before: u64, after: u64) {
        sum::replace(&self.used, before, after);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Quota that writes for every amount, zero or not.
    #[derive(Debug)]
    struct WritingQuota {
        allowed: u64,
        used: u64,
        reserved: u64,
    }

    impl WritingQuota {
        fn reserve(&mut self, amount: u64) -> Result<(), QuotaShortfall> {
            let unused = match self.allowed {
                UNLIMITED => UNLIMITED,
                allowed => allowed.saturating_sub(self.used),
            };
            if amount > unused.min(MAX_RESERVATION) {
                return Err(QuotaShortfall::Exhausted { needed: amount, left: unused });
            }
            if self.reserved + amount > unused {
                return Err(QuotaShortfall::Reserved);
            }
            self.reserved += amount;
            Ok(())
        }

        fn settle(&mut self, reserved: u64, used: u64) {
            self.used = self.used.saturating_add(used);
            self.reserved -= reserved;
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Limit(u64),
        Reserve(u64),
        Settle(usize, u64),
    }

    fn amount() -> impl Strategy<Value = u64> {
        prop_oneof![2 => Just(0), 3 => 0_u64..50, 1 => any::<u64>()]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            1 => amount().prop_map(Step::Limit),
            4 => amount().prop_map(Step::Reserve),
            3 => (any::<usize>(), amount()).prop_map(|(at, used)| Step::Settle(at, used)),
        ]
    }

    proptest! {
        #[test]
        fn skipping_zeros_gives_the_same_verdicts(steps in prop::collection::vec(step(), 0..80)) {
            let quota = Quota::new(100, 0);
            let mut writing = WritingQuota { allowed: 100, used: 0, reserved: 0 };
            let mut held = Vec::new();
            for step in steps {
                match step {
                    Step::Limit(allowed) => {
                        quota.set_limit(allowed);
                        writing.allowed = allowed;
                    }
                    Step::Reserve(amount) => {
                        let verdict = quota.reserve(amount);
                        prop_assert_eq!(verdict, writing.reserve(amount));
                        held.extend(verdict.is_ok().then_some(amount));
                    }
                    Step::Settle(at, used) if !held.is_empty() => {
                        let reserved = held.swap_remove(at % held.len());
                        quota.settle(reserved, used);
                        writing.settle(reserved, used);
                    }
                    Step::Settle(..) => {}
                }
                prop_assert_eq!((quota.used(), quota.reserved()), (writing.used, writing.reserved));
            }
        }
    }
}
