//! Bounds how often strangers may try the same thing, over all of them together.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Bound on attempts: some at once, and then one after each interval. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct AttemptLimit {
    at_once: u32,
    interval: Duration,
    /// Time at which all attempts are free again.
    free_at: Arc<Mutex<Option<Instant>>>,
}

impl AttemptLimit {
    /// Allows `at_once` attempts, and one more after each `interval`.
    pub(crate) fn new(at_once: u32, interval: Duration) -> Self {
        Self { at_once, interval, free_at: Arc::default() }
    }

    /// Takes an attempt at the time `now`.
    ///
    /// # Errors
    /// The time until another attempt is free, if all are taken.
    pub(crate) fn take(&self, now: Instant) -> Result<(), Duration> {
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = free_at.map_or(now, |free_at| free_at.max(now));
        let next = begin + self.interval;
        let most = self.interval * self.at_once;
        let ahead = next.duration_since(now);
        if ahead > most {
            return Err(ahead.saturating_sub(most));
        }
        *free_at = Some(next);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_become_free_one_by_one() {
        let limit = AttemptLimit::new(3, Duration::from_secs(2));
        let start = Instant::now();
        let at = |second: u64| limit.take(start + Duration::from_secs(second));
        assert_eq!([at(0), at(0), at(0)], [Ok(()); 3]);
        assert_eq!(at(0), Err(Duration::from_secs(2)));
        assert_eq!(at(1), Err(Duration::from_secs(1)));
        assert_eq!((at(2), at(2)), (Ok(()), Err(Duration::from_secs(2))));
        assert_eq!([at(60), at(60), at(60)], [Ok(()); 3], "no more are saved than at once");
        assert!(at(60).is_err());
    }
}
