//! Removes a resource that was judged dead, if it still is.

use platform_core::{
    id::{RunId, SocketDirName},
    limit::Millis,
};
use platform_runtime::report;
use runner_control_client as data_plane;
use runner_docker::{self as docker, Docker, Removal};
use runner_store::{self as store, Hold, Kind, Resource, Stage, WarmContainer};
use runner_workspace as workspace;

use super::{
    Reaper,
    decision::{Decision, Terms, judge},
    evidence::{Standing, Thing, containers, with_users},
    report::Outcome,
};
use crate::pool;

/// Reason that something dead still exists.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the store failed")]
    Store(#[from] store::Error),
    #[error("Docker failed")]
    Docker(#[from] docker::Error),
    #[error("the proxy failed")]
    DataPlane(#[from] data_plane::Error),
    #[error("the workspace failed")]
    Workspace(#[from] workspace::Error),
    #[error("what waited for a run could not be removed")]
    WarmContainer(#[from] pool::Error),
    /// The container was renamed.
    #[error("it is no longer what it was when it was looked at")]
    Changed,
}

impl Reaper {
    /// Removes `thing`, which was judged `judged` a moment ago. Returns the decision of now and its outcome.
    pub(super) async fn act(
        &self,
        thing: &Thing,
        run: Option<&RunId>,
        terms: &Terms<'_>,
        judged: Decision,
    ) -> (Decision, Outcome) {
        let failed = |error: Error| Outcome::Failed { error: report::chain(&error) };
        let standing = match self.standing(run).await {
            Ok(standing) => standing,
            Err(error) => return (judged, failed(error.into())),
        };
        let now = match self.as_it_is_now(thing).await {
            Ok(now) => now,
            Err(error) => return (judged, failed(error)),
        };
        let decision = judge(&now, standing.as_ref(), terms);
        if !matches!(decision, Decision::Remove(_)) {
            let outcome = Outcome::of(&decision);
            return (decision, outcome);
        }
        let outcome = match self.remove(&now, standing.as_ref()).await {
            Ok(outcome) => self.keep_removed(&now, standing.as_ref()).await.map(|()| outcome),
            Err(error) => Err(error),
        };
        (decision, outcome.unwrap_or_else(failed))
    }

    async fn standing(&self, run: Option<&RunId>) -> Result<Option<Standing>, store::Error> {
        let Some(run) = run else { return Ok(None) };
        match self.store.made_for(run).await {
            Ok(found) => Ok(Some(found.into())),
            Err(store::Error::Unknown { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Refreshes a workspace's users; a container that should have been removed before may still be among them.
    async fn as_it_is_now(&self, thing: &Thing) -> Result<Thing, Error> {
        let Thing::Workspace(space) = thing else { return Ok(thing.clone()) };
        let containers = containers(&self.sandbox.docker_socket).await?;
        let spaces = with_users(vec![space.clone()], &containers).into_iter();
        Ok(spaces.map(Thing::Workspace).next().unwrap_or_else(|| thing.clone()))
    }

    async fn remove(&self, thing: &Thing, standing: Option<&Standing>) -> Result<Outcome, Error> {
        match thing {
            Thing::Container(found) => {
                match Docker::connect(&self.sandbox.docker_socket).await?.remove_listed(found).await? {
                    Removal::Done => Ok(Outcome::Removed),
                    Removal::GoneBefore => Ok(Outcome::WasGone),
                    Removal::Changed => Err(Error::Changed),
                }
            }
            Thing::Grant(grant) => {
                // The close names the judged epoch: an epoch that began since is not closed.
                let epoch = standing.map_or(grant.epoch, |standing| standing.epoch);
                // No process is left to wait for an answer.
                match self.data_plane.close(&grant.run, epoch, Millis(0)).await {
                    Ok(view) => {
                        let hold = Hold { run: grant.run.clone(), epoch };
                        self.store.used_after_all(&hold, &view.usage).await?;
                        Ok(Outcome::Removed)
                    }
                    Err(error) if error.is_unknown_run() => Ok(Outcome::WasGone),
                    Err(error) => Err(error.into()),
                }
            }
            Thing::Workspace(space) => {
                if !self.sandbox.workspace_dir.join(space.id.as_str()).exists() {
                    return Ok(Outcome::WasGone);
                }
                workspace::remove(&self.sandbox.workspace_dir, &space.id).await?;
                Ok(Outcome::Removed)
            }
            Thing::WarmContainer(pooled) => self.remove_warm(&pooled.warm).await,
            Thing::Row(row) => {
                if let (Kind::Listener, Ok(dir)) = (row.kind, SocketDirName::parse(&row.name)) {
                    // There is no grant that it would go with.
                    self.data_plane.release(&dir).await?;
                }
                self.store.removed(row).await?;
                Ok(Outcome::WasGone)
            }
        }
    }

    /// Removes a warm container, unless another process was faster or its owner came back.
    async fn remove_warm(&self, warm: &WarmContainer) -> Result<Outcome, Error> {
        if !self.store.warm_leaves(&warm.container, &self.worker).await? {
            return Ok(Outcome::WasGone);
        }
        let docker = Docker::connect(&self.sandbox.docker_socket).await?;
        pool::remove(warm, (&docker, &self.data_plane, &self.sandbox.workspace_dir)).await?;
        self.store.warm_is_gone(&warm.container).await?;
        Ok(Outcome::Removed)
    }

    /// Records that `thing` is gone. Rows of a run that goes on are its holder's.
    async fn keep_removed(&self, thing: &Thing, standing: Option<&Standing>) -> Result<(), Error> {
        let Some(standing) = standing.filter(|standing| standing.state.is_final()) else { return Ok(()) };
        let its = |row: &&Resource| match thing {
            Thing::Container(_) | Thing::Workspace(_) => row.kind == thing.kind() && row.name == thing.name(),
            Thing::Grant(_) => matches!(row.kind, Kind::Grant | Kind::Listener),
            Thing::WarmContainer(_) | Thing::Row(_) => false,
        };
        for row in standing.rows.iter().filter(its).filter(|row| row.stage != Stage::Removed) {
            self.store.removed(row).await?;
        }
        Ok(())
    }
}
