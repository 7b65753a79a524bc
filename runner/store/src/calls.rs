//! Keeps the calls of runs, as a journal records them, and their receipts.
//!
//! A batch of lines is stored in the transaction that moves the journal's cursor. A line that is read twice changes
//! nothing, so several processes may read the same journal.

use platform_core::{control::Cursor, id::RunId, limit::Millis, record::ExchangeRecord};
use runner_model::receipt::{ChargeReason, Receipt};
use sqlx::any::AnyRow;

use super::{
    Store, Tx, UnixMillis,
    balances::Charges,
    error::{Error, failed},
    row::{count, parsed, stored_json, text},
};

/// Name under which the store keeps the cursors of the journals that its calls come from.
pub const CALLS_CONSUMER: &str = "receipts";

/// Maximum number of calls that one transaction removes.
const MAX_REMOVED: i64 = 1024;

const ADD_CALL: &str = "INSERT INTO calls (journal, seq, run, at, record) VALUES ($1, $2, $3, $4, $5) \
     ON CONFLICT (journal, seq) DO NOTHING";
const LIST: &str = "SELECT journal, seq, record FROM calls WHERE run = $1 \
     AND ($2 IS NULL OR journal > $2 OR (journal = $2 AND seq > $3)) ORDER BY journal, seq LIMIT $4";
const REMOVE_OLD: &str = "DELETE FROM calls WHERE (journal, seq) IN \
     (SELECT journal, seq FROM calls WHERE at < $1 ORDER BY at LIMIT $2)";

/// Line of a journal that describes one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalCall {
    /// Position of the line.
    pub place: CallPlace,
    /// Time at which the call began.
    pub began: UnixMillis,
    /// The call.
    pub record: ExchangeRecord,
    /// Receipt of the call; absent if nothing was sent upstream.
    pub receipt: Option<Receipt>,
}

/// Position of a call among all calls of all journals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPlace {
    /// Id of the journal.
    pub journal: String,
    /// Number of the line.
    pub seq: u64,
}

/// Call of a run, as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCall {
    /// Position of the call; the calls after it have a greater one.
    pub place: CallPlace,
    /// The call.
    pub record: ExchangeRecord,
}

impl RecordedCall {
    fn read(row: &AnyRow) -> Result<Self, Error> {
        let place = CallPlace { journal: text(row, "journal")?, seq: count(row, "seq")? };
        Ok(Self { place, record: parsed(row, "record", stored_json)? })
    }
}

impl Store {
    /// Stores `calls` with their receipts, and moves the balances, the sums and the cursor of their journal to `end`. Calls and
    /// receipts that are stored already stay as they are. Returns the reasons of the new receipts.
    ///
    /// # Errors
    /// [`Error::Backwards`] if the stored cursor is at a later position than `end`. Then nothing is stored.
    pub async fn record_calls(
        &self,
        calls: &[JournalCall],
        end: &Cursor,
    ) -> Result<Vec<ChargeReason>, Error> {
        self.write(async |mut tx| {
            let mut added = Vec::new();
            let mut charges = Charges::default();
            for call in calls {
                if tx.add_call(call).await? {
                    charges.sums.add_refusal(call.began, &call.record);
                }
                if let Some(receipt) = &call.receipt
                    && tx.add_receipt(&self.installation, receipt).await?
                {
                    added.push(receipt.reason);
                    charges.add(receipt);
                }
            }
            tx.charge(&self.installation, &charges).await?;
            tx.set_cursor(CALLS_CONSUMER, end).await?;
            tx.finish("store calls", added).await
        })
        .await
    }

    /// Returns at most `max_calls` calls of the run `run_id` after the position `after`, in the order in which they
    /// ended.
    pub async fn calls(
        &self,
        run_id: &RunId,
        after: Option<&CallPlace>,
        max_calls: u32,
    ) -> Result<Vec<RecordedCall>, Error> {
        self.retry(async || {
            let rows = sqlx::query(LIST)
                .bind(run_id.as_str())
                .bind(after.map(|place| place.journal.as_str()))
                .bind(after.map(|place| storable_seq(place.seq)))
                .bind(i64::from(max_calls))
                .fetch_all(&self.pool)
                .await;
            rows.map_err(failed("read the calls of a run"))?.iter().map(RecordedCall::read).collect()
        })
        .await
    }

    /// Removes calls that began longer than `age` ago, as many as fit one short transaction. Returns their number.
    /// Their receipts stay.
    pub async fn remove_old_calls(&self, age: Millis) -> Result<u64, Error> {
        let action = "remove old calls";
        self.write(async |mut tx| {
            let too_old = tx.now.saturating_sub(i64::try_from(age.0).unwrap_or(i64::MAX));
            let removed = sqlx::query(REMOVE_OLD).bind(too_old).bind(MAX_REMOVED);
            let removed = removed.execute(tx.connection()).await.map_err(failed(action))?.rows_affected();
            tx.finish(action, removed).await
        })
        .await
    }
}

impl Tx {
    /// Returns whether the call is new.
    async fn add_call(&mut self, call: &JournalCall) -> Result<bool, Error> {
        let JournalCall { place, began, record, .. } = call;
        let added = sqlx::query(ADD_CALL)
            .bind(&place.journal)
            .bind(storable_seq(place.seq))
            .bind(record.run_id.as_str())
            .bind(began.0)
            .bind(serde_json::to_string(record).unwrap_or_default())
            .execute(self.connection())
            .await
            .map_err(failed("store a call"))?;
        Ok(added.rows_affected() > 0)
    }
}

fn storable_seq(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}
