//! Gives a worker a run that no worker holds: one that waits, one that was left, or one that is given back.
//!
//! Orders wait in lines, one for each account and priority, and only the first of a line can be next. Of these, one of
//! the highest class is next. A run's class is its priority, plus one for each five minutes since it came or its line
//! was last served, whichever is later. Within a class, the run of the account with the fewest held runs is next, then
//! the one that has waited longest. A run does not count while another run of its session is worked on.
//!
//! So a line that is served does not rise, however long it is: an account that orders much waits behind one that orders
//! little. Each line that is not served rises until it is.

use platform_core::{id::RunId, limit::Millis};
use sqlx::AssertSqlSafe;

use super::{
    RetryWhen, Store, Tx, Worker,
    backend::Backend,
    error::{Error, failed},
    queue::waiting,
    row::{Run, columns},
};

/// Time that a line waits, in milliseconds, to count as one class higher.
macro_rules! class_interval_ms {
    () => {
        "300000"
    };
}

/// Gives a run to a new owner: the first of those that follow, up to [`TAKE_END`]. A run without an owner is taken from
/// its line.
const TAKE: &str = "UPDATE runs SET epoch = epoch + 1, lease_owner = $1, lease_until = $2, changed = $3, \
     claimed = CASE WHEN lease_owner IS NULL THEN $3 ELSE claimed END WHERE run = (";
const TAKE_END: &str = concat!(") RETURNING ", columns!());
/// Selects the accounts whose runs wait, each found by one look at the index; their lines; of each its first. That run
/// is checked again: on Postgres another process may have cancelled it meanwhile.
const NEXT: &str = concat!(
    "WITH RECURSIVE accounts (account) AS (SELECT (SELECT account FROM runs WHERE ",
    waiting!("$4"),
    " ORDER BY account LIMIT 1) UNION ALL SELECT (SELECT account FROM runs WHERE ",
    waiting!("$4"),
    " AND account > accounts.account ORDER BY account LIMIT 1) FROM accounts WHERE accounts.account IS NOT NULL), \
     ranks (rank) AS (SELECT 0 UNION ALL SELECT 1 UNION ALL SELECT 2), \
     firsts (run, held, served) AS MATERIALIZED (SELECT (SELECT run FROM runs WHERE ",
    waiting!("$4"),
    " AND account = accounts.account AND priority = ranks.rank AND NOT EXISTS (SELECT 1 FROM runs AS busy WHERE ",
    "busy.installation = $4 AND busy.session = runs.session AND busy.ended IS NULL AND busy.lease_owner IS NOT NULL",
    ") ORDER BY queued, run LIMIT 1), \
     (SELECT count(*) FROM runs WHERE installation = $4 AND account = accounts.account AND ended IS NULL \
     AND lease_owner IS NOT NULL), \
     (SELECT max(claimed) FROM runs WHERE installation = $4 AND account = accounts.account AND priority = ranks.rank \
     AND claimed IS NOT NULL) \
     FROM accounts CROSS JOIN ranks WHERE accounts.account IS NOT NULL) \
     SELECT runs.run FROM firsts JOIN runs ON runs.run = firsts.run WHERE ",
    waiting!("$4"),
    " ORDER BY priority + ($3 - CASE WHEN served > queued THEN served ELSE queued END) / ",
    class_interval_ms!(),
    " DESC, held, queued, runs.run"
);
/// Followed by placeholders for runs to leave out. No run has an empty id; Postgres knows no empty list.
const ABANDONED: &str =
    "SELECT run FROM runs WHERE installation = $4 AND ended IS NULL AND lease_until < $3 AND run NOT IN (''";
const ABANDONED_END: &str = ") ORDER BY lease_until, run";

/// Number of the first placeholder behind those of every taking.
const FIRST_EXCLUDED: usize = 5;
const WAITING: &str =
    concat!("SELECT count(*) FROM (SELECT 1 FROM runs WHERE ", waiting!("$1"), " LIMIT 1) AS one_of_them");
const RELEASE: &str = "UPDATE runs SET lease_until = $1 - 1, changed = $1 WHERE installation = $2 AND lease_owner = $3 \
     AND ended IS NULL AND lease_until >= $1";

/// Change of a run's owner.
struct Taking<'t> {
    /// Query that selects the runs, the next one first.
    from: &'t str,
    /// The new owner.
    worker: &'t Worker,
    /// Length of its lease.
    span: Millis,
    /// Runs to leave out.
    excluded: &'t [RunId],
}

impl Store {
    /// Claims the run that is next, if one waits. No other worker gets it before `span` has passed.
    ///
    /// # Errors
    /// If the store fails. After a commit without an answer a run may be claimed and not worked on;
    /// [`Store::take_over`] is for those.
    pub async fn claim(&self, worker: &Worker, span: Millis) -> Result<Option<Run>, Error> {
        self.retry(RetryWhen::UnlessDone, async |_| self.claim_once(worker, span).await).await
    }

    async fn claim_once(&self, worker: &Worker, span: Millis) -> Result<Option<Run>, Error> {
        let mut tx = self.begin().await?;
        self.lock_claims(&mut tx).await?;
        self.take(tx, &Taking { from: NEXT, worker, span, excluded: &[] }).await
    }

    /// Waits for the caller's turn: two workers that claim at the same moment would not see what the other holds from
    /// now on.
    pub(super) async fn lock_claims(&self, tx: &mut Tx) -> Result<(), Error> {
        if let Some(lock) = self.backend.lock_claims() {
            let lock = sqlx::query(lock).bind(self.installation.as_str());
            lock.execute(tx.connection()).await.map_err(failed("wait for the lock on claims"))?;
        }
        Ok(())
    }

    /// Returns whether a run waits to be claimed.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn is_anything_queued(&self) -> Result<bool, Error> {
        self.retry(RetryWhen::Always, async |_| {
            let waiting = sqlx::query_scalar(WAITING).bind(self.installation.as_str());
            let waiting: i64 =
                waiting.fetch_one(&self.pool).await.map_err(failed("check for waiting runs"))?;
            Ok(waiting > 0)
        })
        .await
    }

    /// Takes over a run whose lease is over, if there is one; the one that was left longest ago. From then on
    /// everything that its former holder tries is refused. Leaves out the runs in `own`, which the worker itself has
    /// worked on up to now: it knows best what becomes of them, and renews their leases once it can.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn take_over(
        &self,
        worker: &Worker,
        span: Millis,
        own: &[RunId],
    ) -> Result<Option<Run>, Error> {
        let excluded: String = (0..own.len()).map(|at| format!(", ${}", at + FIRST_EXCLUDED)).collect();
        let abandoned = format!("{ABANDONED}{excluded}{ABANDONED_END}");
        self.retry(RetryWhen::UnlessDone, async |_| {
            let taking = Taking { from: &abandoned, worker, span, excluded: own };
            self.take(self.begin().await?, &taking).await
        })
        .await
    }

    async fn take(&self, mut tx: Tx, taking: &Taking<'_>) -> Result<Option<Run>, Error> {
        let action = "claim a run";
        // Other workers skip the row meanwhile.
        let lock = match self.backend {
            Backend::Sqlite => "",
            Backend::Postgres => " FOR UPDATE OF runs SKIP LOCKED",
        };
        let until = tx.after(taking.span);
        let from = taking.from;
        let statement = AssertSqlSafe(format!("{TAKE}{from} LIMIT 1{lock}{TAKE_END}"));
        let mut query = sqlx::query(statement)
            .bind(taking.worker.to_string())
            .bind(until)
            .bind(tx.now)
            .bind(self.installation.as_str());
        for run_id in taking.excluded {
            query = query.bind(run_id.as_str());
        }
        let taken = query.fetch_optional(tx.connection()).await.map_err(failed(action))?;
        let run = taken.map(|row| Run::read(&row, tx.now)).transpose()?;
        // Only if there is a run: most calls find none, and are to stay cheap.
        if run.is_some() {
            self.check_host(&mut tx).await?;
        }
        tx.commit(action).await?;
        Ok(run)
    }

    /// Ends the leases of `worker`, which does nothing any more: others need not wait until they are over.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn release(&self, worker: &Worker) -> Result<(), Error> {
        let action = "release runs";
        self.retry(RetryWhen::Always, async |_| {
            let mut tx = self.begin().await?;
            let now = tx.now;
            sqlx::query(RELEASE)
                .bind(now)
                .bind(self.installation.as_str())
                .bind(worker.to_string())
                .execute(tx.connection())
                .await
                .map_err(failed(action))?;
            tx.commit(action).await
        })
        .await
    }
}
