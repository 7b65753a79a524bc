//! What the store says of runs that have not ended, for however many ask at once.

use std::{sync::OnceLock, time::Duration};

use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout},
};

use crate::store::{Metered, Present, Queue, Store};

/// For how long what the store said is not asked again.
const FRESH: Duration = Duration::from_secs(1);
/// How long it is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the store says of runs that have not ended, and of those that wait.
pub(super) type Known = (Present, Queue);

/// What was looked at last.
#[derive(Debug, Default)]
pub(super) struct Looked {
    store: OnceLock<Store>,
    wanted: Notify,
    seen: watch::Sender<Option<(Instant, Option<Known>)>>,
}

/// The store, as it is shown.
#[derive(Debug)]
pub(super) struct Shown {
    /// Absent if it did not answer in time.
    pub(super) present: Option<Known>,
    /// Absent before it was open.
    pub(super) metered: Option<Metered>,
}

impl Looked {
    /// Asks `store` whenever somebody wants to know, for ever.
    pub(super) async fn answer(&self, store: &Store) {
        // A process has one.
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
