//! Waiting for something to become true: bounded, level-triggered, and telling what it last saw.

use std::{
    fmt::Debug,
    future::Future,
    time::{Duration, Instant},
};

/// Longest wait. Generous, because a machine may be busy; a test that passes does not wait for it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Looks again and again until `wanted` holds of what it sees, and returns that.
///
/// # Panics
/// If it does not come true, with the last thing seen.
pub async fn eventually<T: Debug, F: Future<Output = T>>(
    what: &str,
    look: impl FnMut() -> F,
    wanted: impl Fn(&T) -> bool,
) -> T {
    eventually_within(PATIENCE, what, look, wanted).await
}

/// The same, for what takes longer than anything should.
///
/// # Panics
/// If it does not come true within `patience`, with the last thing seen.
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
