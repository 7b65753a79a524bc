//! Reads from the data plane how a run's last call ended, and whether its calls still make progress.

use std::{cell::Cell, time::Duration};

use platform_core::{id::RunId, record::CallEnd, trace::TraceEvent};
use platform_runtime::report;
use runner_control_client::{DataPlane, Lines};
use runner_model::away::Away;
use tokio::time::{Instant, sleep, timeout};

use super::Scene;

/// Delay before the data plane is asked again.
const PAUSE: Duration = Duration::from_millis(200);
/// Longest wait for the last call of an agent that has ended.
const ENDING: Duration = Duration::from_secs(1);
/// Longest time without the data plane before a failure is reported without its reason.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns how the run's last call ended; absent if none did, or the data plane cannot be asked.
pub(super) async fn last(scene: &Scene<'_>) -> Option<CallEnd> {
    let (data_plane, run) = (&scene.host.data_plane, &scene.order().run_id);
    let asked = async {
        let until = Instant::now() + ENDING;
        loop {
            let view = scene.booked.ask(async || data_plane.run(run).await).await?;
            if view.in_flight == 0 || Instant::now() >= until {
                return Ok::<_, super::Error>(view.last);
            }
            sleep(PAUSE / 4).await;
        }
    };
    match timeout(PATIENCE, asked).await {
        Ok(Ok(last)) => return last,
        Ok(Err(error)) => {
            tracing::warn!(%run, error = %report::chain(&error), "how its last call ended is not known");
        }
        Err(_elapsed) => tracing::warn!(%run, "how its last call ended is not known: the data plane is away"),
    }
    None
}

/// Time of the last activity in a run's calls.
#[derive(Debug)]
pub(super) struct Calls {
    /// Moment of the last step of any call, or of the beginning of the observation.
    stirred: Cell<Instant>,
}

impl Calls {
    pub(super) fn new() -> Self {
        Self { stirred: Cell::new(Instant::now()) }
    }

    /// Returns the time since the last activity.
    pub(super) fn quiet(&self) -> Duration {
        self.stirred.get().elapsed()
    }

    /// Follows the trace, from `lines` on, until the run is closed. Steps during an outage of the data plane are not
    /// seen.
    pub(super) async fn follow(&self, (data_plane, run): (&DataPlane, &RunId), mut lines: Lines) {
        loop {
            while let Ok(Some(line)) = lines.next().await {
                if let Ok(TraceEvent::Step { .. }) = serde_json::from_slice(line) {
                    self.stirred.set(Instant::now());
                }
            }
            lines = loop {
                sleep(PAUSE).await;
                match data_plane.trace(run).await {
                    Ok(lines) => break lines,
                    Err(error) if error.is_away() => {}
                    Err(_closed) => return,
                }
            };
        }
    }
}
