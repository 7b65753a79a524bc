//! Waits for a condition to become true. The wait is bounded, and its failure reports the last observation.

use std::{
    fmt::Debug,
    future::Future,
    time::{Duration, Instant},
};

/// Longest wait. A busy machine may need it; a test that passes does not wait for it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Observes with `look` until `wanted` accepts the observation, and returns it.
///
/// # Panics
/// If no observation is accepted within 10 s, with the last one.
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
