//! Records requests to cancel a run. The worker that holds the run polls for them.

use platform_core::{event::RunErrorCode, id::RunId};
use runner_model::lifecycle::{Failure, State, Transition};

use super::{
    Store,
    error::{Error, failed},
    row::Run,
};

const REQUEST_CANCEL: &str = "UPDATE runs SET cancel_asked = COALESCE(cancel_asked, $1), changed = $1 \
     WHERE run = $2 AND installation = $3 AND ended IS NULL";
const IS_CANCEL_REQUESTED: &str = "SELECT count(*) FROM runs WHERE run = $1 AND cancel_asked IS NOT NULL";

impl Store {
    /// Requests the cancellation of the run `run_id`; returns the run as it is now. Has no effect on an ended run.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the run does not exist.
    pub async fn request_cancel(&self, run_id: &RunId) -> Result<Run, Error> {
        self.retry(async || self.request_cancel_once(run_id).await).await
    }

    async fn request_cancel_once(&self, run_id: &RunId) -> Result<Run, Error> {
        let action = "request the cancellation of a run";
        let mut tx = self.begin().await?;
        let now = tx.now;
        sqlx::query(REQUEST_CANCEL)
            .bind(now)
            .bind(run_id.as_str())
            .bind(self.installation.as_str())
            .execute(tx.connection())
            .await
            .map_err(failed(action))?;
        let mut run = self.find(&mut tx, run_id).await?;
        if run.state == State::Queued && run.lease.as_ref().is_none_or(|lease| lease.expired) {
            // No worker holds the run, so none would find the request. A former holder that resumes finds the run
            // ended.
            let failure = Failure::new(RunErrorCode::Cancelled, "cancelled before it began");
            let withdraw = Transition::Withdraw(failure);
            if let Ok(after) = run.state.after(&withdraw) {
                tx.apply(&mut run, after, &withdraw).await?;
            }
        }
        tx.finish(action, run).await
    }

    /// Returns whether a client has requested the cancellation of the run `run_id`.
    pub async fn is_cancel_requested(&self, run_id: &RunId) -> Result<bool, Error> {
        self.retry(async || {
            let requests =
                sqlx::query_scalar(IS_CANCEL_REQUESTED).bind(run_id.as_str()).fetch_one(&self.pool).await;
            let requests: i64 = requests.map_err(failed("check for a cancellation"))?;
            Ok(requests > 0)
        })
        .await
    }
}
