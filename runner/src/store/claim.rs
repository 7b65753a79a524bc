//! How somebody gets a run that nobody works on: one that waits, one that was left, one that is given back.

use platform_core::{id::RunId, limit::Millis};
use sqlx::AssertSqlSafe;

use super::{
    Again, Store, Worker,
    backend::Backend,
    error::{Error, failed},
    row::{Run, columns},
};

/// Gives a run to a new owner: the first of those that follow, up to [`TAKE_END`].
const TAKE: &str = concat!(
    "UPDATE runs SET epoch = epoch + 1, lease_owner = $1, lease_until = $2, changed = $3, \
     claimed = CASE WHEN lease_owner IS NULL THEN $3 ELSE claimed END WHERE run = (",
    "SELECT run FROM runs WHERE installation = $4 AND "
);
const TAKE_END: &str = concat!(") RETURNING ", columns!());
const QUEUED: &str = "state = 'queued' AND lease_owner IS NULL ORDER BY queued, run";
/// Followed by placeholders for runs that are not meant. No run has an empty id; Postgres knows no empty list.
const ABANDONED: &str = "ended IS NULL AND lease_until < $3 AND run NOT IN (''";
const ABANDONED_END: &str = ") ORDER BY lease_until, run";

/// Number of the first placeholder behind those of every taking.
const BOUND: usize = 5;
const WAITING: &str =
    "SELECT count(*) FROM runs WHERE installation = $1 AND state = 'queued' AND lease_owner IS NULL";
const RELEASE: &str = "UPDATE runs SET lease_until = $1 - 1, changed = $1 WHERE installation = $2 AND lease_owner = $3 \
     AND ended IS NULL AND lease_until >= $1";

impl Store {
    /// Claims the run that has waited longest, if one waits. It is nobody else's until `span` has passed.
    ///
    /// # Errors
    /// If the store fails. After a commit without an answer a run may be claimed and not worked on; that is what
    /// [`Store::take_over`] is for.
    pub async fn claim(&self, worker: &Worker, span: Millis) -> Result<Option<Run>, Error> {
        self.retrying(Again::UnlessDone, async |_| self.take(QUEUED, (worker, span), &[]).await).await
    }

    /// Whether a run waits to be claimed.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn is_anything_queued(&self) -> Result<bool, Error> {
        self.retrying(Again::Always, async |_| {
            let waiting = sqlx::query_scalar(WAITING).bind(self.installation.as_str());
            let waiting: i64 =
                waiting.fetch_one(&self.pool).await.map_err(failed("look whether runs wait"))?;
            Ok(waiting > 0)
        })
        .await
    }

    /// Takes over a run whose lease is over, if there is one; the one that was left longest ago. From then on whatever
    /// its holder before still tries is refused. Not one of those the worker itself has `lived` up to now: it knows best what
    /// becomes of them, and renews their leases once it can.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn take_over(
        &self,
        worker: &Worker,
        span: Millis,
        lived: &[RunId],
    ) -> Result<Option<Run>, Error> {
        let lived_ones: String = (0..lived.len()).map(|at| format!(", ${}", at + BOUND)).collect();
        let abandoned = format!("{ABANDONED}{lived_ones}{ABANDONED_END}");
        self.retrying(Again::UnlessDone, async |_| self.take(&abandoned, (worker, span), lived).await).await
    }

    async fn take(
        &self,
        which: &str,
        (worker, span): (&Worker, Millis),
        lived: &[RunId],
    ) -> Result<Option<Run>, Error> {
        let action = "take a run";
        // Others look past it meanwhile.
        let lock = match self.backend {
            Backend::Sqlite => "",
            Backend::Postgres => " FOR UPDATE SKIP LOCKED",
        };
        let mut tx = self.begin().await?;
        let until = tx.after(span);
        let statement = AssertSqlSafe(format!("{TAKE}{which} LIMIT 1{lock}{TAKE_END}"));
        let mut taking = sqlx::query(statement)
            .bind(worker.to_string())
            .bind(until)
            .bind(tx.now)
            .bind(self.installation.as_str());
        for run in lived {
            taking = taking.bind(run.as_str());
        }
        let taken = taking.fetch_optional(tx.connection()).await.map_err(failed(action))?;
        let run = taken.map(|row| Run::read(&row, tx.now)).transpose()?;
        tx.commit(action).await?;
        Ok(run)
    }

    /// Ends the leases of `worker`, who does nothing any more: others need not wait until they are over.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn release(&self, worker: &Worker) -> Result<(), Error> {
        let action = "give runs back";
        self.retrying(Again::Always, async |_| {
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
