//! How somebody gets a run that nobody works on: one that waits, one that was left, one that is given back.

use platform_core::limit::Millis;

use super::{
    Again, Hold, Store, Worker,
    backend::Backend,
    error::{Error, failed},
    row::{Run, columns},
};

/// Gives the oldest run that `$condition` holds of to a new owner, and lets others look past it meanwhile.
macro_rules! take {
    ($condition:literal, $lock:literal) => {
        concat!(
            "UPDATE runs SET epoch = epoch + 1, lease_owner = $1, lease_until = $2, changed = $3 WHERE run = (",
            "SELECT run FROM runs WHERE installation = $4 AND ",
            $condition,
            " LIMIT 1",
            $lock,
            ") RETURNING ",
            columns!()
        )
    };
}
macro_rules! queued {
    ($lock:literal) => {
        take!("state = 'queued' AND lease_owner IS NULL ORDER BY created, run", $lock)
    };
}
macro_rules! abandoned {
    ($lock:literal) => {
        take!(
            "ended IS NULL AND lease_until < $3 AND (lease_owner <> $1 OR lease_until = 0) ORDER BY lease_until, run",
            $lock
        )
    };
}

const WAITING: &str =
    "SELECT count(*) FROM runs WHERE installation = $1 AND state = 'queued' AND lease_owner IS NULL";
const GIVE_BACK: &str = "UPDATE runs SET lease_until = 0, changed = $1 WHERE run = $2 AND installation = $3 AND epoch = $4 AND ended IS NULL";
const RELEASE: &str = "UPDATE runs SET lease_until = 0, changed = $1 WHERE installation = $2 AND lease_owner = $3 \
     AND ended IS NULL";

impl Store {
    /// Claims the run that has waited longest, if one waits. It is nobody else's until `span` has passed.
    ///
    /// # Errors
    /// If the store fails. After a commit without an answer a run may be claimed and not worked on; that is what
    /// [`Store::take_over`] is for.
    pub async fn claim(&self, worker: &Worker, span: Millis) -> Result<Option<Run>, Error> {
        let statement = match self.backend {
            Backend::Sqlite => queued!(""),
            Backend::Postgres => queued!(" FOR UPDATE SKIP LOCKED"),
        };
        self.retrying(Again::UnlessDone, async |_| self.take(statement, worker, span).await).await
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
    /// its holder before still tries is refused. None of the worker's own, which knows best what became of it, before it is
    /// given back.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn take_over(&self, worker: &Worker, span: Millis) -> Result<Option<Run>, Error> {
        let statement = match self.backend {
            Backend::Sqlite => abandoned!(""),
            Backend::Postgres => abandoned!(" FOR UPDATE SKIP LOCKED"),
        };
        self.retrying(Again::UnlessDone, async |_| self.take(statement, worker, span).await).await
    }

    async fn take(
        &self,
        statement: &'static str,
        worker: &Worker,
        span: Millis,
    ) -> Result<Option<Run>, Error> {
        let action = "take a run";
        let mut tx = self.begin().await?;
        let until = tx.after(span);
        let taken = sqlx::query(statement)
            .bind(worker.to_string())
            .bind(until)
            .bind(tx.now)
            .bind(self.installation.as_str())
            .fetch_optional(tx.connection())
            .await
            .map_err(failed(action))?;
        let run = taken.map(|row| Run::read(&row, tx.now)).transpose()?;
        tx.commit(action).await?;
        Ok(run)
    }

    /// Gives a run back whose holder does nothing more for it: whoever is there may take it over, the same worker too. One
    /// that has ended or is somebody else's stays as it is.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn give_back(&self, hold: &Hold) -> Result<(), Error> {
        let action = "give a run back";
        self.retrying(Again::Always, async |_| {
            let mut tx = self.begin().await?;
            let now = tx.now;
            sqlx::query(GIVE_BACK)
                .bind(now)
                .bind(hold.run.as_str())
                .bind(self.installation.as_str())
                .bind(i64::try_from(hold.epoch).unwrap_or(i64::MAX))
                .execute(tx.connection())
                .await
                .map_err(failed(action))?;
            tx.commit(action).await
        })
        .await
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
