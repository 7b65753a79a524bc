//! Reads from the data plane the end of a run's last call, and the time of its calls' last activity.

use std::{cell::Cell, time::Duration};

use platform_core::{
    json::{self, Bounds},
    record::CallEnd,
    trace::TraceEvent,
};
use platform_runtime::{poll::poll, report, retry::Transient};
use runner_control_client::Lines;
use tokio::time::{Instant, sleep, timeout};

use super::context::RunContext;

/// Delay before a trace is opened again.
const REOPEN_DELAY: Duration = Duration::from_millis(200);
/// Interval between two checks for calls in flight of an agent that has ended.
const LAST_CALL_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Longest wait until an ended agent has no calls in flight.
const LAST_CALL_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest wait for an unavailable data plane; then a failure is reported without the end of the last call.
const DATA_PLANE_TIMEOUT: Duration = Duration::from_secs(5);

/// Time of the last activity in a run's calls.
pub(super) struct CallActivity<'r> {
    ctx: &'r RunContext<'r>,
    /// Moment of the last step of any call; before the first step, the moment at which observation began.
    last_step: Cell<Instant>,
}

impl RunContext<'_> {
    /// Returns the end of the run's last call; `None` if no call ended, or the data plane did not answer.
    pub(super) async fn last_call(&self) -> Option<CallEnd> {
        let deadline = Instant::now() + LAST_CALL_TIMEOUT;
        let data_plane = &self.engine.data_plane;
        let without_calls_in_flight = poll(LAST_CALL_POLL_INTERVAL, async || {
            match self.run.retry(async || data_plane.run(self.run_id()).await).await {
                Ok(view) if view.in_flight > 0 && Instant::now() < deadline => None,
                view => Some(view),
            }
        });
        let run_id = self.run_id();
        match timeout(DATA_PLANE_TIMEOUT, without_calls_in_flight).await {
            Ok(Ok(view)) => return view.last,
            Ok(Err(error)) => {
                tracing::warn!(run = %run_id, error = report::chain(&error), "end of the last call unknown");
            }
            Err(_elapsed) => {
                tracing::warn!(run = %run_id, "end of the last call unknown: data plane unavailable");
            }
        }
        None
    }
}

impl<'r> CallActivity<'r> {
    pub(super) fn new(ctx: &'r RunContext<'r>) -> Self {
        Self { ctx, last_step: Cell::new(Instant::now()) }
    }

    /// Returns the time since the last activity.
    pub(super) fn idle_time(&self) -> Duration {
        self.last_step.get().elapsed()
    }

    /// Follows the trace, from `lines` on, until the run is closed. Steps are missed while the data plane is
    /// unavailable.
    pub(super) async fn follow(&self, mut lines: Lines) {
        let RunContext { engine, .. } = self.ctx;
        loop {
            while let Ok(Some(line)) = lines.next().await {
                if let Ok(TraceEvent::Step { .. }) = json::from_slice(line, Bounds::STORED) {
                    self.last_step.set(Instant::now());
                }
            }
            sleep(REOPEN_DELAY).await;
            let reopen = async || match engine.data_plane.trace(self.ctx.run_id()).await {
                Err(error) if error.is_transient() => None,
                opened => Some(opened),
            };
            match poll(REOPEN_DELAY, reopen).await {
                Ok(reopened) => lines = reopened,
                Err(_closed) => return,
            }
        }
    }
}
