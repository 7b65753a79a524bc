//! Persists control's changes to a live run, so that the next proxy opens the run again as it was.

use std::{
    io,
    sync::{Arc, PoisonError},
};

use futures_util::future::join_all;
use platform_core::{
    budget::Budget,
    control::{Correlation, NotReady, RunView},
    id::RunId,
};
use platform_runtime::report;

use super::{Error, Live, Runs, kept::Kept};
use crate::{clock, directory::Taken, run::Run};

impl Runs {
    /// Opens the runs again that were open when a proxy before this one ended, and the gateways' sockets. Returns the
    /// number of runs.
    ///
    /// # Errors
    /// If the list of them cannot be read. A run that cannot be opened is tried again later.
    pub(crate) async fn restore(&self) -> io::Result<usize> {
        self.rest_on()?;
        self.restore_missing().await
    }

    /// Opens the stored runs that are not open, and returns their number.
    pub(super) async fn restore_missing(&self) -> io::Result<usize> {
        let (missing, mut not_open) = self.kept.all(|run| self.find(run).is_none())?;
        not_open.extend(self.restore_gateways().await?);
        let mut count = 0;
        let mut claims = Vec::new();
        let restoring = missing.into_iter().map(async |kept| {
            let claim = kept.socket_dir.as_ref().map(|name| self.claim(name, kept.owner())).transpose();
            (kept.grant.run_id.clone(), claim, self.restore_one(kept).await)
        });
        for (run, claim, restored) in join_all(restoring).await {
            match restored {
                Ok(restored) => count += usize::from(restored),
                Err(error) => {
                    not_open.push(NotReady::RunNotOpen { run, why: report::chain(&error) });
                    claims.extend(claim.ok().flatten());
                }
            }
        }
        self.not_restored.replace(not_open);
        // Its container may have the directory mounted: the run keeps its claim until it is open or given up.
        *self.claims_of_not_restored.lock().unwrap_or_else(PoisonError::into_inner) = claims;
        Ok(count)
    }

    /// Opens a stored run again. Returns `false` if it has expired.
    pub(super) async fn restore_one(&self, kept: Kept) -> Result<bool, Error> {
        let run = kept.grant.run_id.clone();
        let is_over = kept.grant.expires.is_some_and(|expires| clock::now().as_secs() >= expires.0);
        if is_over && let Err(error) = self.closed.add(&run) {
            tracing::error!(%run, %error, "that the run is closed cannot be written down");
        }
        if is_over || self.closed.contains(&run) {
            let is_slot = |correlation: &Correlation| matches!(correlation, Correlation::Slot(_));
            self.rest(&run, kept.correlations.iter().copied().filter(is_slot).collect());
            self.door(&kept).remove();
            self.kept.remove(&run);
            return Ok(false);
        }
        let correlations = kept.correlations.clone();
        let live = self.open_again(kept).await?;
        let taken = |correlation| self.directory.correlate(correlation, &live.run).err();
        for taken in correlations.into_iter().filter_map(taken) {
            tracing::error!(%run, %taken, "a correlation does not come back");
        }
        Ok(true)
    }

    async fn open_again(&self, kept: Kept) -> Result<Arc<Live>, Error> {
        let live = self.place(kept)?;
        let opened = self.open(&live).await;
        self.settle(&live, &opened);
        opened.map(|()| live)
    }

    /// Replaces the limits of a run, also after a restart. `None`: this proxy does not know it.
    pub(crate) fn allow(&self, run: &RunId, budget: Budget) -> Result<Option<RunView>, Error> {
        let Some(live) = self.find(run) else { return Ok(None) };
        // Before it is stored: a limit that stops a run must not wait for a disk.
        live.run.spending.allow(&budget);
        self.rewrite(&live, |kept| kept.budget = Some(budget)).map_err(Error::of_what_holds)?;
        Ok(Some(live.view()))
    }

    /// Registers `correlation` for `run`, which is open, also after a restart.
    pub(crate) fn correlate(
        &self,
        correlation: Correlation,
        run: &Arc<Run>,
    ) -> Result<Result<(), Taken>, Error> {
        if let Err(taken) = self.directory.correlate(correlation, run) {
            return Ok(Err(taken));
        }
        if let Some(live) = self.find(&run.grant.run_id) {
            self.rewrite(&live, |kept| {
                kept.correlations.insert(correlation);
            })
            .inspect_err(|_error| self.directory.withdraw(&correlation, &run.grant.run_id))?;
        }
        Ok(Ok(()))
    }

    /// Removes `correlation` from what a restart restores. Its calls are the run's until it is withdrawn from the run
    /// registry.
    pub(crate) fn forget(&self, correlation: &Correlation, run: &RunId) -> Result<(), Error> {
        match self.find(run) {
            Some(live) => self
                .rewrite(&live, |kept| {
                    kept.correlations.remove(correlation);
                })
                .map_err(Error::of_what_holds),
            None => Ok(()),
        }
    }

    /// Changes the stored state of a run.
    fn rewrite(&self, live: &Live, change: impl FnOnce(&mut Kept)) -> Result<(), Error> {
        live.kept().map_or(Ok(()), |mut kept| self.keep(&mut kept, change))
    }

    /// Changes the stored state of a run, on disk first.
    pub(super) fn keep(&self, kept: &mut Kept, change: impl FnOnce(&mut Kept)) -> Result<(), Error> {
        let mut changed = kept.clone();
        change(&mut changed);
        if changed != *kept {
            let run = kept.grant.run_id.clone();
            self.kept.write(&changed).map_err(|source| Error::Keep { run, source })?;
            *kept = changed;
        }
        Ok(())
    }
}
