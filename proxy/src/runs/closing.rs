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

/// Holder of a run that asks to close it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holder {
    /// Attempt that it executed. An open run is closed whatever its attempt: a later one has a later epoch.
    pub(crate) attempt: u32,
    /// Epoch of its lease.
    pub(crate) epoch: u64,
}

impl Runs {
    /// Closes a run in the name of its `holder` and returns its usage. `None`: this proxy does not know it.
    pub(crate) async fn close(
        &self,
        run_id: &RunId,
        holder: Holder,
        grace: Duration,
    ) -> Result<Option<RunView>, Error> {
        self.mark_closed(run_id, holder)?;
        Ok(self.finish_close(run_id, Closing::Closed, grace).await)
    }

    /// Marks an attempt of a run as closed for good, unless the run was taken over since the epoch of `holder`.
    fn mark_closed(&self, run_id: &RunId, Holder { attempt, epoch }: Holder) -> Result<(), Error> {
        let live = self.find(run_id);
        let attempt = live.as_ref().map_or(attempt, |live| live.run.grant.attempt);
        let mut persisted = live.as_ref().and_then(|live| live.persisted());
        let known = persisted.as_ref().map_or_else(|| self.closed.epoch(run_id), |persisted| persisted.epoch);
        fence(run_id, known, epoch)?;
        match &mut persisted {
            // Not stored: on the disk, the run is recorded as closed.
            Some(persisted) => persisted.epoch = epoch,
            None => self.closed.raise(run_id, epoch),
        }
        self.record_closed(run_id, attempt);
        Ok(())
    }

    /// Records that an attempt of the run is closed. It need not be open: it may have been under an earlier proxy.
    fn record_closed(&self, run_id: &RunId, attempt: u32) {
        if let Err(error) = self.closed.add(run_id, attempt) {
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
        self.run_keys.retire(&live.run);
        self.journal.flush_run(run_id);
        let view = RunView { socket: None, ..live.view() };
        // By now, the next attempt may be open under the same id.
        if self.live.remove_if(run_id, |_, open| Arc::ptr_eq(open, &live)).is_some() {
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
            self.live.iter().filter(|live| is_expired(&live.run)).map(|live| Arc::clone(&live.run)).collect();
        expired.iter().for_each(|run| self.record_closed(&run.grant.run_id, run.grant.attempt));
        let closing = |run: &Arc<Run>| {
            let run_id = run.grant.run_id.clone();
            async move { self.finish_close(&run_id, Closing::Expired, Duration::ZERO).await }
        };
        join_all(expired.iter().map(closing)).await;
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
        let run_keys = Arc::clone(&self.run_keys);
        task::spawn("closing a run", async move {
            run.close(reason, grace).await;
            run_keys.retire(&run);
        });
    }
}
