//! Computes the delays between attempts to connect.
//!
//! Each delay is double the one before it, with jitter from a seed. So the clients of one gateway do not all come back
//! at once, and a test sees the same delays every time.

use std::time::Duration;

/// Delays that double up to a longest one, with jitter.
#[derive(Debug)]
pub(crate) struct JitteredBackoff {
    first: Duration,
    longest: Duration,
    attempts: u32,
    state: u64,
}

impl JitteredBackoff {
    pub(crate) const fn new(first: Duration, longest: Duration, seed: u64) -> Self {
        Self { first, longest, attempts: 0, state: seed }
    }

    /// Returns the next delay: between half of `first`, doubled with each attempt, and all of it. It is at least
    /// `requested`, and never more than `longest`.
    pub(crate) fn next_delay(&mut self, requested: Option<Duration>) -> Duration {
        let doubled = self.first.saturating_mul(1_u32.checked_shl(self.attempts).unwrap_or(u32::MAX));
        self.attempts = self.attempts.saturating_add(1).min(31);
        let most = doubled.min(self.longest);
        let half = most / 2;
        let jitter = u64::try_from(half.as_micros()).unwrap_or(u64::MAX);
        let delay = half + Duration::from_micros(self.random() % jitter.saturating_add(1));
        delay.max(requested.unwrap_or_default()).min(self.longest)
    }

    /// Starts again with the first delay, because a connection was opened.
    pub(crate) const fn reset(&mut self) {
        self.attempts = 0;
    }

    /// Returns the next number of SplitMix64, which is enough to spread clients.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(seed: u64) -> Vec<Duration> {
        let mut backoff = JitteredBackoff::new(Duration::from_millis(100), Duration::from_secs(2), seed);
        (0..40).map(|_| backoff.next_delay(None)).collect()
    }

    #[test]
    fn delays_double_and_depend_on_the_seed_alone() {
        assert_eq!(delays(7), delays(7));
        assert_ne!(delays(7), delays(8));
        for (attempt, delay) in delays(7).into_iter().enumerate() {
            let most = Duration::from_millis(100 << attempt.min(10)).min(Duration::from_secs(2));
            assert!(delay >= most / 2 && delay <= most, "attempt {attempt}: {delay:?} of {most:?}");
        }
    }

    #[test]
    fn a_requested_delay_is_capped() {
        let mut backoff = JitteredBackoff::new(Duration::from_millis(100), Duration::from_secs(2), 0);
        assert_eq!(backoff.next_delay(Some(Duration::from_millis(500))), Duration::from_millis(500));
        assert_eq!(backoff.next_delay(Some(Duration::from_secs(60))), Duration::from_secs(2));
        backoff.reset();
        assert!(backoff.next_delay(None) <= Duration::from_millis(100));
    }

    #[test]
    fn zero_and_huge_delays_are_safe() {
        assert_eq!(JitteredBackoff::new(Duration::ZERO, Duration::ZERO, 0).next_delay(None), Duration::ZERO);
        let mut great = JitteredBackoff::new(Duration::MAX, Duration::MAX, 0);
        (0..70).for_each(|_| assert!(great.next_delay(None) > Duration::from_secs(1)));
    }
}
