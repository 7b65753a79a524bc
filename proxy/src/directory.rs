//! Registers live runs by id, by trace id and by slot, for listeners that runs share. It also keeps the revocations
//! of tokens.
//!
//! A call reads it once, control writes it. No lock is held across an await.

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
    /// Quarantined slots of closed runs, each with its run.
    resting: DashMap<Correlation, RunId>,
    revoked: Mutex<Revoked>,
}

/// Runs whose tokens were revoked.
#[derive(Debug)]
struct Revoked {
    runs: HashSet<RunId>,
    log: Log,
}

/// A correlation that belongs to another run already.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is registered for run {run}; withdraw it there first")]
pub(crate) struct Taken {
    run: RunId,
}

impl Directory {
    /// Returns an empty registry that stores revocations in `file`.
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

    /// Moves all correlations of `old` to `new`, a run of the same id.
    pub(crate) fn replace(&self, old: &Arc<Run>, new: &Arc<Run>) {
        for mut there in self.correlations.iter_mut().filter(|there| Arc::ptr_eq(there, old)) {
            *there = Arc::clone(new);
        }
    }

    /// Forgets a run that was closed long enough ago.
    pub(crate) fn forget(&self, run: &RunId) {
        self.runs.remove(run);
    }

    /// Returns the run, also for a while after it was closed.
    pub(crate) fn run(&self, id: &str) -> Option<Arc<Run>> {
        self.runs.get(id).map(|run| Arc::clone(&run))
    }

    pub(crate) fn correlated(&self, correlation: &Correlation) -> Option<Arc<Run>> {
        self.correlations.get(correlation).map(|run| Arc::clone(&run))
    }

    /// Registers `correlation` for `run`. Repeating it is harmless.
    pub(crate) fn correlate(&self, correlation: Correlation, run: &Arc<Run>) -> Result<(), Taken> {
        match self.correlations.entry(correlation) {
            Entry::Occupied(there) if Arc::ptr_eq(there.get(), run) => Ok(()),
            Entry::Occupied(there) => Err(Taken { run: there.get().grant.run_id.clone() }),
            // Checked with the entry locked: a slot's quarantine begins before it leaves the entry.
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

    /// Ends all correlations of `run`. Its slots stay in quarantine until [`Directory::rested`].
    pub(crate) fn withdraw_all(&self, run: &RunId) {
        self.correlations.retain(|correlation, there| {
            let goes = there.grant.run_id == *run;
            if goes && matches!(correlation, Correlation::Slot(_)) {
                self.resting.insert(*correlation, run.clone());
            }
            !goes
        });
    }

    /// Returns the quarantined slots of `run`.
    pub(crate) fn resting(&self, run: &RunId) -> BTreeSet<Correlation> {
        self.resting.iter().filter(|there| there.value() == run).map(|there| *there.key()).collect()
    }

    /// Quarantines `slots`, which were `run`'s, until [`Directory::rested`].
    pub(crate) fn rest(&self, run: &RunId, slots: impl IntoIterator<Item = Correlation>) {
        slots.into_iter().for_each(|slot| drop(self.resting.insert(slot, run.clone())));
    }

    /// Ends the quarantine of `run`'s slots: other runs may get them.
    pub(crate) fn rested(&self, run: &RunId) {
        self.resting.retain(|_, whose| whose != run);
    }

    /// Revokes all tokens of `run`, also for a later run of that id. [`crate::runs::Runs::revoke`] notifies the runs
    /// that are open.
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
    /// If the disk rejects it.
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
