//! Executes claimed runs, all at the same time.

use futures_util::{StreamExt, stream::FuturesUnordered};
use platform_core::id::RunId;
use platform_runtime::report;
use runner_store as store;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{AtEnd, Work, WorkLoop};
use crate::run::{self, RunResult};

/// A run that this process no longer executes.
struct Executed {
    run_id: RunId,
    result: Result<RunResult, store::Error>,
}

impl WorkLoop<'_> {
    /// Executes the `claimed` runs until work stops; then treats the rest as `at_end` says.
    pub(super) async fn execute_runs(&self, mut claimed: mpsc::Receiver<Work>, at_end: AtEnd) {
        let cancel = CancellationToken::new();
        let mut executing = FuturesUnordered::new();
        loop {
            tokio::select! {
                work = claimed.recv() => match work {
                    Some(work) => executing.push(self.execute(work, &cancel)),
                    None => return,
                },
                Some(executed) = executing.next(), if !executing.is_empty() => {
                    // If the end is not stored, any worker may take the run over, including this one.
                    self.active_runs.borrow_mut().retain(|run_id| *run_id != executed.run_id);
                    executed.log_if_lost();
                }
                () = self.stop.cancelled() => break,
            }
        }
        let AtEnd::Cancel(give_up) = at_end else { return };
        cancel.cancel();
        let await_ends = async {
            while let Some(executed) = executing.next().await {
                executed.log_if_lost();
            }
        };
        tokio::select! {
            () = await_ends => {}
            () = give_up.cancelled() => tracing::warn!("runs in progress are left for the next worker"),
        }
    }

    async fn execute(&self, work: Work, cancel: &CancellationToken) -> Executed {
        let Work { run, permit } = work;
        let result = run::execute_without_reader(self.engine, &run, cancel).await;
        drop(permit);
        Executed { run_id: run.request.run_id, result }
    }
}

impl Executed {
    /// Logs a run that another worker has taken over; the store has the result of any other run.
    fn log_if_lost(&self) {
        if let Err(lost) = &self.result {
            let lost = report::chain(lost);
            tracing::info!(run = %self.run_id, "no longer ours: {lost}");
        }
    }
}
