//! Closes runs: on a request of control, at their expiry, when another run takes their place, and with the proxy.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use platform_core::{control::RunView, id::RunId};
use platform_runtime::{report, shutdown, task};

use super::{Error, Runs, opening::fence};
use crate::{
    clock,
    data_plane_thread::DataPlaneThread,
    run::{Closing, Run},
};

/// Interval between two checks for expired runs. No call begins after a run's expiry, whatever the interval.
const EXPIRY_CHECK_INTERVAL: Duration = Duration::from_millis(250);

impl Runs {
    /// Closes a run in the name of `epoch` and returns its usage. `None`: this proxy does not know it.
    pub(crate) async fn close(
        &self,
        run_id: &RunId,
        epoch: u64,
        grace: Duration,
    ) -> Result<Option<RunView>, Error> {
        self.mark_closed(run_id, epoch)?;
        Ok(self.finish_close(run_id, Closing::Closed, grace).await)
    }

    /// Marks a run as closed for good, unless it was taken over since `epoch`.
    fn mark_closed(&self, run_id: &RunId, epoch: u64) -> Result<(), Error> {
        let live = self.find(run_id);
        let mut persisted = live.as_ref().and_then(|live| live.persisted());
        let known = persisted.as_ref().map_or_else(|| self.closed.epoch(run_id), |persisted| persisted.epoch);
        fence(run_id, known, epoch)?;
        match &mut persisted {
            // Not stored: on the disk, the run is recorded as closed.
            Some(persisted) => persisted.epoch = epoch,
            None => self.closed.raise(run_id, epoch),
        }
        self.record_closed(run_id);
        Ok(())
    }

    /// Records that the run is closed. It need not be open: it may have been open under an earlier proxy.
    fn record_closed(&self, run_id: &RunId) {
        if let Err(error) = self.closed.add(run_id) {
            let error = report::chain(&error);
            tracing::error!(run = %run_id, error, "closed run not recorded: a restart may open it again");
        }
        self.spent.remove(run_id);
    }

    /// Ends a run that is recorded as closed.
    async fn finish_close(&self, run_id: &RunId, reason: Closing, grace: Duration) -> Option<RunView> {
        let Some(live) = self.find(run_id) else { return self.closed.view(run_id) };
        // Its socket must not appear after its directory was removed.
        live.opened.wait().await;
        live.run.close(reason, grace).await;
        self.journal.flush_run(run_id);
        let view = RunView { socket: None, ..live.view() };
        if self.live.remove(run_id).is_some() {
            live.run.close_tap();
            live.listener.remove();
            self.withdraw(run_id);
            self.state_dir.remove(run_id);
            if let Some(oldest) = self.closed.keep_view(view.clone()) {
                self.registry.forget(&oldest);
            }
        }
        Some(view)
    }

    /// Closes runs when they expire, as long as it is polled.
    pub(crate) async fn watch_clock(&self) {
        let mut tick = tokio::time::interval(EXPIRY_CHECK_INTERVAL);
        loop {
            tick.tick().await;
            self.close_expired(clock::now()).await;
        }
    }

    /// Closes the runs that are expired at `now`, since the epoch. Their calls in flight are cut.
    async fn close_expired(&self, now: Duration) {
        let is_expired = |run: &Run| run.is_expired(now) && run.cut().is_none();
        let expired: Vec<_> =
            self.live.iter().filter(|live| is_expired(&live.run)).map(|live| live.key().clone()).collect();
        expired.iter().for_each(|run_id| self.record_closed(run_id));
        join_all(expired.iter().map(|run_id| self.finish_close(run_id, Closing::Expired, Duration::ZERO)))
            .await;
    }

    /// Stops everything. Calls in flight may end, and their answers may be read, within `grace` or until `hurry` is
    /// ready. Then they are cut, and have the time `cut` to be recorded. Directories stay.
    pub(crate) async fn shut_down(&self, grace: Duration, cut: Duration, hurry: impl Future<Output = ()>) {
        let runs = self.all_runs();
        runs.iter().for_each(|run| run.begin_shutdown(grace));
        let ended = async {
            join_all(runs.iter().map(|run| run.until_idle())).await;
            join_all(self.threads.iter().map(DataPlaneThread::until_written)).await;
        };
        tokio::select! {
            drained = shutdown::drain(ended, grace) => tracing::info!(?drained, "calls in flight"),
            () = hurry => tracing::info!("stop requested again: calls in flight are cut"),
        }
        let recorded = shutdown::drain(
            async {
                join_all(runs.iter().map(|run| run.cut_now())).await;
                join_all(self.threads.iter().map(DataPlaneThread::stop)).await;
            },
            cut,
        );
        if recorded.await == shutdown::Drain::DeadlinePassed {
            tracing::error!("some calls did not end when they were cut; the journal has them as interrupted");
        }
    }

    /// Closes a run that another has replaced. A stop waits for its calls as well.
    pub(super) fn retire(&self, run: &Arc<Run>, reason: Closing, grace: Duration) {
        let mut retired = self.retired.lock();
        retired.retain(|run| run.strong_count() > 0);
        retired.push(Arc::downgrade(run));
        let run = Arc::clone(run);
        task::spawn("closing a run", async move { run.close(reason, grace).await });
    }
}
