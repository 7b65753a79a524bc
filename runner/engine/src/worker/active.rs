//! Executes claimed runs, all at the same time.

use futures_util::{StreamExt, stream::FuturesUnordered};
use platform_core::id::RunId;
use platform_runtime::report;
use runner_store as store;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{AtEnd, Work, WorkLoop};
use crate::run::{self, RunResult};

/// A run that is no longer executed here.
struct Executed {
    run_id: RunId,
    result: Result<RunResult, store::Error>,
}

impl WorkLoop<'_> {
    /// Executes the `claimed` runs, until they are to stop.
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
                    // If its end is not stored, any worker may take it over, this one as well.
                    self.active_runs.borrow_mut().retain(|run_id| *run_id != executed.run_id);
                    executed.log_if_lost();
                }
                () = self.stop.cancelled() => break,
            }
        }
        let AtEnd::Cancel(leave) = at_end else { return };
        cancel.cancel();
        let ending = async {
            while let Some(executed) = executing.next().await {
                executed.log_if_lost();
            }
        };
        tokio::select! {
            () = ending => {}
            () = leave.cancelled() => tracing::warn!("runs in progress are left for the next worker"),
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
    /// Logs a run that another worker has taken over; the result of any other run is in the store.
    fn log_if_lost(&self) {
        if let Err(lost) = &self.result {
            let lost = report::chain(lost);
            tracing::info!(run = %self.run_id, "no longer ours: {lost}");
        }
    }
}
