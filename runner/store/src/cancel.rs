//! Records requests for a run to stop. The worker that holds the run finds them by itself.

use platform_core::{event::RunErrorCode, id::RunId};
use runner_model::lifecycle::{Failure, State, Transition};

use super::{
    RetryWhen, Store,
    error::{Error, failed},
    row::Run,
};

const ASK: &str = "UPDATE runs SET cancel_asked = COALESCE(cancel_asked, $1), changed = $1 \
     WHERE run = $2 AND installation = $3 AND ended IS NULL";
const IS_ASKED: &str = "SELECT count(*) FROM runs WHERE run = $1 AND cancel_asked IS NOT NULL";

impl Store {
    /// Asks for the run `run_id` to stop; returns it as it is now. A run that has ended stays as it is.
    ///
    /// # Errors
    /// [`Error::Unknown`] if there is no such run.
    pub async fn ask_cancel(&self, run_id: &RunId) -> Result<Run, Error> {
        self.retry(RetryWhen::Always, async |_| self.ask_cancel_once(run_id).await).await
    }

    async fn ask_cancel_once(&self, run_id: &RunId) -> Result<Run, Error> {
        let action = "request the cancellation of a run";
        let mut tx = self.begin().await?;
        let now = tx.now;
        sqlx::query(ASK)
            .bind(now)
            .bind(run_id.as_str())
            .bind(self.installation.as_str())
            .execute(tx.connection())
            .await
            .map_err(failed(action))?;
        let mut run = self.find(&mut tx, run_id).await?;
        if run.state == State::Queued && run.lease.as_ref().is_none_or(|lease| lease.over) {
            // No worker holds it, so none would find out. A worker that comes back late finds that it has ended.
            let withdraw = Failure::new(RunErrorCode::Cancelled, "cancelled before it began");
            let withdraw = Transition::Withdraw(withdraw);
            if let Ok(after) = run.state.after(&withdraw) {
                tx.make(&mut run, after, &withdraw).await?;
            }
        }
        tx.commit(action).await?;
        Ok(run)
    }

    /// Returns whether a client has asked for the run `run_id` to stop.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn is_cancel_asked(&self, run_id: &RunId) -> Result<bool, Error> {
        self.retry(RetryWhen::Always, async |_| {
            let asked = sqlx::query_scalar(IS_ASKED).bind(run_id.as_str()).fetch_one(&self.pool).await;
            let asked: i64 = asked.map_err(failed("check for a cancellation"))?;
            Ok(asked > 0)
        })
        .await
    }
}
