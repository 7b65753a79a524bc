//! pace names the time that a test spends without a condition: pauses of a scripted peer, and spans in which nothing may
//! change. A test waits for everything else by [`eventually`](fn@crate::eventually).

use std::{fmt::Debug, future::Future, time::Duration};

use tokio::time::{Instant, sleep};

/// Observations in a span, so that those that start a process leave the machine to the product.
const LOOKS: u32 = 20;

/// Pauses a scripted peer, a slow client, a random play or a poll between two of its steps. Nothing may be asserted
/// only because the pause is over.
pub async fn pace(pause: Duration) {
    sleep(pause).await;
}

/// Observes with `look` again and again for `span`, and returns the last observation.
///
/// # Panics
/// If `is_so` does not accept an observation.
pub async fn holds_for<T: Debug, F: Future<Output = T>>(
    span: Duration,
    what: &str,
    mut look: impl FnMut() -> F,
    is_so: impl Fn(&T) -> bool,
) -> T {
    let end = Instant::now() + span;
    loop {
        let is_last = Instant::now() >= end;
        let seen = look().await;
        assert!(is_so(&seen), "{what}: no longer so within {span:?}: {seen:?}");
        if is_last {
            return seen;
        }
        sleep(span / LOOKS).await;
    }
}
