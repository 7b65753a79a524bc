//! Queues callbacks of LiteLLM for the task that reconciles receipts.

use axum::body::Bytes;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Most callbacks that wait to be read. Later ones are dropped.
const MAX_WAITING: usize = 2;

/// Queue of callbacks that were taken.
#[derive(Debug, Clone)]
pub struct Callbacks(Sender<Bytes>);

impl Callbacks {
    /// Returns the queue and its end, from which bodies are read.
    #[must_use]
    pub fn channel() -> (Self, Receiver<Bytes>) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        (Self(sender), receiver)
    }

    /// Adds a callback, unless the queue is full: a reader that has not come to the others looks into the ledger anyway.
    pub(crate) fn add(&self, body: Bytes) {
        if self.0.try_send(body).is_err() {
            tracing::debug!("callback dropped: others wait already");
        }
    }
}
