//! Relays what the data plane's tap reports of a run's calls, as long as its agent runs.

use std::time::Duration;

use platform_runtime::{poll::poll, report, retry::Transient};
use runner_control_client::Lines;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{context::RunContext, supervise::TAP_DRAIN_TIMEOUT};

/// Delay before a tap is opened again.
const REOPEN_DELAY: Duration = Duration::from_millis(200);
/// Silence of the tap of an ended agent after which no more events are expected. The data plane does not hold events
/// back.
const IDLE_TIMEOUT: Duration = Duration::from_millis(20);

impl RunContext<'_> {
    /// Records what the tap reports, until the agent is gone: from `tap`, and where that breaks off, from another tap
    /// of the same run.
    pub(super) async fn relay_tap(&self, mut tap: Lines, gone: &CancellationToken) {
        loop {
            while let Some(line) = next_line(&mut tap, gone).await {
                match serde_json::from_slice(line) {
                    Ok(line) => self.events.record_tap_line(line),
                    Err(error) => {
                        let error = report::chain(&error);
                        tracing::debug!(error, "a tap event that is not in the protocol");
                    }
                }
            }
            if gone.is_cancelled() {
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

    /// Reads from the tap what came while no worker held the run, if the data plane still has it.
    pub(super) async fn read_past_tap(&self) {
        if let Ok(tap) = self.engine.data_plane.tap(self.run_id(), self.events.tap_position()).await {
            let gone = CancellationToken::new();
            gone.cancel();
            drop(timeout(TAP_DRAIN_TIMEOUT, self.relay_tap(tap, &gone)).await);
        }
    }
}

/// Returns the next line of a tap; `None` if it broke off, or an ended agent can have no more lines.
async fn next_line<'t>(tap: &'t mut Lines, gone: &CancellationToken) -> Option<&'t [u8]> {
    let idle = async {
        gone.cancelled().await;
        sleep(IDLE_TIMEOUT).await;
    };
    tokio::select! {
        line = tap.next() => line.ok().flatten(),
        () = idle => None,
    }
}
