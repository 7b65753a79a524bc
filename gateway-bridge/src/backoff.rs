//! Computes the pauses between attempts to connect.
//!
//! Each pause is double the one before it, with jitter from a seed. So the clients of one gateway do not all come back
//! at once, and a test sees the same pauses every time.

use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    attempts: u32,
    state: u64,
}

impl Backoff {
    pub(crate) const fn new(first: Duration, longest: Duration, seed: u64) -> Self {
        Self { first, longest, attempts: 0, state: seed }
    }

    /// Returns the next pause: between half of `first`, doubled with each attempt, and all of it. It is at least what
    /// was `asked` for, and never more than the longest.
    pub(crate) fn next(&mut self, asked: Option<Duration>) -> Duration {
        let doubled = self.first.saturating_mul(1_u32.checked_shl(self.attempts).unwrap_or(u32::MAX));
        self.attempts = self.attempts.saturating_add(1).min(31);
        let most = doubled.min(self.longest);
        let half = most / 2;
        let jitter = u64::try_from(half.as_micros()).unwrap_or(u64::MAX);
        let pause = half + Duration::from_micros(self.random() % jitter.saturating_add(1));
        pause.max(asked.unwrap_or_default()).min(self.longest)
    }

    /// Starts again with the first pause, because a connection was made.
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

    fn pauses(seed: u64) -> Vec<Duration> {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2), seed);
        (0..40).map(|_| backoff.next(None)).collect()
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_depend_on_the_seed_alone() {
        assert_eq!(pauses(7), pauses(7));
        assert_ne!(pauses(7), pauses(8));
        for (attempt, pause) in pauses(7).into_iter().enumerate() {
            let most = Duration::from_millis(100 << attempt.min(10)).min(Duration::from_secs(2));
            assert!(pause >= most / 2 && pause <= most, "attempt {attempt}: {pause:?} of {most:?}");
        }
    }

    #[test]
    fn what_a_gateway_asks_for_is_kept_within_the_longest() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2), 0);
        assert_eq!(backoff.next(Some(Duration::from_millis(500))), Duration::from_millis(500));
        assert_eq!(backoff.next(Some(Duration::from_secs(60))), Duration::from_secs(2));
        backoff.reset();
        assert!(backoff.next(None) <= Duration::from_millis(100));
    }

    #[test]
    fn no_first_pause_and_a_great_one_do_no_harm() {
        assert_eq!(Backoff::new(Duration::ZERO, Duration::ZERO, 0).next(None), Duration::ZERO);
        let mut great = Backoff::new(Duration::MAX, Duration::MAX, 0);
        (0..70).for_each(|_| assert!(great.next(None) > Duration::from_secs(1)));
    }
}
