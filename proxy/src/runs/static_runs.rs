//! Opens runs of the configuration when the proxy starts, and brings them in line with it on a reload.
//!
//! Their spending belongs to their id, and goes on through every change.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::future::join_all;
use platform_core::{budget::Budget, control::NotReady, grant::RunGrant, id::RunId};
use platform_runtime::{report, settings::StaticRun, socket, trust::Trusted};

use super::{Error, LiveRun, Runs, run_listener::RunListener};
use crate::run::{Closing, Run, RunAndAccountBudgets, UNATTRIBUTED};

/// Runs of the configuration, by id.
pub(crate) type StaticRuns = BTreeMap<RunId, StaticRun>;

/// Returns `grant` without its budget, which can change while the run is open.
fn fixed(grant: &RunGrant) -> RunGrant {
    RunGrant { budget: Budget::default(), ..grant.clone() }
}

impl Runs {
    /// Returns those of `wanted` with a name that another run has.
    pub(crate) fn name_conflicts(&self, wanted: &StaticRuns) -> Vec<RunId> {
        wanted.keys().filter(|run_id| self.is_taken(run_id)).cloned().collect()
    }

    fn is_taken(&self, run_id: &RunId) -> bool {
        run_id.as_str() == UNATTRIBUTED || self.find(run_id).is_some_and(|live| !live.is_static())
    }

    /// Returns the runs of `wanted` that must not have the sockets they name, links resolved.
    fn socket_conflicts(&self, wanted: &StaticRuns) -> BTreeMap<RunId, Error> {
        let reserved = self.reserved.each_ref().map(|dir| socket::resolved(dir));
        let mut taken = BTreeMap::new();
        let mut socket_conflicts = BTreeMap::new();
        for (run, socket) in wanted.iter().filter_map(|(run, wanted)| Some((run, wanted.socket.as_ref()?))) {
            let path = socket::resolved(socket);
            let error = if reserved.iter().any(|dir| path.starts_with(dir)) {
                Some(Error::Reserved { path })
            } else {
                let other: Option<&RunId> = taken.get(&path).copied();
                taken.entry(path.clone()).or_insert(run);
                other.map(|other| Error::SameSocket { path, other: other.clone() })
            };
            socket_conflicts.extend(error.map(|error| (run.clone(), error)));
        }
        socket_conflicts
    }

    /// Opens, changes and closes runs to match `wanted`; `before` is the earlier configuration. Calls in flight of a
    /// run that closes have `grace` to end. Returns the runs that could not be opened; a run that could not be changed
    /// goes on as it was.
    pub(crate) async fn open_static(
        &self,
        before: &StaticRuns,
        wanted: &StaticRuns,
        grace: Duration,
    ) -> Vec<NotReady> {
        let gone: Vec<_> =
            self.live.iter().filter(|live| live.is_static()).map(|live| live.key().clone()).collect();
        for run in gone.iter().filter(|run| !wanted.contains_key(*run)) {
            self.withdraw_run(run, grace);
        }
        let socket_conflicts = self.socket_conflicts(wanted);
        let opened = join_all(wanted.iter().map(|(run, wanted)| async {
            let opened = match socket_conflicts.get(run) {
                Some(error) => Err(report::chain(error)),
                None => self
                    .open_static_one(before.get(run), wanted, grace)
                    .await
                    .map_err(|error| report::chain(&error)),
            };
            Some(NotReady::RunNotOpen { run_id: run.clone(), why: opened.err()? })
        }));
        let not_open: Vec<_> = opened.await.into_iter().flatten().collect();
        self.not_open.replace(not_open.clone());
        not_open
    }

    async fn open_static_one(
        &self,
        before: Option<&StaticRun>,
        wanted: &StaticRun,
        grace: Duration,
    ) -> Result<(), Error> {
        let run_id = &wanted.grant.run_id;
        if self.is_taken(run_id) {
            return Err(Error::NameTaken { run_id: run_id.clone() });
        }
        if self.closed.contains(run_id, wanted.grant.attempt) {
            if before != Some(wanted) {
                tracing::warn!(run = %run_id, "the run was closed for good: to have it again, give it another name");
            }
            return Ok(());
        }
        let old = self.find(run_id);
        if let Some(old) = &old
            && fixed(&old.run.grant) == fixed(&wanted.grant)
            && old.listener == RunListener::of(wanted)
        {
            if before.is_none_or(|before| before.grant.budget != wanted.grant.budget) {
                old.run.spending.set_limits(&wanted.grant.budget);
            }
            return Ok(());
        }
        let live = Arc::new(self.build_static(wanted)?);
        live.listener.create_parent()?;
        self.open(&live).await.inspect_err(|_error| {
            // Old and new run share one budget.
            if let Some(old) = &old {
                old.run.spending.set_limits(&old.run.grant.budget);
            }
        })?;
        self.live.insert(run_id.clone(), Arc::clone(&live));
        if let Some(why) = wanted.exposed_directory(&Trusted::own()) {
            tracing::warn!(run = %run_id, %why, "other users can replace the run's socket: its directory is writable");
        }
        if let Some(old) = old {
            self.registry.replace(&old.run, &live.run);
            self.retire(&old.run, Closing::Replaced, grace);
        }
        Ok(())
    }

    fn build_static(&self, wanted: &StaticRun) -> Result<LiveRun, Error> {
        let StaticRun { grant, .. } = wanted;
        let run_id = grant.run_id.clone();
        let by_run = self.find(&run_id).map(|live| live.run.budget()).unwrap_or_else(|| self.budget(&run_id));
        let spent = RunAndAccountBudgets { by_run, by_account: self.accounts.of(&grant.account) };
        let run = Run::new(grant.clone(), &self.run_defaults.load(), spent)
            .map_err(|source| Error::Unwritable { run_id, source })?;
        Ok(LiveRun::new_static(run, RunListener::of(wanted)))
    }

    /// Closes a run that the configuration no longer names. Its spending is kept for when it is named again.
    fn withdraw_run(&self, run_id: &RunId, grace: Duration) {
        let Some((_, live)) = self.live.remove(run_id) else { return };
        self.spent.insert(run_id.clone(), live.run.budget());
        self.registry.withdraw_all(run_id);
        self.registry.release_quarantine(run_id);
        self.registry.forget(run_id);
        self.retire(&live.run, Closing::Closed, grace);
    }
}
