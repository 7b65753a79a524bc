//! Keeps how far the upstream's ledger was read, and lets one process at a time read it.
//!
//! The lease saves work, and nothing depends on it: rows are compared in any order, and corrections may be repeated.

use platform_core::limit::Millis;
use sqlx::any::AnyRow;

use super::{
    Store, Tx, UnixMillis, Worker,
    error::{Error, failed},
    ledger::EarlierPass,
    row::time,
};

const ACTION: &str = "record how far the upstream's ledger was read";
const FIND: &str = "SELECT * FROM reconciliations WHERE installation = $1";
/// Takes the lease if it is free, over, or this process's own.
const TAKE: &str = "INSERT INTO reconciliations (installation, holder, lease_until) VALUES ($1, $2, $3) \
     ON CONFLICT (installation) DO UPDATE SET holder = $2, lease_until = $3 \
     WHERE reconciliations.holder = $2 OR reconciliations.lease_until < $4";
const BEGIN: &str = "UPDATE reconciliations SET pass_from = $1, pass_position = $1, pass_began = $2 \
     WHERE installation = $3 AND holder = $4";
const ADVANCE: &str = "UPDATE reconciliations SET pass_position = $1, lease_until = $2 \
     WHERE installation = $3 AND holder = $4";
/// Adds a pass to what earlier ones cover, unless it has left a gap after them.
const COVER: &str = "UPDATE reconciliations SET completed = pass_began, \
     covered_from = CASE WHEN covered_from < pass_from THEN covered_from ELSE pass_from END, \
     covered_until = CASE WHEN covered_until > pass_position THEN covered_until ELSE pass_position END \
     WHERE installation = $1 AND holder = $2 AND pass_from <= $3";
/// Adds what a pass has read before it stopped, unless it has left a gap. It can be resumed.
const COVER_PART: &str = "UPDATE reconciliations SET \
     covered_until = CASE WHEN covered_until > pass_position THEN covered_until ELSE pass_position END \
     WHERE installation = $1 AND holder = $2 AND pass_from <= $3";
const END: &str = "UPDATE reconciliations SET lease_until = 0, pass_from = NULL, pass_position = NULL, pass_began = NULL \
     WHERE installation = $1 AND holder = $2";
const RELEASE: &str = "UPDATE reconciliations SET lease_until = 0 WHERE installation = $1 AND holder = $2";
/// Finds the latest receipts account by account, as an index has them. Each account with a receipt has a balance.
pub(super) const EARLIEST_OPEN: &str = "SELECT MIN(r.called) AS called FROM balances b CROSS JOIN receipts r \
     WHERE b.installation = $1 AND r.installation = b.installation AND r.account = b.account AND r.created >= $2 \
     AND r.source_system = 'sluicegate' AND r.charge_reason <> 'no_usage' AND NOT EXISTS \
     (SELECT 1 FROM ledger_rows l WHERE l.installation = r.installation AND l.call_id = r.call_id AND l.finding <> 'foreign')";

/// Progress of the reconciliation of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerProgress {
    /// Time now.
    pub now: UnixMillis,
    /// The last pass that was completed and left no gap.
    pub earlier: Option<EarlierPass>,
    /// Time up to which the ledger was read without a gap, by passes that were completed.
    pub covered_until: Option<UnixMillis>,
    /// Pass that was begun and not completed.
    pub unfinished: Option<UnfinishedPass>,
}

/// Pass that was begun and not completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnfinishedPass {
    /// Time of the first calls that it reads.
    pub from: UnixMillis,
    /// Time up to which it has read.
    pub position: UnixMillis,
    /// Time at which it began.
    pub began: UnixMillis,
}

/// The last pass that was completed and left no gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastLedgerPass {
    /// Time at which it began.
    pub at: UnixMillis,
    /// Time since then.
    pub age: Millis,
}

/// Answer to a request for the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerLease {
    /// The lease is this process's, and the ledger was read so far.
    Taken(LedgerProgress),
    /// Another process reads the ledger.
    Busy,
}

/// Effect of recording a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerAdvance {
    /// The position is recorded.
    Recorded,
    /// The lease is another process's.
    Lost,
}

impl LedgerProgress {
    fn read(row: &AnyRow, now: i64) -> Result<Self, Error> {
        let earlier = time(row, "completed")?.zip(time(row, "covered_from")?);
        let position = time(row, "pass_position")?.zip(time(row, "pass_began")?);
        Ok(Self {
            now: UnixMillis(now),
            earlier: earlier.map(|(began, from)| EarlierPass { from, began }),
            covered_until: time(row, "covered_until")?,
            unfinished: time(row, "pass_from")?
                .zip(position)
                .map(|(from, (position, began))| UnfinishedPass { from, position, began }),
        })
    }
}

impl Store {
    /// Takes the lease on the ledger for `span`, unless another process has it.
    pub async fn lease_ledger(&self, holder: &Worker, span: Millis) -> Result<LedgerLease, Error> {
        self.write(async |mut tx| {
            let taken = sqlx::query(TAKE)
                .bind(self.installation.as_str())
                .bind(holder.to_string())
                .bind(tx.after(span))
                .bind(tx.now)
                .execute(tx.connection())
                .await
                .map_err(failed(ACTION))?;
            if taken.rows_affected() == 0 {
                return Ok(LedgerLease::Busy);
            }
            let row = sqlx::query(FIND).bind(self.installation.as_str()).fetch_one(tx.connection()).await;
            let progress = LedgerProgress::read(&row.map_err(failed(ACTION))?, tx.now)?;
            tx.finish(ACTION, LedgerLease::Taken(progress)).await
        })
        .await
    }

    /// Records that a pass begins, which reads rows of calls from `from` on.
    pub async fn begin_ledger_pass(&self, holder: &Worker, from: UnixMillis) -> Result<(), Error> {
        self.write(async |mut tx| {
            let begun = sqlx::query(BEGIN).bind(from.0).bind(tx.now).bind(self.installation.as_str());
            begun.bind(holder.to_string()).execute(tx.connection()).await.map_err(failed(ACTION))?;
            tx.commit(ACTION).await
        })
        .await
    }

    /// Records that the pass has read all rows up to `position`, and renews the lease for `span`.
    pub async fn advance_ledger_pass(
        &self,
        holder: &Worker,
        position: UnixMillis,
        span: Millis,
    ) -> Result<LedgerAdvance, Error> {
        self.write(async |mut tx| {
            let advanced = sqlx::query(ADVANCE)
                .bind(position.0)
                .bind(tx.after(span))
                .bind(self.installation.as_str())
                .bind(holder.to_string())
                .execute(tx.connection())
                .await
                .map_err(failed(ACTION))?;
            tx.finish(
                ACTION,
                if advanced.rows_affected() > 0 { LedgerAdvance::Recorded } else { LedgerAdvance::Lost },
            )
            .await
        })
        .await
    }

    /// Records that the pass is completed, and gives the lease back. A pass that began after `unread`, the time of the
    /// first calls that no earlier one has read, covers nothing: a later pass reads the calls between.
    pub async fn end_ledger_pass(&self, holder: &Worker, unread: UnixMillis) -> Result<(), Error> {
        self.cover_and_release([COVER, END], holder, unread).await
    }

    /// Records that the pass has stopped at its position, and gives the lease back. The pass can be resumed, and counts
    /// as read up to there, as a completed one does.
    pub async fn stop_ledger_pass(&self, holder: &Worker, unread: UnixMillis) -> Result<(), Error> {
        self.cover_and_release([COVER_PART, RELEASE], holder, unread).await
    }

    async fn cover_and_release(
        &self,
        [cover, release]: [&'static str; 2],
        holder: &Worker,
        unread: UnixMillis,
    ) -> Result<(), Error> {
        self.write(async |mut tx| {
            let cover = sqlx::query(cover).bind(self.installation.as_str()).bind(holder.to_string());
            cover.bind(unread.0).execute(tx.connection()).await.map_err(failed(ACTION))?;
            self.give_lease_back(tx, release, holder).await
        })
        .await
    }

    /// Gives the lease back. A pass that was begun can be resumed.
    pub async fn release_ledger(&self, holder: &Worker) -> Result<(), Error> {
        self.retry(async || {
            let tx = self.begin().await?;
            self.give_lease_back(tx, RELEASE, holder).await
        })
        .await
    }

    async fn give_lease_back(
        &self,
        mut tx: Tx,
        statement: &'static str,
        holder: &Worker,
    ) -> Result<(), Error> {
        let query = sqlx::query(statement).bind(self.installation.as_str()).bind(holder.to_string());
        query.execute(tx.connection()).await.map_err(failed(ACTION))?;
        tx.commit(ACTION).await
    }

    /// Returns the last pass that was completed and left no gap; `None` before the first.
    pub async fn last_ledger_pass(&self) -> Result<Option<LastLedgerPass>, Error> {
        self.read(async |mut tx| {
            let found = sqlx::query(FIND).bind(self.installation.as_str());
            let found = found.fetch_optional(tx.connection()).await.map_err(failed(ACTION))?;
            let at = found.map(|row| time(&row, "completed")).transpose()?.flatten();
            Ok(at.map(|at| LastLedgerPass {
                at,
                age: Millis(u64::try_from(tx.now - at.0).unwrap_or_default()),
            }))
        })
        .await
    }

    /// Returns the time of the first call with a receipt stored since `since` and without a row yet.
    pub async fn earliest_open_call(&self, since: UnixMillis) -> Result<Option<UnixMillis>, Error> {
        self.retry(async || {
            let row = sqlx::query(EARLIEST_OPEN).bind(self.installation.as_str()).bind(since.0);
            let row = row.fetch_one(&self.pool).await.map_err(failed(ACTION))?;
            time(&row, "called")
        })
        .await
    }
}
