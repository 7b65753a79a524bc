//! Waits for conditions that send no notification, by polling.

use std::time::Duration;

use tokio::time::Instant;

use crate::clock::{Clock, SystemClock};

/// Calls `probe` at once and then every `interval`, until it returns a value.
pub async fn poll<T>(interval: Duration, probe: impl AsyncFnMut() -> Option<T>) -> T {
    poll_by(&SystemClock, interval, probe).await
}

/// Calls `probe` at once and then every `interval`, until it returns a value. Returns `None` once `deadline` has
/// passed, but does not interrupt the probe.
pub async fn poll_until<T>(
    deadline: Instant,
    interval: Duration,
    probe: impl AsyncFnMut() -> Option<T>,
) -> Option<T> {
    poll_until_by(&SystemClock, deadline, interval, probe).await
}

async fn poll_by<T>(clock: &impl Clock, interval: Duration, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        clock.sleep(interval).await;
    }
}

async fn poll_until_by<T>(
    clock: &impl Clock,
    deadline: Instant,
    interval: Duration,
    mut probe: impl AsyncFnMut() -> Option<T>,
) -> Option<T> {
    loop {
        if let Some(value) = probe().await {
            return Some(value);
        }
        if clock.now() >= deadline {
            return None;
        }
        clock.sleep(interval).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::tests::{TestClock, run};

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_probe_is_asked_until_it_answers() {
        let clock = TestClock::new();
        let mut left = 3;
        let value = poll_by(&clock, SECOND, async || {
            left -= 1;
            (left == 0).then_some("here")
        });
        assert_eq!((run(value), clock.elapsed()), (Some("here"), 2 * SECOND));
    }

    #[test]
    fn a_deadline_ends_the_wait_after_one_probe() {
        let clock = TestClock::new();
        let mut polls = 0;
        for (wait, expected) in [(0, 1), (3, 4)] {
            polls = 0;
            let probe = async || {
                polls += 1;
                None::<()>
            };
            let deadline = clock.now() + wait * SECOND;
            assert_eq!(run(poll_until_by(&clock, deadline, SECOND, probe)), Some(None));
            assert_eq!(polls, expected);
        }
        assert_eq!((clock.elapsed(), polls), (3 * SECOND, 4));
    }
}
