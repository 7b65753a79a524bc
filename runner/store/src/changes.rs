//! Notifies readers in this process of new events of a run, and of runs in another state, so that they need not poll.
//!
//! The stores of this process report their own changes. Those of other processes come from a [listener](super::listener)
//! on Postgres.

use std::{collections::BTreeSet, future::pending, sync::Arc};

use platform_core::id::RunId;
use platform_runtime::random;
use tokio::sync::broadcast::{
    self,
    error::{RecvError, TryRecvError},
};

use super::Store;

/// Most changes that a watcher may leave unread. One that has left more looks at its run in any case.
const CAPACITY: usize = 1024;

/// Changes of runs, as stores of this process make or learn of them. Clones share them.
#[derive(Debug, Clone)]
pub struct RunChanges {
    /// Random name, by which a listener tells changes of this process from those of others.
    reporter: Arc<str>,
    /// Runs with new events.
    events: broadcast::Sender<ReportedChange>,
    /// Runs that are new or in another state.
    states: broadcast::Sender<ReportedChange>,
}

/// Change that is reported to watchers.
#[derive(Debug, Clone)]
enum ReportedChange {
    Of(RunId),
    /// Any run may have changed.
    Unknown,
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
    changes: broadcast::Receiver<ReportedChange>,
}

/// Watcher of the states of all runs.
#[derive(Debug)]
pub struct StateWatcher {
    changes: broadcast::Receiver<ReportedChange>,
}

/// Runs that are new or in another state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateChanges {
    /// These runs.
    Of(BTreeSet<RunId>),
    /// Any run: changes of other processes may have been missed.
    Unknown,
}

/// Error for a watcher that has left too many changes unread to tell which runs they concern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many runs have changed at once")]
pub struct ChangesLost;

impl Default for RunChanges {
    fn default() -> Self {
        Self {
            reporter: format!("{:032x}", random::bits()).into(),
            events: broadcast::Sender::new(CAPACITY),
            states: broadcast::Sender::new(CAPACITY),
        }
    }
}

impl RunChanges {
    /// Reports `changed` runs. Without a watcher, nothing happens.
    pub(super) fn report(&self, changed: ChangedRuns) {
        for run_id in changed.events {
            self.events.send(ReportedChange::Of(run_id)).ok();
        }
        for run_id in changed.states {
            self.states.send(ReportedChange::Of(run_id)).ok();
        }
    }

    /// Reports that any run may have changed.
    pub(super) fn report_unknown(&self) {
        for sender in [&self.events, &self.states] {
            sender.send(ReportedChange::Unknown).ok();
        }
    }

    /// Returns the name under which this process reports changes to others.
    pub(super) fn reporter(&self) -> &str {
        &self.reporter
    }
}

impl StateWatcher {
    /// Waits for runs that are new or in another state, and returns all that are known by then. Cancel safe.
    ///
    /// # Errors
    /// [`ChangesLost`] if the watcher was too slow.
    pub async fn changed(&mut self) -> Result<StateChanges, ChangesLost> {
        let mut next = match self.changes.recv().await {
            Ok(change) => change,
            Err(RecvError::Lagged(_)) => return Err(ChangesLost),
            Err(RecvError::Closed) => return pending().await,
        };
        let mut run_ids = BTreeSet::new();
        let mut is_unknown = false;
        loop {
            match next {
                ReportedChange::Of(run_id) => drop(run_ids.insert(run_id)),
                ReportedChange::Unknown => is_unknown = true,
            }
            next = match self.changes.try_recv() {
                Ok(change) => change,
                Err(TryRecvError::Lagged(_)) => return Err(ChangesLost),
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            };
        }
        Ok(if is_unknown { StateChanges::Unknown } else { StateChanges::Of(run_ids) })
    }
}

impl RunWatcher {
    /// Waits for new events of the run, or for the report that any run may have changed. Cancel safe.
    pub async fn changed(&mut self) {
        loop {
            match self.changes.recv().await {
                Ok(ReportedChange::Of(run_id)) if run_id != self.run_id => {}
                Ok(_) | Err(RecvError::Lagged(_)) => return,
                Err(RecvError::Closed) => return pending().await,
            }
        }
    }
}

impl Store {
    /// Returns the same store, which reports its changes to watchers of `changes`.
    #[must_use]
    pub fn reporting(mut self, changes: RunChanges) -> Self {
        self.changes = changes;
        self
    }

    /// Returns a watcher of a run. It sees changes that this process makes or hears of from now on.
    #[must_use]
    pub fn watch(&self, run_id: &RunId) -> RunWatcher {
        RunWatcher { run_id: run_id.clone(), changes: self.changes.events.subscribe() }
    }

    /// Returns a watcher of the states of all runs. It sees changes that this process makes or hears of from now on.
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
        // It cannot tell which runs its unread changes belong to.
        for _ in 0..=CAPACITY {
            changes.report(new_events("r2"));
        }
        assert!(has_changed().await);
        assert!(!has_changed().await);
        changes.report_unknown();
        assert!(has_changed().await, "any run may have changed");
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
        assert_eq!(watcher.changed().await, Ok(StateChanges::Of([id("r1"), id("r2")].into())));
        changes.report(new_state("r1"));
        changes.report_unknown();
        changes.report(new_state("r2"));
        assert_eq!(watcher.changed().await, Ok(StateChanges::Unknown), "others may have changed, too");
        for _ in 0..=CAPACITY {
            changes.report(new_state("r1"));
        }
        assert_eq!(watcher.changed().await, Err(ChangesLost), "it does not pretend to know all");
    }
}
