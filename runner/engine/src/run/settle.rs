//! Settles a run: stores how it ends, closes its grant, removes its resources, and reads the usage.
//!
//! Removal needs nothing but the rows.

use platform_core::{
    control::Usage,
    event::Phase,
    id::{SocketDirName, WorkspaceId},
    limit::Millis,
};
use platform_runtime::report;
use runner_model::{
    failpoint::Point,
    lifecycle::{Completion, State, Transition},
};
use runner_store::{self as store, ResourceChange, ResourceKind, ResourceState};

use super::{error::Error, executor::RunExecutor};
use crate::request::Keep;

/// Time that calls may continue once their container is gone. No client is left to read their answers.
const DRAIN_TIMEOUT: Millis = Millis(100);

/// Order in which resources are removed: what others have mounted or use goes after them.
const REMOVAL_ORDER: [ResourceKind; 7] = [
    ResourceKind::Container,
    ResourceKind::Volume,
    ResourceKind::Grant,
    ResourceKind::Session,
    ResourceKind::Turn,
    ResourceKind::Listener,
    ResourceKind::Workspace,
];

/// Result of the removal of a run's resources.
#[derive(Debug)]
struct Removed {
    /// Usage of its calls; absent if the data plane did not report it.
    usage: Option<Usage>,
    /// Changes of the resources that are removed, or stay because the request says so.
    changes: Vec<ResourceChange>,
}

impl RunExecutor<'_> {
    /// Stores how the run ends, removes all its resources and returns the usage, as far as that is possible.
    ///
    /// # Errors
    /// The store's answer which shows that another worker has taken the run over.
    pub(super) async fn settle(&self, completion: &Completion) -> Result<Option<Usage>, store::Error> {
        self.ctx.events.send_phase(Phase::Settling);
        match self.store_and_remove(completion).await {
            Err(error) if !matches!(error, store::Error::Fenced { .. } | store::Error::Unknown { .. }) => {
                let run = self.ctx.run_id();
                tracing::warn!(%run, error = report::chain(&error), "end of the run not stored");
                Ok(None)
            }
            settled => settled,
        }
    }

    /// Removes all resources and reads the usage. A step that is not stored counts as not done: the worker that takes
    /// the run over repeats it.
    async fn store_and_remove(&self, completion: &Completion) -> Result<Option<Usage>, store::Error> {
        let run = self.ctx.run;
        match (run.state(), &completion.answer) {
            (State::Settling(_), _) => {}
            (State::Queued, Err(failure)) => {
                run.step(Transition::Withdraw(failure.clone()), []).await?;
                return Ok(Some(Usage::default()));
            }
            _ => run.settle(completion.clone(), self.ctx.events.pending_batches()).await?,
        }
        Point::SettleStored.reach();
        let removed = self.remove_all().await;
        run.step(Transition::Finish(removed.usage), removed.changes).await?;
        Point::Finished.reach();
        Ok(removed.usage)
    }

    /// Removes as many resources as possible. What is not removed is logged, and stays in its row for the reaper.
    async fn remove_all(&self) -> Removed {
        // Without a grant there were no calls.
        let usage = self.resources.last(ResourceKind::Grant).is_none().then(Usage::default);
        let mut removed = Removed { usage, changes: Vec::new() };
        let mut is_unavailable = false;
        for kind in REMOVAL_ORDER {
            for resource in self.resources.all(&[kind]) {
                if kind == ResourceKind::Listener && is_unavailable {
                    // The wait for the data plane would be repeated.
                    continue;
                }
                if kind == ResourceKind::Workspace && self.ctx.spec().keep == Keep::Workspace {
                    self.keep_workspace(&resource).await;
                    removed.changes.push(resource.to(ResourceState::Kept));
                    continue;
                }
                match self.remove(&resource).await {
                    Ok(usage) => {
                        removed.usage = removed.usage.or(usage);
                        removed.changes.push(resource.to(ResourceState::Removed));
                    }
                    Err(error) => {
                        is_unavailable |= kind == ResourceKind::Grant;
                        self.warn_not_removed(&resource, &error);
                    }
                }
            }
            reach_removed(kind);
        }
        removed
    }

    fn warn_not_removed(&self, resource: &ResourceChange, error: &Error) {
        let ResourceChange { kind, name, .. } = resource;
        let run = self.ctx.run_id();
        let error = report::chain(error);
        tracing::warn!(%run, kind = kind.name(), name, error, "resource not removed; left for gc");
    }

    /// Leaves a workspace for operators to inspect. It stays also where its growth cannot be stopped.
    async fn keep_workspace(&self, workspace: &ResourceChange) {
        let Ok(id) = WorkspaceId::parse(&workspace.name) else { return };
        if let Ok(Err(error)) = self.ctx.run.perform(self.ctx.engine.workspaces.keep(&id)).await {
            let run = self.ctx.run_id();
            let error = report::chain(&error);
            tracing::warn!(%run, workspace = %id, error, "the kept workspace is still writable");
        }
    }

    /// Removes one resource, if it exists; returns the usage of a grant.
    pub(super) async fn remove(&self, resource: &ResourceChange) -> Result<Option<Usage>, Error> {
        let run = self.ctx.run;
        let engine = self.ctx.engine;
        match resource.kind {
            ResourceKind::Container => run.retry(async || engine.docker.remove(&resource.name).await).await?,
            ResourceKind::Workspace => {
                // An invalid name was never created.
                if let Ok(id) = WorkspaceId::parse(&resource.name) {
                    run.perform(engine.workspaces.remove(&id)).await??;
                }
            }
            ResourceKind::Grant => return self.close_grant(resource).await,
            ResourceKind::Listener => {
                if let Ok(dir) = SocketDirName::parse(&resource.name) {
                    // The listener goes with the grant, unless there never was one: a warm container had its listener
                    // before.
                    run.retry(async || engine.data_plane.release(&dir).await).await?;
                }
            }
            // Nothing creates volumes yet. What is left of a turn at its gateway can make no call once the grant is
            // closed.
            ResourceKind::Volume | ResourceKind::Session | ResourceKind::Turn => {}
        }
        Ok(None)
    }

    /// Closes the run's grant, and returns the usage of its calls.
    async fn close_grant(&self, grant: &ResourceChange) -> Result<Option<Usage>, Error> {
        let run = self.ctx.run;
        let data_plane = &self.ctx.engine.data_plane;
        let close = async || data_plane.close(self.ctx.run_id(), run.epoch(), DRAIN_TIMEOUT).await;
        match run.retry(close).await {
            Ok(view) => Ok(Some(view.usage)),
            // The run was never registered; or it is long forgotten, if its agent may have run.
            Err(Error::DataPlane(error)) if error.is_unknown_run() => {
                Ok((grant.stage == ResourceState::Wanted).then(Usage::default))
            }
            Err(error) => Err(error),
        }
    }
}

/// Reaches the failpoint after the removal of all resources of a kind.
fn reach_removed(kind: ResourceKind) {
    match kind {
        ResourceKind::Container => Point::ContainerRemoved.reach(),
        ResourceKind::Grant => Point::GrantClosed.reach(),
        ResourceKind::Workspace => Point::WorkspaceRemoved.reach(),
        ResourceKind::Volume | ResourceKind::Session | ResourceKind::Turn | ResourceKind::Listener => {}
    }
}
