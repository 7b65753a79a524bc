//! Cancels a run once no client waits for its answer.
//!
//! A request that is repeated under its idempotency key waits for the same run. The client that leaves first must not take
//! the answer from the others.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use platform_core::id::RunId;
use platform_runtime::{report, task};
use runner_store::{Error, Store};
use tokio::time::sleep;

/// Time in which a client that has lost its connection may repeat its request.
const REPEAT_TIMEOUT: Duration = Duration::from_secs(2);

/// Numbers of clients that wait for answers, by run. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Waiters(Arc<Mutex<HashMap<RunId, usize>>>);

/// Client that waits for the answer of a run. Its drop cancels the run, unless the run has ended or others wait.
#[derive(Debug)]
pub(crate) struct Waiter {
    waiters: Waiters,
    store: Store,
    pub(crate) run_id: RunId,
    pub(crate) has_ended: bool,
    repeat: Repeat,
}

/// Possibility that the client repeats its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// A repeated request is the same run, because it has an idempotency key.
    SameRun,
    /// A repeated request is another run.
    OtherRun,
}

impl Waiters {
    /// Adds a client that waits for `run_id`.
    pub(crate) fn wait(&self, store: &Store, run_id: &RunId, repeat: Repeat) -> Waiter {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *waiting.entry(run_id.clone()).or_default() += 1;
        drop(waiting);
        let waiters = self.clone();
        Waiter { waiters, store: store.clone(), run_id: run_id.clone(), has_ended: false, repeat }
    }

    fn leave(&self, run_id: &RunId) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = waiting.get_mut(run_id) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(run_id);
            }
        }
    }

    fn is_awaited(&self, run_id: &RunId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(run_id)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.waiters.leave(&self.run_id);
        if self.has_ended {
            return;
        }
        let waiters = self.waiters.clone();
        let store = self.store.clone();
        let run_id = self.run_id.clone();
        let repeat = self.repeat;
        task::spawn("cancel", async move {
            if repeat == Repeat::SameRun {
                sleep(REPEAT_TIMEOUT).await;
            }
            if waiters.is_awaited(&run_id) {
                return;
            }
            match store.request_cancel(&run_id).await {
                // The client left before its run was stored.
                Ok(_) | Err(Error::Unknown { .. }) => {}
                Err(error) => {
                    let error = report::chain(&error);
                    tracing::warn!(run = %run_id, error, "run not cancelled, though its client has left");
                }
            }
        });
    }
}
