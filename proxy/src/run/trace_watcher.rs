//! Watches the trace of a run.

use std::sync::Arc;

use platform_core::trace::TraceEvent;
use tokio::sync::broadcast;

use super::Run;

/// Watcher of a run's trace, until dropped.
#[derive(Debug)]
pub(crate) struct TraceWatcher {
    pub(crate) events: broadcast::Receiver<TraceEvent>,
    run: Arc<Run>,
}

impl TraceWatcher {
    /// Watches `run` from now on.
    pub(crate) fn of(run: Arc<Run>) -> Self {
        Self { events: run.trace.add_watcher(), run }
    }
}

impl Drop for TraceWatcher {
    fn drop(&mut self) {
        self.run.trace.remove_watcher();
    }
}
