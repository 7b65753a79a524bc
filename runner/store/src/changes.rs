//! Notifies readers in this process of new events of a run, and of runs in another state, so that they need not poll.

use std::{collections::BTreeSet, future::pending};

use platform_core::id::RunId;
use tokio::sync::broadcast::{
    self,
    error::{RecvError, TryRecvError},
};

use super::Store;

/// Most changes that a watcher may leave unread. One that has left more looks at its run in any case.
const CAPACITY: usize = 1024;

/// Changes of runs, as stores of this process make them. Clones share them.
#[derive(Debug, Clone)]
pub struct RunChanges {
    /// Runs with new events.
    events: broadcast::Sender<RunId>,
    /// Runs that are new or in another state.
    states: broadcast::Sender<RunId>,
}

/// Runs that a transaction changes, which are reported once it is committed.
#[derive(Debug, Default)]
pub(super) struct ChangedRuns {
    pub(super) events: Vec<RunId>,
    pub(super) states: Vec<RunId>,
}

/// Watcher of one run.
#[derive(Debug)]
pub struct RunWatcher {
    run_id: RunId,
    changes: broadcast::Receiver<RunId>,
}

/// Watcher of the states of all runs.
#[derive(Debug)]
pub struct StateWatcher {
    changes: broadcast::Receiver<RunId>,
}

/// Error for a watcher that has left too many changes unread to tell which runs they concern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many runs have changed at once")]
pub struct ChangesLost;

impl Default for RunChanges {
    fn default() -> Self {
        Self { events: broadcast::Sender::new(CAPACITY), states: broadcast::Sender::new(CAPACITY) }
    }
}

impl RunChanges {
    /// Reports `changed` runs. Without a watcher, nothing happens.
    pub(super) fn report(&self, changed: ChangedRuns) {
        for run_id in changed.events {
            self.events.send(run_id).ok();
        }
        for run_id in changed.states {
            self.states.send(run_id).ok();
        }
    }
}

impl StateWatcher {
    /// Waits for runs that are new or in another state, and returns all that are known by then. Cancel safe.
    ///
    /// # Errors
    /// [`ChangesLost`] if the watcher was too slow.
    pub async fn changed(&mut self) -> Result<BTreeSet<RunId>, ChangesLost> {
        let mut run_ids = BTreeSet::new();
        match self.changes.recv().await {
            Ok(run_id) => run_ids.insert(run_id),
            Err(RecvError::Lagged(_)) => return Err(ChangesLost),
            Err(RecvError::Closed) => return pending().await,
        };
        loop {
            match self.changes.try_recv() {
                Ok(run_id) => run_ids.insert(run_id),
                Err(TryRecvError::Lagged(_)) => return Err(ChangesLost),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(run_ids),
            };
        }
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
        RunWatcher { run_id: run_id.clone(), changes: self.changes.events.subscribe() }
    }

    /// Returns a watcher of the states of all runs. It sees changes that this process makes from now on.
    #[must_use]
    pub fn watch_states(&self) -> StateWatcher {
        StateWatcher { changes: self.changes.states.subscribe() }
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

    fn new_events(text: &str) -> ChangedRuns {
        ChangedRuns { events: vec![id(text)], states: Vec::new() }
    }

    fn new_state(text: &str) -> ChangedRuns {
        ChangedRuns { events: Vec::new(), states: vec![id(text)] }
    }

    #[tokio::test]
    async fn a_watcher_sees_its_run_alone() {
        let changes = RunChanges::default();
        let mut watcher = RunWatcher { run_id: id("r1"), changes: changes.events.subscribe() };
        let mut has_changed = async || timeout(Duration::from_millis(20), watcher.changed()).await.is_ok();
        changes.report(new_events("r2"));
        assert!(!has_changed().await);
        changes.report(new_events("r1"));
        assert!(has_changed().await);
        // It cannot tell whose changes it has left unread.
        for _ in 0..=CAPACITY {
            changes.report(new_events("r2"));
        }
        assert!(has_changed().await);
        assert!(!has_changed().await);
    }

    #[tokio::test]
    async fn a_watcher_of_states_sees_each_run_once() {
        let changes = RunChanges::default();
        let mut watcher = StateWatcher { changes: changes.states.subscribe() };
        changes.report(new_events("r1"));
        assert!(timeout(Duration::from_millis(20), watcher.changed()).await.is_err(), "no state has changed");
        for run in ["r2", "r1", "r2"] {
            changes.report(new_state(run));
        }
        assert_eq!(watcher.changed().await, Ok([id("r1"), id("r2")].into()));
        for _ in 0..=CAPACITY {
            changes.report(new_state("r1"));
        }
        assert_eq!(watcher.changed().await, Err(ChangesLost), "it does not pretend to know all");
    }
}
