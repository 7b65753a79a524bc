//! Remembers closed runs, also across restarts, so that no run is opened twice and exceeds its limits.

use std::{
    collections::{HashSet, VecDeque},
    io,
    path::Path,
    sync::MutexGuard,
};

use platform_core::{control::RunView, id::RunId};
use platform_runtime::sync::Mutex;

use crate::log::{self, Log};

/// Number of runs that are remembered. The oldest are forgotten first: control never gives an id twice.
const MAX_REMEMBERED: usize = 100_000;
/// Number of runs whose last state is kept, so that a late request still gets it.
const MAX_VIEWS: usize = 1024;

/// Runs that were closed.
#[derive(Debug)]
pub(crate) struct ClosedRuns {
    closed: Mutex<Closed>,
    views: Mutex<VecDeque<RunView>>,
}

#[derive(Debug)]
struct Closed {
    log: Log,
    ids: HashSet<RunId>,
    order: VecDeque<RunId>,
}

impl ClosedRuns {
    /// Reads the closed runs from `file`.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub(crate) fn open(file: &Path) -> io::Result<Self> {
        let (mut log, run_ids) = log::open_run_log(file)?;
        let mut order = VecDeque::from(run_ids);
        if order.len() > 2 * MAX_REMEMBERED {
            order.drain(..order.len() - MAX_REMEMBERED);
            log.compact(&order.iter().map(|run_id| format!("{run_id}\n")).collect::<String>());
        }
        order.drain(..order.len().saturating_sub(MAX_REMEMBERED));
        let closed = Closed { log, ids: order.iter().cloned().collect(), order };
        Ok(Self { closed: Mutex::new(closed), views: Mutex::default() })
    }

    pub(crate) fn contains(&self, run_id: &RunId) -> bool {
        self.closed().ids.contains(run_id)
    }

    /// Records that the run `run_id` is closed. The record survives if this process is killed.
    ///
    /// # Errors
    /// If the record is not stored: a restart would forget it. [`ClosedRuns::store`] tries again.
    pub(crate) fn add(&self, run_id: &RunId) -> io::Result<()> {
        let mut closed = self.closed();
        if !closed.ids.insert(run_id.clone()) {
            return Ok(());
        }
        closed.order.push_back(run_id.clone());
        if closed.order.len() > MAX_REMEMBERED
            && let Some(oldest) = closed.order.pop_front()
        {
            closed.ids.remove(&oldest);
        }
        closed.log.append(&format!("{run_id}\n"))
    }

    /// Stores the closed runs that are not stored yet.
    ///
    /// # Errors
    /// If the disk rejects it.
    pub(crate) fn store(&self) -> io::Result<()> {
        self.closed().log.store()
    }

    /// Returns whether every closed run would be closed after a restart, too.
    pub(crate) fn is_stored(&self) -> bool {
        self.closed().log.is_stored()
    }

    /// Returns the last state of a run that was closed not long ago.
    pub(crate) fn view(&self, run_id: &RunId) -> Option<RunView> {
        self.views().iter().find(|view| view.grant.run_id == *run_id).cloned()
    }

    /// Returns the epoch in which a run was closed; 0 if that is no longer known.
    pub(crate) fn epoch(&self, run_id: &RunId) -> u64 {
        self.views().iter().find(|view| view.grant.run_id == *run_id).map_or(0, |view| view.epoch)
    }

    /// Raises the epoch of a run to `epoch`, if the run is remembered.
    pub(crate) fn raise(&self, run_id: &RunId, epoch: u64) {
        if let Some(view) = self.views().iter_mut().find(|view| view.grant.run_id == *run_id) {
            view.epoch = epoch;
        }
    }

    /// Keeps the last state of a run; returns the run whose state is dropped for it.
    pub(crate) fn keep_view(&self, view: RunView) -> Option<RunId> {
        let mut views = self.views();
        views.push_front(view);
        if views.len() <= MAX_VIEWS {
            return None;
        }
        views.pop_back().map(|oldest| oldest.grant.run_id)
    }

    fn closed(&self) -> MutexGuard<'_, Closed> {
        self.closed.lock()
    }

    fn views(&self) -> MutexGuard<'_, VecDeque<RunView>> {
        self.views.lock()
    }
}
