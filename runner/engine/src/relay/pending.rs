//! Continues relays after their runs have ended without them, and removes what nothing needs any more.

use std::time::Duration;

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use platform_core::id::RunId;
use platform_runtime::{report, task::blocking};
use runner_store::{Store, StoredRelay};
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    Relays,
    error::RelayError,
    places::{self, Places, RelayId},
    record::RelayRecord,
};

/// Interval between two looks for relays that are due.
const DUE_INTERVAL: Duration = Duration::from_secs(2);
/// Interval between two removals of what is not kept any more.
const REMOVAL_INTERVAL: Duration = Duration::from_secs(600);
/// Most relays that are read at once.
const MAX_DUE: u32 = 256;

/// Continues relays of `store` that are due, for ever, as `latest` says at that moment. Dropping the future leaves them
/// where they are.
pub async fn continue_relays(store: &Store, latest: impl Fn() -> Relays) {
    // A removal that takes long holds no relay back.
    tokio::join!(continue_due(store, &latest), remove_when_old(&latest));
}

async fn continue_due(store: &Store, latest: &impl Fn() -> Relays) {
    let mut places = Places::default();
    let mut running = FuturesUnordered::new();
    let mut waiting = Vec::new();
    let mut next_look = Instant::now();
    loop {
        waiting.retain(|stored: &StoredRelay| {
            let is_taken = places.take(stored);
            if is_taken {
                running.push(latest().continue_one(stored.clone()));
            }
            !is_taken
        });
        tokio::select! {
            Some(id) = running.next() => places.leave(&id),
            due = look(store, next_look) => {
                next_look = Instant::now() + DUE_INTERVAL;
                waiting = due;
                waiting.retain(|stored| !places.has(stored));
            }
        }
    }
}

/// Returns the relays that are due at `time`, the first one first.
async fn look(store: &Store, time: Instant) -> Vec<StoredRelay> {
    sleep_until(time).await;
    store.due_relays(MAX_DUE).await.unwrap_or_else(|error| {
        tracing::warn!(error = report::chain(&error), "pending commits not looked for");
        Vec::new()
    })
}

async fn remove_when_old(latest: &impl Fn() -> Relays) {
    loop {
        if let Err(error) = latest().remove_old().await {
            tracing::warn!(error = report::chain(&error), "old commits not removed");
        }
        sleep(REMOVAL_INTERVAL).await;
    }
}

impl Relays {
    async fn continue_one(self, stored: StoredRelay) -> RelayId {
        let run = &stored.run_id;
        match self.advance(run, stored.attempt).await {
            Ok(RelayRecord { stage, .. }) => tracing::info!(%run, stage = stage.name(), "commits continued"),
            // The process that has it continues it.
            Err(RelayError::Busy { .. }) => {}
            Err(error) => tracing::warn!(%run, error = report::chain(&error), "commits not continued"),
        }
        places::id(&stored)
    }

    /// Removes the files of relays that are done, or have ended longer ago than they are kept. One that cannot be read or
    /// removed does not keep the others.
    async fn remove_old(&self) -> Result<(), RelayError> {
        let dir = self.dir.clone();
        for (run_id, attempt) in blocking(move || dir.list()).await? {
            if let Err(error) = self.remove_if_old(&run_id, attempt).await {
                tracing::warn!(run = %run_id, error = report::chain(&error), "old commits not removed");
            }
        }
        Ok(())
    }

    async fn remove_if_old(&self, run_id: &RunId, attempt: u32) -> Result<(), RelayError> {
        // A relay that goes on is not locked even for a moment: its run would take that for another process at work.
        if !self.is_old(run_id, attempt).await? {
            return Ok(());
        }
        let dir = self.dir.of(run_id, attempt);
        let Some(_lock) = dir.lock()? else { return Ok(()) };
        // A person may have sent the commits back meanwhile.
        if self.is_old(run_id, attempt).await? {
            blocking(move || dir.remove()).await?;
        }
        Ok(())
    }

    /// Returns whether the files of an attempt are of no further use.
    async fn is_old(&self, run_id: &RunId, attempt: u32) -> Result<bool, RelayError> {
        let (ended, now) = match self.store.record(run_id).await {
            Ok(record) => (record.run.ended, record.now),
            Err(runner_store::Error::Unknown { .. }) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        let stored = self.store.relay_of(run_id, attempt).await?;
        let Some(stored) = stored.filter(|stored| !stored.document.is_empty()) else {
            return Ok(ended.is_some());
        };
        let record = RelayRecord::read(&stored)?;
        let is_over = ended.is_some() && !record.stage.is_pending();
        let age = stored.changed.until(now);
        Ok(is_over && (record.stage.is_done() || age > self.settings.keep.duration()))
    }
}
