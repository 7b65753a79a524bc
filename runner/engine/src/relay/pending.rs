//! Continues relays whose runs have ended without them, and removes what nothing needs any more.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use platform_core::id::RunId;
use platform_runtime::report;
use runner_store::{Store, StoredRelay};
use tokio::time::{Instant, sleep};

use super::{Relays, blocking::blocking, error::RelayError, record::RelayRecord};

/// Interval between two looks for relays that are due.
const DUE_INTERVAL: Duration = Duration::from_secs(2);
/// Interval between two removals of what is no longer kept.
const REMOVAL_INTERVAL: Duration = Duration::from_secs(600);
/// Number of relays that are continued at the same time.
const CONCURRENT_RELAYS: usize = 4;
/// Most relays that are read at once.
const MAX_DUE: u32 = 64;

/// Continues relays of `store` that are due, for ever, as `latest` says at that moment. Dropping the future leaves them
/// where they are.
pub async fn continue_relays(store: &Store, latest: impl Fn() -> Relays) {
    let mut next_removal = Instant::now();
    loop {
        let relays = latest();
        match store.due_relays(MAX_DUE).await {
            Ok(due) => {
                let continued = stream::iter(due).for_each_concurrent(CONCURRENT_RELAYS, |stored| {
                    let relays = &relays;
                    async move { relays.continue_one(&stored).await }
                });
                continued.await;
            }
            Err(error) => tracing::warn!(error = report::chain(&error), "pending commits not looked for"),
        }
        if Instant::now() >= next_removal {
            next_removal = Instant::now() + REMOVAL_INTERVAL;
            if let Err(error) = relays.remove_old().await {
                tracing::warn!(error = report::chain(&error), "old commits not removed");
            }
        }
        sleep(DUE_INTERVAL).await;
    }
}

impl Relays {
    async fn continue_one(&self, stored: &StoredRelay) {
        let run = &stored.run_id;
        match self.advance(run, stored.attempt).await {
            Ok(RelayRecord { stage, .. }) => tracing::info!(%run, stage = stage.name(), "commits continued"),
            // The process that has it continues it.
            Err(RelayError::Busy { .. }) => {}
            Err(error) => tracing::warn!(%run, error = report::chain(&error), "commits not continued"),
        }
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
