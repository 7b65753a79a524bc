//! Waits for conditions that send no notification, by polling.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Calls `probe` at once and then every `interval`, until it returns a value.
pub async fn poll<T>(interval: Duration, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        sleep(interval).await;
    }
}

/// Calls `probe` at once and then every `interval`, until it returns a value. Returns `None` once `deadline` has
/// passed, but does not interrupt the probe.
pub async fn poll_until<T>(
    deadline: Instant,
    interval: Duration,
    mut probe: impl AsyncFnMut() -> Option<T>,
) -> Option<T> {
    loop {
        if let Some(value) = probe().await {
            return Some(value);
        }
        if Instant::now() >= deadline {
            return None;
        }
        sleep(interval).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_probe_is_asked_until_it_answers() {
        let began = Instant::now();
        let mut left = 3;
        let value = poll(SECOND, async || {
            left -= 1;
            (left == 0).then_some("here")
        });
        assert_eq!((value.await, began.elapsed()), ("here", 2 * SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_ends_the_wait_after_one_probe() {
        let began = Instant::now();
        let mut polls = 0;
        for (wait, expected) in [(0, 1), (3, 4)] {
            polls = 0;
            let probe = async || {
                polls += 1;
                None::<()>
            };
            assert_eq!(poll_until(Instant::now() + wait * SECOND, SECOND, probe).await, None);
            assert_eq!(polls, expected);
        }
        assert_eq!((began.elapsed(), polls), (3 * SECOND, 4));
    }
}
