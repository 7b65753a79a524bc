//! Gives a worker a run that no active worker holds: a waiting one, or one with an expired or released lease.
//!
//! Runs wait in lines, one for each account and priority, and only the first of a line can be next. Of these, one of
//! the highest class is next. A run's class is its priority, plus one for each five minutes that it has waited. This
//! time begins again whenever a run of the same line is claimed. Within a class, the run of the account with the fewest
//! held runs is next, then the one that has waited longest. A run is skipped while another run of its session is
//! active.
//!
//! A long line does not rise while its runs are claimed: an account with many orders waits behind an account with few.
//! A line without claims rises until one of its runs is claimed.

use platform_core::{id::RunId, limit::Millis};
use sqlx::AssertSqlSafe;

use super::{
    Store, Tx, Worker,
    error::{Error, failed},
    queue::waiting,
    row::{Run, columns},
};

/// Time after which a waiting run counts as one class higher, in milliseconds.
macro_rules! class_interval_ms {
    () => {
        "300000"
    };
}

/// Gives a run to a new owner. A query that selects the run follows, then [`CLAIM_END`]. Sets `claimed` only for a run
/// without an owner, which is claimed from its line.
const CLAIM: &str = "UPDATE runs SET epoch = epoch + 1, lease_owner = $1, lease_until = $2, changed = $3, \
     claimed = CASE WHEN lease_owner IS NULL THEN $3 ELSE claimed END WHERE run = (";
const CLAIM_END: &str = concat!(") RETURNING ", columns!());
/// Selects the waiting runs in the order of claims. Finds each account with one index access, then the first run of
/// each of its lines. Checks these runs again, because on Postgres another process may have cancelled one meanwhile.
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
/// Selects runs with an expired lease; followed by placeholders for excluded runs, then [`ABANDONED_END`]. Postgres
/// allows no empty list, so the list begins with an id that no run has.
const ABANDONED: &str =
    "SELECT run FROM runs WHERE installation = $4 AND ended IS NULL AND lease_until < $3 AND run NOT IN (''";
const ABANDONED_END: &str = ") ORDER BY lease_until, run";

/// Number of the first placeholder for an excluded run, after those of every claim.
const FIRST_EXCLUDED: usize = 5;
const WAITING: &str =
    concat!("SELECT count(*) FROM (SELECT 1 FROM runs WHERE ", waiting!("$1"), " LIMIT 1) AS one_of_them");
const RELEASE: &str = "UPDATE runs SET lease_until = $1 - 1, changed = $1 WHERE installation = $2 AND lease_owner = $3 \
     AND ended IS NULL AND lease_until >= $1";

/// Claim of the first run that a query selects.
struct Claim<'t> {
    /// Query that selects the runs, the next one first.
    candidates: &'t str,
    /// The new owner.
    worker: &'t Worker,
    /// Length of its lease.
    span: Millis,
    /// Runs to exclude.
    excluded: &'t [RunId],
}

impl Store {
    /// Claims the next waiting run, if there is one. No other worker can take it over before `span` has passed.
    ///
    /// # Errors
    /// If the store fails. If the commit got no answer, a run may be claimed without the caller's knowledge.
    /// [`Store::take_over`] finds such runs later.
    pub async fn claim(&self, worker: &Worker, span: Millis) -> Result<Option<Run>, Error> {
        self.retry_unless_done(async || self.claim_once(worker, span).await).await
    }

    async fn claim_once(&self, worker: &Worker, span: Millis) -> Result<Option<Run>, Error> {
        let mut tx = self.begin().await?;
        self.lock_claims(&mut tx).await?;
        self.claim_first(tx, &Claim { candidates: NEXT, worker, span, excluded: &[] }).await
    }

    /// Waits for the lock on claims: two workers that claim at once would not see each other's claim.
    pub(super) async fn lock_claims(&self, tx: &mut Tx) -> Result<(), Error> {
        if let Some(lock) = self.backend.lock_claims() {
            let lock = sqlx::query(lock).bind(self.installation.as_str());
            lock.execute(tx.connection()).await.map_err(failed("wait for the lock on claims"))?;
        }
        Ok(())
    }

    /// Returns whether a run waits to be claimed.
    pub async fn is_anything_queued(&self) -> Result<bool, Error> {
        self.retry(async || {
            let count = sqlx::query_scalar(WAITING).bind(self.installation.as_str());
            let count: i64 = count.fetch_one(&self.pool).await.map_err(failed("check for waiting runs"))?;
            Ok(count > 0)
        })
        .await
    }

    /// Takes over a run with an expired lease, if there is one; the one that expired first. From then on, all changes
    /// by its former holder are refused. Excludes the runs in `own`: the worker itself is executing them, and renews
    /// their leases as soon as it can.
    pub async fn take_over(
        &self,
        worker: &Worker,
        span: Millis,
        own: &[RunId],
    ) -> Result<Option<Run>, Error> {
        let excluded: String = (0..own.len()).map(|at| format!(", ${}", at + FIRST_EXCLUDED)).collect();
        let abandoned = format!("{ABANDONED}{excluded}{ABANDONED_END}");
        self.retry_unless_done(async || {
            let claim = Claim { candidates: &abandoned, worker, span, excluded: own };
            self.claim_first(self.begin().await?, &claim).await
        })
        .await
    }

    /// Claims the first run that the query of `claim` selects, if there is one.
    async fn claim_first(&self, mut tx: Tx, claim: &Claim<'_>) -> Result<Option<Run>, Error> {
        let action = "claim a run";
        let lock = self.backend.lock_run();
        let until = tx.after(claim.span);
        let candidates = claim.candidates;
        let statement = AssertSqlSafe(format!("{CLAIM}{candidates} LIMIT 1{lock}{CLAIM_END}"));
        let mut query = sqlx::query(statement)
            .bind(claim.worker.to_string())
            .bind(until)
            .bind(tx.now)
            .bind(self.installation.as_str());
        for run_id in claim.excluded {
            query = query.bind(run_id.as_str());
        }
        let row = query.fetch_optional(tx.connection()).await.map_err(failed(action))?;
        let run = row.map(|row| Run::read(&row, tx.now)).transpose()?;
        // Checked only if there is a run: most calls find none, and should stay cheap.
        if run.is_some() {
            self.check_host(&mut tx).await?;
        }
        tx.finish(action, run).await
    }

    /// Ends the leases of `worker`, which has stopped. Other workers need not wait until they expire.
    pub async fn release(&self, worker: &Worker) -> Result<(), Error> {
        let action = "release runs";
        self.write(async |mut tx| {
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
