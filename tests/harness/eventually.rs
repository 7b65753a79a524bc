//! Waits for a condition to become true. The wait is bounded, and its failure reports the last observation.

use std::{
    fmt::Debug,
    future::Future,
    time::{Duration, Instant},
};

/// Longest wait. A machine that several tests share may need it; a test that passes does not wait for it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Observes with `look` until `wanted` accepts the observation, and returns it.
///
/// # Panics
/// If no observation is accepted within [`PATIENCE`], with the last one.
pub async fn eventually<T: Debug, F: Future<Output = T>>(
    what: &str,
    look: impl FnMut() -> F,
    wanted: impl Fn(&T) -> bool,
) -> T {
    eventually_within(PATIENCE, what, look, wanted).await
}

/// Observes with `look` until `wanted` accepts the observation, for at most `patience`, and returns it.
///
/// # Panics
/// If no observation is accepted in time, with the last one.
pub async fn eventually_within<T: Debug, F: Future<Output = T>>(
    patience: Duration,
    what: &str,
    mut look: impl FnMut() -> F,
    wanted: impl Fn(&T) -> bool,
) -> T {
    let deadline = Instant::now() + patience;
    loop {
        let seen = look().await;
        if wanted(&seen) {
            return seen;
        }
        assert!(Instant::now() < deadline, "{what}: not so after {patience:?}; last seen: {seen:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Observes with `look` until two observations, `interval` apart, are equal, and returns the last.
///
/// # Panics
/// If they still change after [`PATIENCE`], with the last two.
pub async fn settled<T: Debug + PartialEq, F: Future<Output = T>>(
    what: &str,
    interval: Duration,
    look: impl Fn() -> F,
) -> T {
    let twice = || async {
        let before = look().await;
        tokio::time::sleep(interval).await;
        (before, look().await)
    };
    eventually(what, twice, |(before, after)| before == after).await.1
}
