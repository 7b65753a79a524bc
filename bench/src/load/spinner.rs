//! Keeps a load generator awake, so that neither it nor the upstream in the same thread is ever woken.
//!
//! Waking a sleeping processor costs the sender microseconds, on virtual machines tens of them. A slow peer lets the
//! generator sleep more often than a fast one, and so pays more for the same work. Beside a generator that spins, that
//! part of the cost is gone.

use tokio::task::{JoinHandle, yield_now};

use crate::spawn;

/// A task that keeps its runtime from waiting, until it is dropped.
#[derive(Debug)]
pub struct Spinner(JoinHandle<()>);

impl Spinner {
    /// Starts to spin in the current runtime, which then asks for events without waiting for them.
    #[must_use]
    pub fn start() -> Self {
        Self(spawn(async {
            loop {
                yield_now().await;
            }
        }))
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.abort();
    }
}
