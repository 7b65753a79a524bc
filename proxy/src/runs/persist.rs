//! Persists control's changes to a live run, so that the next proxy opens the run again as it was.

use std::{io, sync::Arc};

use futures_util::future::join_all;
use platform_core::{
    budget::Budget,
    control::{Correlation, NotReady, RunView},
    id::RunId,
};
use platform_runtime::report;

use super::{Error, LiveRun, Runs, persisted_run::PersistedRun};
use crate::{clock, registry::CorrelationTaken, run::Run};

impl Runs {
    /// Opens the runs again that were open when a proxy before this one ended, and the gateways' sockets. Returns the
    /// number of runs.
    ///
    /// # Errors
    /// If the list of them cannot be read. A run that cannot be opened is tried again later.
    pub(crate) async fn restore(&self) -> io::Result<usize> {
        self.resume_quarantines()?;
        self.restore_missing().await
    }

    /// Opens the stored runs that are not open, and returns their number.
    pub(super) async fn restore_missing(&self) -> io::Result<usize> {
        let (missing, mut not_open) = self.state_dir.all(|run_id| self.find(run_id).is_none())?;
        not_open.extend(self.restore_gateways().await?);
        let mut count = 0;
        let mut claims = Vec::new();
        let restoring = missing.into_iter().map(async |persisted| {
            let claim =
                persisted.socket_dir.as_ref().map(|name| self.claim(name, persisted.owner())).transpose();
            (persisted.grant.run_id.clone(), claim, self.restore_one(persisted).await)
        });
        for (run_id, claim, restored) in join_all(restoring).await {
            match restored {
                Ok(restored) => count += usize::from(restored),
                Err(error) => {
                    not_open.push(NotReady::RunNotOpen { run_id, why: report::chain(&error) });
                    claims.extend(claim.ok().flatten());
                }
            }
        }
        self.not_restored.replace(not_open);
        // Its container may have the directory mounted: the run keeps its claim until it is open or given up.
        *self.claims_of_not_restored.lock() = claims;
        Ok(count)
    }

    /// Opens a stored run again. Returns `false` if it has expired.
    pub(super) async fn restore_one(&self, persisted: PersistedRun) -> Result<bool, Error> {
        let run_id = persisted.grant.run_id.clone();
        let attempt = persisted.grant.attempt;
        let is_expired = persisted.grant.expires.is_some_and(|expires| clock::now().as_secs() >= expires.0);
        if is_expired && let Err(error) = self.closed.add(&run_id, attempt) {
            let error = report::chain(&error);
            tracing::error!(run = %run_id, error, "closed run not recorded: a restart may open it again");
        }
        if is_expired || self.closed.contains(&run_id, attempt) {
            let is_slot = |correlation: &Correlation| matches!(correlation, Correlation::Slot(_));
            self.quarantine(&run_id, persisted.correlations.iter().copied().filter(is_slot).collect());
            self.run_listener(&persisted).remove();
            self.state_dir.remove(&run_id);
            return Ok(false);
        }
        let correlations = persisted.correlations.clone();
        let live = self.open_again(persisted).await?;
        let taken = |correlation| self.registry.correlate(correlation, &live.run).err();
        for taken in correlations.into_iter().filter_map(taken) {
            tracing::error!(run = %run_id, %taken, "correlation not restored");
        }
        Ok(true)
    }

    async fn open_again(&self, persisted: PersistedRun) -> Result<Arc<LiveRun>, Error> {
        let live = self.list_opening(persisted)?;
        let opened = self.open(&live).await;
        self.finish_opening(&live, &opened);
        opened.map(|()| live)
    }

    /// Replaces the limits of a run, for later proxies as well. `None`: this proxy does not know it.
    pub(crate) fn set_limits(&self, run_id: &RunId, budget: Budget) -> Result<Option<RunView>, Error> {
        let Some(live) = self.find(run_id) else { return Ok(None) };
        // Takes effect before it is stored: a limit that stops a run must not wait for a disk.
        live.run.spending.set_limits(&budget);
        live.run.key.reset();
        self.rewrite(&live, |persisted| persisted.budget = Some(budget)).map_err(Error::of_applied_change)?;
        Ok(Some(live.view()))
    }

    /// Registers `correlation` for `run`, which is open, for later proxies as well.
    pub(crate) fn correlate(
        &self,
        correlation: Correlation,
        run: &Arc<Run>,
    ) -> Result<Result<(), CorrelationTaken>, Error> {
        if let Err(taken) = self.registry.correlate(correlation, run) {
            return Ok(Err(taken));
        }
        if let Some(live) = self.find(&run.grant.run_id) {
            self.rewrite(&live, |persisted| {
                persisted.correlations.insert(correlation);
            })
            .inspect_err(|_error| self.registry.withdraw(&correlation, &run.grant.run_id))?;
        }
        Ok(Ok(()))
    }

    /// Removes `correlation` from the state that a restart restores. Its calls belong to the run until the registry
    /// withdraws it.
    pub(crate) fn forget(&self, correlation: &Correlation, run_id: &RunId) -> Result<(), Error> {
        match self.find(run_id) {
            Some(live) => self
                .rewrite(&live, |persisted| {
                    persisted.correlations.remove(correlation);
                })
                .map_err(Error::of_applied_change),
            None => Ok(()),
        }
    }

    /// Changes the stored state of a run.
    fn rewrite(&self, live: &LiveRun, change: impl FnOnce(&mut PersistedRun)) -> Result<(), Error> {
        live.persisted().map_or(Ok(()), |mut persisted| self.persist(&mut persisted, change))
    }

    /// Changes the stored state of a run, on disk first.
    pub(super) fn persist(
        &self,
        persisted: &mut PersistedRun,
        change: impl FnOnce(&mut PersistedRun),
    ) -> Result<(), Error> {
        let mut changed = persisted.clone();
        change(&mut changed);
        if changed != *persisted {
            let run_id = persisted.grant.run_id.clone();
            self.state_dir.write(&changed).map_err(|source| Error::NotPersisted { run_id, source })?;
            *persisted = changed;
        }
        Ok(())
    }
}
