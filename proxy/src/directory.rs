//! Who is who on listeners that runs share: live runs by id, by trace id and by slot, and whose tokens hold no more.
//!
//! Read once per call, written by control. What it hands out is taken out before anything is awaited.

use std::{
    collections::{BTreeSet, HashSet},
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use dashmap::{DashMap, Entry};
use platform_core::{control::Correlation, id::RunId};

use crate::{
    log::{self, Log},
    run::Run,
};

/// All runs that calls may belong to.
#[derive(Debug)]
pub(crate) struct Directory {
    runs: DashMap<RunId, Arc<Run>>,
    correlations: DashMap<Correlation, Arc<Run>>,
    /// Slots of closed runs that were not given back, with whose they were.
    resting: DashMap<Correlation, RunId>,
    revoked: Mutex<Revoked>,
}

/// Runs whose tokens were revoked.
#[derive(Debug)]
struct Revoked {
    runs: HashSet<RunId>,
    log: Log,
}

/// A correlation that is somebody else's already.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is registered for run {run}; withdraw it there first")]
pub(crate) struct Taken {
    run: RunId,
}

impl Directory {
    /// An empty one that remembers revocations in `file`.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub(crate) fn open(file: &Path) -> io::Result<Self> {
        let (log, runs) = log::of_runs(file)?;
        Ok(Self {
            runs: DashMap::new(),
            correlations: DashMap::new(),
            resting: DashMap::new(),
            revoked: Mutex::new(Revoked { runs: runs.into_iter().collect(), log }),
        })
    }

    pub(crate) fn add(&self, run: &Arc<Run>) {
        self.runs.insert(run.grant.run_id.clone(), Arc::clone(run));
        if self.revoked().runs.contains(&run.grant.run_id) {
            run.revoke_tokens();
        }
    }

    /// Has everything that was `old`'s be `new`'s, a run of the same id.
    pub(crate) fn replace(&self, old: &Arc<Run>, new: &Arc<Run>) {
        for mut there in self.correlations.iter_mut().filter(|there| Arc::ptr_eq(there, old)) {
            *there = Arc::clone(new);
        }
    }

    /// Forgets a run that was closed long enough ago.
    pub(crate) fn forget(&self, run: &RunId) {
        self.runs.remove(run);
    }

    /// The run, also for a while after it was closed.
    pub(crate) fn run(&self, id: &str) -> Option<Arc<Run>> {
        self.runs.get(id).map(|run| Arc::clone(&run))
    }

    pub(crate) fn correlated(&self, correlation: &Correlation) -> Option<Arc<Run>> {
        self.correlations.get(correlation).map(|run| Arc::clone(&run))
    }

    /// Has calls with `correlation` belong to `run`. Saying so twice is harmless.
    pub(crate) fn correlate(&self, correlation: Correlation, run: &Arc<Run>) -> Result<(), Taken> {
        match self.correlations.entry(correlation) {
            Entry::Occupied(there) if Arc::ptr_eq(there.get(), run) => Ok(()),
            Entry::Occupied(there) => Err(Taken { run: there.get().grant.run_id.clone() }),
            // Looked at with the place held: a slot begins to rest before it leaves that.
            Entry::Vacant(place) => match self.resting.get(&correlation) {
                Some(whose) => Err(Taken { run: whose.clone() }),
                None => {
                    place.insert(Arc::clone(run));
                    Ok(())
                }
            },
        }
    }

    /// Ends a correlation of `run`.
    pub(crate) fn withdraw(&self, correlation: &Correlation, run: &RunId) {
        self.correlations.remove_if(correlation, |_, there| there.grant.run_id == *run);
    }

    /// Ends all correlations of `run`. Its slots are nobody's until [`Directory::rested`].
    pub(crate) fn withdraw_all(&self, run: &RunId) {
        self.correlations.retain(|correlation, there| {
            let goes = there.grant.run_id == *run;
            if goes && matches!(correlation, Correlation::Slot(_)) {
                self.resting.insert(*correlation, run.clone());
            }
            !goes
        });
    }

    /// Slots that were `run`'s and are nobody's yet.
    pub(crate) fn resting(&self, run: &RunId) -> BTreeSet<Correlation> {
        self.resting.iter().filter(|there| there.value() == run).map(|there| *there.key()).collect()
    }

    /// Has `slots`, which were `run`'s, be nobody's until [`Directory::rested`].
    pub(crate) fn rest(&self, run: &RunId, slots: impl IntoIterator<Item = Correlation>) {
        slots.into_iter().for_each(|slot| drop(self.resting.insert(slot, run.clone())));
    }

    /// The slots that were `run`'s may be somebody else's.
    pub(crate) fn rested(&self, run: &RunId) {
        self.resting.retain(|_, whose| whose != run);
    }

    /// Remembers that no token of `run` holds any more, also one that is opened later. Those that are open are told by
    /// [`crate::runs::Runs::revoke`].
    ///
    /// # Errors
    /// If it is not stored: a restart would forget it. [`Directory::store`] tries again.
    pub(crate) fn revoke(&self, run: &RunId) -> io::Result<()> {
        let mut revoked = self.revoked();
        let line = if revoked.runs.insert(run.clone()) { format!("{run}\n") } else { String::new() };
        revoked.log.append(&line)
    }

    /// Stores what is not stored yet.
    ///
    /// # Errors
    /// If the disk does not take it.
    pub(crate) fn store(&self) -> io::Result<()> {
        self.revoked().log.store()
    }

    /// Returns whether every revocation would hold after a restart, too.
    pub(crate) fn is_stored(&self) -> bool {
        self.revoked().log.is_stored()
    }

    fn revoked(&self) -> MutexGuard<'_, Revoked> {
        self.revoked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
