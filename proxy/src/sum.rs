//! Changes shared counters of tokens, money and calls. A counter that is full stays full: one that wrapped would let a
//! limit start again from zero.

use std::sync::atomic::{AtomicU64, Ordering};

/// Adds `amount` to `counter`, at most up to `u64::MAX`.
pub(crate) fn add(counter: &AtomicU64, amount: u64, set_order: Ordering) {
    if amount > 0 {
        counter.update(set_order, Ordering::Relaxed, |counted| counted.saturating_add(amount));
    }
}

/// Replaces `before`, which `counter` includes, by `after`.
pub(crate) fn replace(counter: &AtomicU64, before: u64, after: u64) {
    if before != after {
        let moved = |counted: u64| counted.saturating_sub(before).saturating_add(after);
        counter.update(Ordering::AcqRel, Ordering::Relaxed, moved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_counter_stays_full() {
        let counter = AtomicU64::new(u64::MAX - 1);
        add(&counter, 0, Ordering::Relaxed);
        assert_eq!(counter.load(Ordering::Relaxed), u64::MAX - 1);
        for amount in [1, 1, u64::MAX] {
            add(&counter, amount, Ordering::Relaxed);
            assert_eq!(counter.load(Ordering::Relaxed), u64::MAX);
        }
    }
}
