//! Asks the store for runs that have not ended, once for any number of concurrent readers.

use std::{sync::OnceLock, time::Duration};

use runner_store::{Present, Queue, Store, StoreMetrics};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout},
};

/// Time for which the store's answer is reused.
const MAX_SAMPLE_AGE: Duration = Duration::from_secs(1);
/// Longest wait for the store's answer.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs that have not ended, and the queue, as the store reports them.
pub(super) type StoredRuns = (Present, Queue);

/// Latest answer of the store.
#[derive(Debug, Default)]
pub(super) struct StoreSampler {
    store: OnceLock<Store>,
    wanted: Notify,
    latest: watch::Sender<Option<(Instant, Option<StoredRuns>)>>,
}

/// State of the store for one exposition.
#[derive(Debug)]
pub(super) struct StoreSample {
    /// Answer of the store; absent if it did not come in time.
    pub(super) present: Option<StoredRuns>,
    /// Measurements of the store; absent before it was open.
    pub(super) metered: Option<StoreMetrics>,
}

impl StoreSampler {
    /// Asks `store` whenever a reader wants an answer. Never returns.
    pub(super) async fn serve_samples(&self, store: &Store) {
        // A process opens one store, so the first value stays.
        drop(self.store.set(store.clone()));
        loop {
            self.wanted.notified().await;
            let (present, queue) = tokio::join!(store.present(), store.queue());
            self.latest.send_replace(Some((Instant::now(), present.ok().zip(queue.ok()))));
        }
    }

    pub(super) async fn sample(&self) -> StoreSample {
        let Some(store) = self.store.get() else { return StoreSample { present: None, metered: None } };
        let mut latest = self.latest.subscribe();
        let fresh = |latest: &Option<(Instant, Option<StoredRuns>)>| {
            latest
                .as_ref()
                .filter(|(at, _)| at.elapsed() < MAX_SAMPLE_AGE)
                .map(|(_, present)| present.clone())
        };
        let known = fresh(&latest.borrow_and_update());
        let present = match known {
            Some(present) => present,
            None => {
                self.wanted.notify_one();
                let answered =
                    timeout(STORE_TIMEOUT, latest.changed()).await.is_ok_and(|changed| changed.is_ok());
                if answered { fresh(&latest.borrow()).flatten() } else { None }
            }
        };
        StoreSample { present, metered: Some(store.metered()) }
    }
}
