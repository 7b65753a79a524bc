//! Asks the store for runs that have not ended, once for any number of concurrent readers.

use std::{sync::OnceLock, time::Duration};

use runner_store::{Metered, Present, Queue, Store};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout},
};

/// Time for which the store's answer is reused.
const FRESH: Duration = Duration::from_secs(1);
/// Longest wait for the store's answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs that have not ended, and the queue, as the store reports them.
pub(super) type Known = (Present, Queue);

/// Latest answer of the store.
#[derive(Debug, Default)]
pub(super) struct Looked {
    store: OnceLock<Store>,
    wanted: Notify,
    seen: watch::Sender<Option<(Instant, Option<Known>)>>,
}

/// State of the store for one exposition.
#[derive(Debug)]
pub(super) struct Shown {
    /// Answer of the store; absent if it did not come in time.
    pub(super) present: Option<Known>,
    /// Measurements of the store; absent before it was open.
    pub(super) metered: Option<Metered>,
}

impl Looked {
    /// Asks `store` whenever a reader wants an answer. Never returns.
    pub(super) async fn answer(&self, store: &Store) {
        // A process opens one store, so the first value stays.
        drop(self.store.set(store.clone()));
        loop {
            self.wanted.notified().await;
            let (present, queue) = tokio::join!(store.present(), store.queue());
            self.seen.send_replace(Some((Instant::now(), present.ok().zip(queue.ok()))));
        }
    }

    pub(super) async fn look(&self) -> Shown {
        let Some(store) = self.store.get() else { return Shown { present: None, metered: None } };
        let mut seen = self.seen.subscribe();
        let fresh = |seen: &Option<(Instant, Option<Known>)>| {
            seen.as_ref().filter(|(at, _)| at.elapsed() < FRESH).map(|(_, present)| present.clone())
        };
        let known = fresh(&seen.borrow_and_update());
        let present = match known {
            Some(present) => present,
            None => {
                self.wanted.notify_one();
                let answered = timeout(PATIENCE, seen.changed()).await.is_ok_and(|changed| changed.is_ok());
                if answered { fresh(&seen.borrow()).flatten() } else { None }
            }
        };
        Shown { present, metered: Some(store.metered()) }
    }
}
