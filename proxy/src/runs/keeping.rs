//! What control says of a live run, kept for the proxy that comes after this one, which opens the run again as it was.

use std::{io, sync::Arc};

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
    /// Opens the runs again that were open when a proxy before this one ended, and the gateways' sockets; returns how many runs.
    ///
    /// # Errors
    /// If it cannot be read which they were. One that cannot be opened is tried again later.
    pub(crate) async fn restore(&self) -> io::Result<usize> {
        self.rest_on()?;
        self.restore_missing().await
    }

    /// Opens what is kept and not open, and returns how many runs.
    pub(super) async fn restore_missing(&self) -> io::Result<usize> {
        let (missing, mut not_open) = self.kept.all(|run| self.find(run).is_none())?;
        not_open.extend(self.restore_gateways().await?);
        let mut count = 0;
        for restored in join_all(missing.into_iter().map(|kept| self.restore_one(kept))).await {
            match restored {
                Ok(restored) => count += usize::from(restored),
                Err(reason) => not_open.push(reason),
            }
        }
        self.not_restored.replace(not_open);
        Ok(count)
    }

    /// Opens one again. Returns `false` for one whose time is over.
    async fn restore_one(&self, kept: Kept) -> Result<bool, NotReady> {
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
        let live = match self.open_again(kept).await {
            Ok(live) => live,
            Err(error) => return Err(NotReady::RunNotOpen { run, why: report::chain(&error) }),
        };
        let taken = |correlation| self.directory.correlate(correlation, &live.run).err();
        for taken in correlations.into_iter().filter_map(taken) {
            tracing::error!(%run, %taken, "a correlation does not come back");
        }
        Ok(true)
    }

    async fn open_again(&self, kept: Kept) -> Result<Arc<Live>, Error> {
        let live = self.place(kept)?;
        let was_there = live.door.is_there();
        let opened = self.open(&live).await;
        // A container may have the directory mounted, if it is not of this start.
        if opened.is_err() && !was_there {
            live.door.remove();
        }
        self.settle(&live, &opened);
        opened.map(|()| live)
    }

    /// Has other limits hold for a run, also after a restart. `None`: this proxy does not know it.
    pub(crate) fn allow(&self, run: &RunId, budget: Budget) -> Result<Option<RunView>, Error> {
        let Some(live) = self.find(run) else { return Ok(None) };
        // Before it is stored: a limit that stops a run must not wait for a disk.
        live.run.spending.allow(&budget);
        self.rewrite(&live, |kept| kept.budget = Some(budget)).map_err(Error::of_what_holds)?;
        Ok(Some(live.view()))
    }

    /// Has calls with `correlation` belong to `run`, which is open, also after a restart.
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

    /// Has `correlation` not come back after a restart. Calls with it are the run's until it is withdrawn from the directory.
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

    /// Changes what is on disk of a run.
    fn rewrite(&self, live: &Live, change: impl FnOnce(&mut Kept)) -> Result<(), Error> {
        live.kept().map_or(Ok(()), |mut kept| self.keep(&mut kept, change))
    }

    /// Changes what is kept of a run, on disk first.
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
