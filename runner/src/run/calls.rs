//! How the last of a run's calls ended, as the data plane tells step by step while the run is open.

use std::{cell::Cell, time::Duration};

use platform_core::{
    id::RunId,
    trace::{Step, TraceEvent},
};
use tokio::time::Instant;

use crate::{
    away::Away,
    data_plane::{DataPlane, Lines},
    gateway::verdict::Call,
};

/// Pause before the steps are asked for again.
const PAUSE: Duration = Duration::from_millis(200);

/// What was seen of a run's calls.
#[derive(Debug)]
pub(super) struct Calls {
    last: Cell<Option<Call>>,
    /// When a step of any of them was seen last, or it was begun to look.
    stirred: Cell<Instant>,
}

impl Calls {
    pub(super) fn new() -> Self {
        Self { last: Cell::new(None), stirred: Cell::new(Instant::now()) }
    }

    /// How the one ended that ended last; absent if none was seen to.
    pub(super) const fn last(&self) -> Option<Call> {
        self.last.get()
    }

    /// For how long nothing was seen of them.
    pub(super) fn quiet(&self) -> Duration {
        self.stirred.get().elapsed()
    }

    fn see(&self, step: &Step) {
        self.stirred.set(Instant::now());
        if let Step::Ended { outcome, status, refusal, .. } = *step {
            self.last.set(Some(Call { outcome, status, refusal }));
        }
    }

    /// Sees what happens, from `lines` on, until the run is closed. What is missed while the data plane is away is not seen.
    pub(super) async fn follow(&self, (data_plane, run): (&DataPlane, &RunId), mut lines: Lines) {
        loop {
            while let Ok(Some(line)) = lines.next().await {
                if let Ok(TraceEvent::Step { step, .. }) = serde_json::from_slice(line) {
                    self.see(&step);
                }
            }
            lines = loop {
                tokio::time::sleep(PAUSE).await;
                match data_plane.trace(run).await {
                    Ok(lines) => break lines,
                    Err(error) if error.is_away() => {}
                    Err(_closed) => return,
                }
            };
        }
    }
}
