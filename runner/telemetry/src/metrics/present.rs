//! Reads the numbers of live runs from the store, once for any number of concurrent readers.

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

/// Numbers of live runs, and the queue, as the store reports them.
pub(super) type StoredRuns = (Present, Queue);

/// Reader of the store that shares its latest answer.
#[derive(Debug, Default)]
pub(super) struct StoreSampler {
    store: OnceLock<Store>,
    requested: Notify,
    latest: watch::Sender<Option<(Instant, Option<StoredRuns>)>>,
}

/// Measurements of the store for one exposition.
#[derive(Debug)]
pub(super) struct StoreSample {
    /// Answer of the store; absent if it did not arrive in time.
    pub(super) present: Option<StoredRuns>,
    /// Durations and errors of store operations; absent before the store is open.
    pub(super) metered: Option<StoreMetrics>,
}

impl StoreSampler {
    /// Reads `store` whenever a reader requests a sample. Never returns.
    pub(super) async fn serve_samples(&self, store: &Store) {
        // A process opens one store, so the first value stays.
        drop(self.store.set(store.clone()));
        loop {
            self.requested.notified().await;
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
        let recent = fresh(&latest.borrow_and_update());
        let present = match recent {
            Some(present) => present,
            None => {
                self.requested.notify_one();
                let answered =
                    timeout(STORE_TIMEOUT, latest.changed()).await.is_ok_and(|changed| changed.is_ok());
                if answered { fresh(&latest.borrow()).flatten() } else { None }
            }
        };
        StoreSample { present, metered: Some(store.metered()) }
    }
}
