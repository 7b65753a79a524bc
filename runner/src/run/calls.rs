//! What the data plane knows of a run's calls: how the last of them ended, and whether anything still happens.

use std::{cell::Cell, time::Duration};

use platform_core::{id::RunId, record::CallEnd, trace::TraceEvent};
use platform_runtime::report;
use tokio::time::{Instant, sleep, timeout};

use super::Scene;
use crate::{
    away::Away,
    data_plane::{DataPlane, Lines},
};

/// Pause before it is asked again.
const PAUSE: Duration = Duration::from_millis(200);
/// How long the last call of an agent that is gone may take to end, too.
const ENDING: Duration = Duration::from_secs(1);
/// How long the data plane may be away before a failure has to do without its reason.
const PATIENCE: Duration = Duration::from_secs(5);

/// How the run's last call ended; absent if none did, or the data plane cannot be asked.
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

/// When anything was seen of a run's calls.
#[derive(Debug)]
pub(super) struct Calls {
    /// When a step of any of them was seen last, or it was begun to look.
    stirred: Cell<Instant>,
}

impl Calls {
    pub(super) fn new() -> Self {
        Self { stirred: Cell::new(Instant::now()) }
    }

    /// For how long nothing was seen of them.
    pub(super) fn quiet(&self) -> Duration {
        self.stirred.get().elapsed()
    }

    /// Sees what happens, from `lines` on, until the run is closed. What is missed while the data plane is away is not seen.
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
