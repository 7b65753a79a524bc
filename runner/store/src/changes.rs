//! Notifies readers in this process of new events of a run, so that they need not poll for them.

use std::future::pending;

use platform_core::id::RunId;
use tokio::sync::broadcast::{self, error::RecvError};

use super::Store;

/// Most changes that a watcher may leave unread. One that has left more looks at its run in any case.
const CAPACITY: usize = 1024;

/// Changes of runs, as stores of this process make them. Clones share them.
#[derive(Debug, Clone)]
pub struct RunChanges(broadcast::Sender<RunId>);

/// Watcher of one run.
#[derive(Debug)]
pub struct RunWatcher {
    run_id: RunId,
    changes: broadcast::Receiver<RunId>,
}

impl Default for RunChanges {
    fn default() -> Self {
        Self(broadcast::Sender::new(CAPACITY))
    }
}

impl RunChanges {
    /// Reports new events of `run_id`. Without a watcher, nothing happens.
    pub(super) fn report(&self, run_id: RunId) {
        self.0.send(run_id).ok();
    }
}

impl RunWatcher {
    /// Waits for new events of the run. Cancel safe.
    pub async fn changed(&mut self) {
        loop {
            match self.changes.recv().await {
                Ok(run_id) if run_id != self.run_id => {}
                Ok(_) | Err(RecvError::Lagged(_)) => return,
                Err(RecvError::Closed) => return pending().await,
            }
        }
    }
}

impl Store {
    /// Returns the same store, whose changes watchers of `changes` see.
    #[must_use]
    pub fn reporting(mut self, changes: RunChanges) -> Self {
        self.changes = changes;
        self
    }

    /// Returns a watcher of a run. It sees changes that this process makes from now on.
    #[must_use]
    pub fn watch(&self, run_id: &RunId) -> RunWatcher {
        RunWatcher { run_id: run_id.clone(), changes: self.changes.0.subscribe() }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn id(text: &str) -> RunId {
        RunId::parse(text).unwrap()
    }

    #[tokio::test]
    async fn a_watcher_sees_its_run_alone() {
        let changes = RunChanges::default();
        let mut watcher = RunWatcher { run_id: id("r1"), changes: changes.0.subscribe() };
        let mut has_changed = async || timeout(Duration::from_millis(20), watcher.changed()).await.is_ok();
        changes.report(id("r2"));
        assert!(!has_changed().await);
        changes.report(id("r1"));
        assert!(has_changed().await);
        // It cannot tell whose changes it has left unread.
        for _ in 0..=CAPACITY {
            changes.report(id("r2"));
        }
        assert!(has_changed().await);
        assert!(!has_changed().await);
    }
}
