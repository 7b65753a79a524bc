//! Which runs were closed: for good, also over restarts, so that no run is opened twice and spends twice what it may.

use std::{
    collections::{HashSet, VecDeque},
    fs::{File, OpenOptions},
    io,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use platform_core::{control::RunView, id::RunId};

use crate::state;

/// Runs that are remembered. The oldest are forgotten first: control never gives an id twice.
const REMEMBERED: usize = 100_000;
/// Runs of which the last state is kept, so that asking late is harmless.
const VIEWS: usize = 1024;

/// The runs that were closed.
#[derive(Debug)]
pub(crate) struct ClosedRuns {
    closed: Mutex<Closed>,
    views: Mutex<VecDeque<RunView>>,
}

#[derive(Debug)]
struct Closed {
    file: File,
    ids: HashSet<RunId>,
    order: VecDeque<RunId>,
}

impl ClosedRuns {
    /// Those that `file` tells of.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub(crate) fn open(file: &Path) -> io::Result<Self> {
        let mut order = VecDeque::from(state::runs(file)?);
        if order.len() > 2 * REMEMBERED {
            order.drain(..order.len() - REMEMBERED);
            let lines: String = order.iter().map(|run| format!("{run}\n")).collect();
            state::replace(file, lines.as_bytes())?;
        }
        order.drain(..order.len().saturating_sub(REMEMBERED));
        let file = OpenOptions::new().create(true).append(true).open(file)?;
        set_aside(&file);
        let closed = Closed { file, ids: order.iter().cloned().collect(), order };
        Ok(Self { closed: Mutex::new(closed), views: Mutex::default() })
    }

    pub(crate) fn contains(&self, run: &RunId) -> bool {
        self.closed().ids.contains(run)
    }

    /// From now on `run` is closed, also if this process is killed.
    pub(crate) fn add(&self, run: &RunId) -> io::Result<()> {
        let mut closed = self.closed();
        if !closed.ids.insert(run.clone()) {
            return Ok(());
        }
        closed.order.push_back(run.clone());
        if closed.order.len() > REMEMBERED
            && let Some(oldest) = closed.order.pop_front()
        {
            closed.ids.remove(&oldest);
        }
        state::append(&mut closed.file, run)?;
        set_aside(&closed.file);
        Ok(())
    }

    /// The last state of a run that was closed not long ago.
    pub(crate) fn view(&self, run: &RunId) -> Option<RunView> {
        self.views().iter().find(|view| view.grant.run_id == *run).cloned()
    }

    /// The epoch a run was in when it was closed; 0 if that is not known any more.
    pub(crate) fn epoch(&self, run: &RunId) -> u64 {
        self.views().iter().find(|view| view.grant.run_id == *run).map_or(0, |view| view.epoch)
    }

    /// It is in `epoch` now, if it is remembered.
    pub(crate) fn raise(&self, run: &RunId, epoch: u64) {
        if let Some(view) = self.views().iter_mut().find(|view| view.grant.run_id == *run) {
            view.epoch = epoch;
        }
    }

    /// Keeps the last state of a run; returns the run whose state is kept no more.
    pub(crate) fn keep(&self, view: RunView) -> Option<RunId> {
        let mut views = self.views();
        views.push_front(view);
        if views.len() <= VIEWS {
            return None;
        }
        views.pop_back().map(|oldest| oldest.grant.run_id)
    }

    fn closed(&self) -> MutexGuard<'_, Closed> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn views(&self) -> MutexGuard<'_, VecDeque<RunView>> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A disk that is full must not make a closed run one that can be opened again.
fn set_aside(file: &File) {
    if let Err(error) = state::set_aside(file) {
        tracing::warn!(%error, "no space can be set aside for runs that are closed while the disk is full");
    }
}
