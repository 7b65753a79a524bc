//! Closes runs: on a request of control, at their expiry, when another run takes their place, and with the proxy.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use futures_util::future::join_all;
use platform_core::{control::RunView, id::RunId};
use platform_runtime::{shutdown, task};

use super::{Error, Runs, opening::fence};
use crate::{
    clock,
    run::{Closing, Run},
    worker::Worker,
};

/// Interval between two checks for expired runs. No call begins after a run's expiry, whatever the interval.
const TICK: Duration = Duration::from_millis(250);

impl Runs {
    /// Closes a run in the name of `epoch` and returns its usage. `None`: this proxy does not know it.
    pub(crate) async fn close(
        &self,
        run: &RunId,
        epoch: u64,
        grace: Duration,
    ) -> Result<Option<RunView>, Error> {
        self.condemn(run, epoch)?;
        Ok(self.end(run, Closing::Closed, grace).await)
    }

    /// Marks a run as closed for good, unless it was taken over since `epoch`.
    fn condemn(&self, run: &RunId, epoch: u64) -> Result<(), Error> {
        let live = self.find(run);
        let mut kept = live.as_ref().and_then(|live| live.kept());
        let known = kept.as_ref().map_or_else(|| self.closed.epoch(run), |kept| kept.epoch);
        fence(run, known, epoch)?;
        match &mut kept {
            // Not on disk: there the run is recorded as closed.
            Some(kept) => kept.epoch = epoch,
            None => self.closed.raise(run, epoch),
        }
        self.remember(run);
        Ok(())
    }

    /// Records that the run is closed. It need not be open: it may have been with a proxy before.
    fn remember(&self, run: &RunId) {
        if let Err(error) = self.closed.add(run) {
            tracing::error!(%run, %error, "that the run is closed cannot be written down");
        }
        self.spent.remove(run);
    }

    /// Ends a run that is recorded as closed.
    async fn end(&self, run: &RunId, reason: Closing, grace: Duration) -> Option<RunView> {
        let Some(live) = self.find(run) else { return self.closed.view(run) };
        // Its socket must not appear after its directory was removed.
        live.opened.wait().await;
        live.run.close(reason, grace).await;
        self.journal.sum_up_run(run);
        let view = RunView { socket: None, ..live.view() };
        if self.live.remove(run).is_some() {
            live.run.stop_telling();
            live.door.remove();
            self.withdraw(run);
            self.kept.remove(run);
            if let Some(oldest) = self.closed.keep(view.clone()) {
                self.directory.forget(&oldest);
            }
        }
        Some(view)
    }

    /// Closes runs when they expire, as long as it is polled.
    pub(crate) async fn watch_clock(&self) {
        let mut tick = tokio::time::interval(TICK);
        loop {
            tick.tick().await;
            self.close_over(clock::now()).await;
        }
    }

    /// Closes the runs that are expired at `now`, since the epoch. Their calls in flight are cut.
    async fn close_over(&self, now: Duration) {
        let is_over = |run: &Run| run.is_over(now) && run.cut().is_none();
        let over: Vec<_> =
            self.live.iter().filter(|live| is_over(&live.run)).map(|live| live.key().clone()).collect();
        over.iter().for_each(|run| self.remember(run));
        join_all(over.iter().map(|run| self.end(run, Closing::Over, Duration::ZERO))).await;
    }

    /// Stops everything. Calls in flight may end, and their answers may be read, within `grace` or until `hurry` is
    /// ready. Then they are cut, and have the time `cut` to be recorded. Directories stay.
    pub(crate) async fn shut_down(&self, grace: Duration, cut: Duration, hurry: impl Future<Output = ()>) {
        let runs = self.everyone();
        runs.iter().for_each(|run| run.leave(grace));
        let ended = async {
            join_all(runs.iter().map(|run| run.until_idle())).await;
            join_all(self.workers.iter().map(Worker::until_written)).await;
        };
        tokio::select! {
            drained = shutdown::drain(ended, grace) => tracing::info!(?drained, "calls in flight"),
            () = hurry => tracing::info!("asked to stop again: calls in flight are cut"),
        }
        let recorded = shutdown::drain(
            async {
                join_all(runs.iter().map(|run| run.cut_now())).await;
                join_all(self.workers.iter().map(Worker::stop)).await;
            },
            cut,
        );
        if recorded.await == shutdown::Drain::DeadlinePassed {
            tracing::error!("some calls did not end when they were cut; the journal has them as interrupted");
        }
    }

    /// Closes a run that another has replaced. A stop waits for its calls as well.
    pub(super) fn retire(&self, run: &Arc<Run>, reason: Closing, grace: Duration) {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        retired.retain(|run| run.strong_count() > 0);
        retired.push(Arc::downgrade(run));
        let run = Arc::clone(run);
        task::spawn("closing a run", async move { run.close(reason, grace).await });
    }
}
