//! Registers live runs by id, by trace id and by slot, for listeners that runs share. It also keeps the revocations
//! of tokens.
//!
//! A call reads it once, control writes it. No lock is held across an await.

use std::{
    collections::{BTreeSet, HashSet},
    io,
    path::Path,
    sync::{Arc, MutexGuard},
};

use dashmap::{DashMap, Entry};
use platform_core::{control::Correlation, id::RunId};
use platform_runtime::sync::Mutex;

use crate::{
    log::{self, Log},
    run::Run,
};

/// All runs that calls may belong to.
#[derive(Debug)]
pub(crate) struct RunRegistry {
    runs: DashMap<RunId, Arc<Run>>,
    correlations: DashMap<Correlation, Arc<Run>>,
    /// Quarantined slots of closed runs, each with its run.
    quarantined: DashMap<Correlation, RunId>,
    revoked: Mutex<Revoked>,
}

/// Runs with revoked tokens.
#[derive(Debug)]
struct Revoked {
    runs: HashSet<RunId>,
    log: Log,
}

/// A correlation that belongs to another run already.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is registered for run {run_id}; withdraw it there first")]
pub(crate) struct CorrelationTaken {
    run_id: RunId,
}

impl RunRegistry {
    /// Creates an empty registry, with the revocations stored in `file`.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub(crate) fn open(file: &Path) -> io::Result<Self> {
        let (log, runs) = log::open_run_log(file)?;
        Ok(Self {
            runs: DashMap::new(),
            correlations: DashMap::new(),
            quarantined: DashMap::new(),
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
        for mut other in self.correlations.iter_mut().filter(|other| Arc::ptr_eq(other, old)) {
            *other = Arc::clone(new);
        }
    }

    /// Forgets a run that was closed long enough ago.
    pub(crate) fn forget(&self, run_id: &RunId) {
        self.runs.remove(run_id);
    }

    /// Returns the run, also for a while after it was closed.
    pub(crate) fn run(&self, id: &str) -> Option<Arc<Run>> {
        self.runs.get(id).map(|run| Arc::clone(&run))
    }

    pub(crate) fn correlated(&self, correlation: &Correlation) -> Option<Arc<Run>> {
        self.correlations.get(correlation).map(|run| Arc::clone(&run))
    }

    /// Registers `correlation` for `run`. Repeating it is harmless.
    pub(crate) fn correlate(&self, correlation: Correlation, run: &Arc<Run>) -> Result<(), CorrelationTaken> {
        match self.correlations.entry(correlation) {
            Entry::Occupied(entry) if Arc::ptr_eq(entry.get(), run) => Ok(()),
            Entry::Occupied(entry) => Err(CorrelationTaken { run_id: entry.get().grant.run_id.clone() }),
            // Checked with the entry locked: a slot's quarantine begins before it leaves the entry.
            Entry::Vacant(entry) => match self.quarantined.get(&correlation) {
                Some(run_id) => Err(CorrelationTaken { run_id: run_id.clone() }),
                None => {
                    entry.insert(Arc::clone(run));
                    Ok(())
                }
            },
        }
    }

    /// Ends a correlation of the run `run_id`.
    pub(crate) fn withdraw(&self, correlation: &Correlation, run_id: &RunId) {
        self.correlations.remove_if(correlation, |_, other| other.grant.run_id == *run_id);
    }

    /// Ends all correlations of the run `run_id`. Its slots stay in quarantine until
    /// [`RunRegistry::release_quarantine`].
    pub(crate) fn withdraw_all(&self, run_id: &RunId) {
        self.correlations.retain(|correlation, other| {
            let goes = other.grant.run_id == *run_id;
            if goes && matches!(correlation, Correlation::Slot(_)) {
                self.quarantined.insert(*correlation, run_id.clone());
            }
            !goes
        });
    }

    /// Returns the quarantined slots of the run `run_id`.
    pub(crate) fn quarantined(&self, run_id: &RunId) -> BTreeSet<Correlation> {
        self.quarantined.iter().filter(|other| other.value() == run_id).map(|other| *other.key()).collect()
    }

    /// Quarantines `slots` of the run `run_id` until [`RunRegistry::release_quarantine`].
    pub(crate) fn quarantine(&self, run_id: &RunId, slots: impl IntoIterator<Item = Correlation>) {
        slots.into_iter().for_each(|slot| drop(self.quarantined.insert(slot, run_id.clone())));
    }

    /// Ends the quarantine of the slots of the run `run_id`: other runs may get them.
    pub(crate) fn release_quarantine(&self, run_id: &RunId) {
        self.quarantined.retain(|_, owner| owner != run_id);
    }

    /// Revokes all tokens of the run `run_id`, also for a later run of that id. [`crate::runs::Runs::revoke`] notifies
    /// the runs that are open.
    ///
    /// # Errors
    /// If the revocation is not stored: a restart would forget it. [`RunRegistry::store`] tries again.
    pub(crate) fn revoke(&self, run_id: &RunId) -> io::Result<()> {
        let mut revoked = self.revoked();
        let line = if revoked.runs.insert(run_id.clone()) { format!("{run_id}\n") } else { String::new() };
        revoked.log.append(&line)
    }

    /// Stores the revocations that are not stored yet.
    ///
    /// # Errors
    /// If the disk rejects it.
    pub(crate) fn store(&self) -> io::Result<()> {
        self.revoked().log.store()
    }

    /// Returns whether every revocation would survive a restart.
    pub(crate) fn is_stored(&self) -> bool {
        self.revoked().log.is_stored()
    }

    fn revoked(&self) -> MutexGuard<'_, Revoked> {
        self.revoked.lock()
    }
}
