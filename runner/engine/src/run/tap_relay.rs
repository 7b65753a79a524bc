//! Relays lines of the data plane's tap to the event recorder, as long as the run's agent runs.

use std::time::Duration;

use platform_core::json::{self, Bounds};
use platform_runtime::{poll::poll, report, retry::Transient};
use runner_control_client::Lines;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{context::RunContext, supervise::TAP_DRAIN_TIMEOUT};

/// Delay before a tap is opened again.
const REOPEN_DELAY: Duration = Duration::from_millis(200);
/// Silence after which the tap of an ended agent counts as complete. The data plane does not delay events.
const IDLE_TIMEOUT: Duration = Duration::from_millis(20);

impl RunContext<'_> {
    /// Records lines of `tap` until the agent has ended. If the tap breaks off, opens it again.
    pub(super) async fn relay_tap(&self, mut tap: Lines, agent_ended: &CancellationToken) {
        loop {
            while let Some(line) = next_line(&mut tap, agent_ended).await {
                match json::from_slice(line, Bounds::STORED) {
                    Ok(line) => self.events.record_tap_line(line),
                    Err(error) => {
                        let error = report::chain(&error);
                        tracing::debug!(error, "a tap event that is not in the protocol");
                    }
                }
            }
            if agent_ended.is_cancelled() {
                return;
            }
            // The data plane was restarted, or has closed the run.
            sleep(REOPEN_DELAY).await;
            match self.reopen_tap().await {
                Some(reopened) => tap = reopened,
                None => return,
            }
        }
    }

    /// Opens the tap after the last line that was recorded, as soon as the data plane answers; `None` if the run is
    /// closed.
    async fn reopen_tap(&self) -> Option<Lines> {
        let data_plane = &self.engine.data_plane;
        let reopen = async || match data_plane.tap(self.run_id(), self.events.tap_position()).await {
            Err(error) if error.is_transient() => None,
            opened => Some(opened.ok()),
        };
        poll(REOPEN_DELAY, reopen).await
    }

    /// Records lines of the tap from the time in which no worker held the run, if the data plane still has them.
    pub(super) async fn read_past_tap(&self) {
        if let Ok(tap) = self.engine.data_plane.tap(self.run_id(), self.events.tap_position()).await {
            let agent_ended = CancellationToken::new();
            agent_ended.cancel();
            drop(timeout(TAP_DRAIN_TIMEOUT, self.relay_tap(tap, &agent_ended)).await);
        }
    }
}

/// Returns the next line of a tap; `None` if the tap broke off, or is silent after the agent's end.
async fn next_line<'t>(tap: &'t mut Lines, agent_ended: &CancellationToken) -> Option<&'t [u8]> {
    let idle = async {
        agent_ended.cancelled().await;
        sleep(IDLE_TIMEOUT).await;
    };
    tokio::select! {
        line = tap.next() => line.ok().flatten(),
        () = idle => None,
    }
}
