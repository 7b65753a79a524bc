//! Follows the journal of a proxy, and stores its calls with their receipts.

use std::{collections::BTreeSet, convert::Infallible, sync::Arc, time::Duration};

use platform_core::{
    control::Cursor,
    json::{self, Bounds},
    record::{JournalLine, Kind, hash},
};
use platform_runtime::retry::{Backoff, repeat_forever};
use runner_control_client::{self as control, DataPlane, Follow, Lines};
use runner_engine::current_settings::CurrentSettings;
use runner_model::{failpoint::Point, receipt::ChargeReason};
use runner_store::{CALLS_CONSUMER, CallPlace, JournalCall, Store};
use runner_telemetry::metrics::Metrics;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use crate::pricing;

/// Most lines of a batch.
const MAX_BATCH: usize = 512;
/// Delay after the first line of a batch, in which others join it. Bounds the transactions of a second.
const BATCH_DELAY: Duration = Duration::from_millis(200);
/// Delay before the next attempt to read the journal.
const RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
/// Most models that are remembered as reported.
const MAX_REPORTED: usize = 1024;

/// Reason why the journal is not read for a while.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Proxy(#[from] control::Error),
    #[error(transparent)]
    Store(#[from] runner_store::Error),
    #[error("line {after} of the journal is followed by one that cannot be read")]
    Line {
        after: u64,
        #[source]
        source: json::Error,
    },
    #[error("the connection to the proxy broke")]
    Ended,
}

/// Consumer of a proxy's journal that stores each call and its receipt.
#[derive(Debug)]
pub struct JournalConsumer {
    /// Store of the calls and their receipts.
    pub store: Store,
    /// The proxy.
    pub data_plane: DataPlane,
    /// Configuration, with the models that are free.
    pub settings: CurrentSettings,
    /// Counters of receipts.
    pub metrics: Arc<Metrics>,
    /// Signal that balances have changed.
    pub charged: Arc<Notify>,
}

/// Calls that are stored together, and the cursor after them.
struct CallBatch {
    calls: Vec<JournalCall>,
    end: Cursor,
}

impl JournalConsumer {
    /// Stores all calls after the stored cursor, as they are recorded. Never returns. Cancel safe: a batch is stored
    /// whole or not at all.
    pub async fn run(&self) -> Infallible {
        let mut reported = BTreeSet::new();
        let follow = async || self.follow(&mut reported).await;
        let warn = |error: &str| {
            tracing::warn!(error, "cannot turn journal entries into receipts: trying again later")
        };
        repeat_forever(Backoff::new(RETRY_DELAY, MAX_RETRY_DELAY), follow, warn).await
    }

    async fn follow(&self, reported: &mut BTreeSet<String>) -> Result<Infallible, Error> {
        let journal = self.data_plane.health().await?.journal_id;
        let cursors = self.store.cursors(CALLS_CONSUMER).await?;
        let stored = cursors.into_iter().map(|held| held.cursor).find(|at| at.journal == journal);
        if let Some(stored) = &stored {
            // The process may have ended between the store's answer and the acknowledgement.
            self.acknowledge(stored).await?;
        }
        let mut at = stored.unwrap_or_else(|| Cursor { journal, seq: 0, hash: String::new() });
        let mut lines = self.lines_after(&at).await?;
        loop {
            let batch = self.read_batch(&mut lines, at).await?;
            Point::CallsRead.reach();
            let added = self.store.record_calls(&batch.calls, &batch.end).await?;
            added.iter().for_each(|reason| self.metrics.receipt_stored(*reason));
            report_unpriced(&batch.calls, reported);
            Point::CallsStored.reach();
            if !added.is_empty() {
                self.charged.notify_one();
            }
            self.acknowledge(&batch.end).await?;
            Point::CallsAcknowledged.reach();
            at = batch.end;
        }
    }

    /// Returns the lines after `at`, or the oldest ones that are kept if those were removed.
    async fn lines_after(&self, at: &Cursor) -> Result<Lines, Error> {
        match self.data_plane.follow_journal(at).await {
            Err(error) if error.is_removed() => {
                tracing::error!(
                    after = at.seq,
                    "calls without receipts: their lines were removed from the journal"
                );
                Ok(self.data_plane.journal(None, Follow::On).await?)
            }
            lines => Ok(lines?),
        }
    }

    /// Acknowledges everything up to `cursor`. A consumer in another process may have acknowledged more.
    async fn acknowledge(&self, cursor: &Cursor) -> Result<(), Error> {
        match self.data_plane.acknowledge(CALLS_CONSUMER, cursor).await {
            Err(error) if error.is_acknowledged_before() => Ok(()),
            acknowledged => Ok(acknowledged.map(drop)?),
        }
    }

    /// Reads the next lines: at most `MAX_BATCH`, within `BATCH_DELAY` of the first one.
    async fn read_batch(&self, lines: &mut Lines, mut end: Cursor) -> Result<CallBatch, Error> {
        let settings = self.settings.get();
        let mut calls = Vec::new();
        let mut deadline = None;
        while calls.len() < MAX_BATCH {
            let line = match deadline {
                None => lines.next().await,
                Some(deadline) => match timeout_at(deadline, lines.next()).await {
                    Ok(line) => line,
                    Err(_elapsed) => break,
                },
            };
            let line = line?.ok_or(Error::Ended)?;
            deadline.get_or_insert_with(|| Instant::now() + BATCH_DELAY);
            // A line of a later version waits for a later program: a skipped one would never be billed.
            let JournalLine { seq, record, .. } = json::from_slice(line, Bounds::STORED)
                .map_err(|source| Error::Line { after: end.seq, source })?;
            end.seq = seq;
            end.hash = String::from_utf8_lossy(&hash(line)).into_owned();
            // The ledger's figures come to receipts by themselves.
            if record.kind == Kind::Correction {
                continue;
            }
            let began = pricing::began(&record);
            calls.push(JournalCall {
                place: CallPlace { journal: end.journal.clone(), seq },
                began,
                receipt: pricing::receipt(&record, began, &settings),
                record,
            });
        }
        Ok(CallBatch { calls, end })
    }
}

/// Warns of models with calls that are not priced, once for each.
fn report_unpriced(calls: &[JournalCall], reported: &mut BTreeSet<String>) {
    let unpriced = calls.iter().filter_map(|call| call.receipt.as_ref());
    for receipt in unpriced.filter(|receipt| receipt.reason == ChargeReason::Unpriced) {
        let Some(model) = &receipt.model else { continue };
        if reported.len() < MAX_REPORTED && reported.insert(model.to_string()) {
            tracing::warn!(
                %model,
                "calls of this model are unpriced: give it a price in [prices], or list it in billing.free_models"
            );
        }
    }
}
