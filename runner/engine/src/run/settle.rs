//! Settles a run: stores its completion, closes its grant, removes its resources, and reads the usage.
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
use crate::run_request::Keep;

/// Time that calls may continue after the removal of their container. No client is left to read their answers.
const DRAIN_TIMEOUT: Millis = Millis(100);

/// Order in which resources are removed: each one after the resources that mount or use it.
const REMOVAL_ORDER: [ResourceKind; 8] = [
    ResourceKind::Container,
    ResourceKind::Volume,
    ResourceKind::Grant,
    ResourceKind::Session,
    ResourceKind::Turn,
    ResourceKind::Listener,
    ResourceKind::Workspace,
    ResourceKind::Files,
];

/// Result of the removal of a run's resources.
#[derive(Debug)]
struct Removed {
    /// Usage of the run's calls; absent if the data plane did not report it.
    usage: Option<Usage>,
    /// Changes of the resources that were removed, or that the request keeps.
    changes: Vec<ResourceChange>,
}

impl RunExecutor<'_> {
    /// Stores the completion, removes as many resources as possible, and returns the usage if it is known.
    ///
    /// # Errors
    /// The store's error that shows that another worker has taken the run over.
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

    /// Stores the completion, removes the resources, and stores the end of the run. If a transition cannot be stored,
    /// the worker that takes the run over repeats its step.
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

    /// Removes as many resources as possible. A resource that remains is logged, and its row leads the reaper to it.
    async fn remove_all(&self) -> Removed {
        // Without a grant there were no calls.
        let usage = self.resources.last(ResourceKind::Grant).is_none().then(Usage::default);
        let mut removed = Removed { usage, changes: Vec::new() };
        let mut data_plane_failed = false;
        for kind in REMOVAL_ORDER {
            for resource in self.resources.all(&[kind]) {
                if kind == ResourceKind::Listener && data_plane_failed {
                    // The data plane did not answer for the grant; another wait would be in vain.
                    continue;
                }
                if self.is_kept(&resource, &removed.changes) {
                    self.keep(&resource).await;
                    removed.changes.push(resource.to(ResourceState::Kept));
                    continue;
                }
                match self.remove(&resource).await {
                    Ok(usage) => {
                        removed.usage = removed.usage.or(usage);
                        removed.changes.push(resource.to(ResourceState::Removed));
                    }
                    Err(error) => {
                        data_plane_failed |= kind == ResourceKind::Grant;
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

    /// Returns whether the resource stays after the run. The files that it began with stay with a workspace,
    /// to be compared with it.
    fn is_kept(&self, resource: &ResourceChange, changes: &[ResourceChange]) -> bool {
        match resource.kind {
            ResourceKind::Workspace => {
                let is_for_people = self.ctx.spec().keep == Keep::Workspace || self.keeps_workspace;
                is_for_people || self.is_of_thread(resource)
            }
            ResourceKind::Files => changes
                .iter()
                .any(|change| change.kind == ResourceKind::Workspace && change.stage == ResourceState::Kept),
            _ => false,
        }
    }

    /// Leaves a workspace for people to read, even if it cannot be made read-only, or for the next run of its thread.
    async fn keep(&self, resource: &ResourceChange) {
        if resource.kind != ResourceKind::Workspace {
            return;
        }
        let Ok(id) = WorkspaceId::parse(&resource.name) else { return };
        let workspaces = &self.ctx.engine.workspaces;
        let is_of_thread = self.is_of_thread(resource);
        let put_away =
            async { if is_of_thread { workspaces.put_away(&id).await } else { workspaces.keep(&id).await } };
        if let Ok(Err(error)) = self.ctx.run.perform(put_away).await {
            let run = self.ctx.run_id();
            let error = report::chain(&error);
            tracing::warn!(%run, workspace = %id, error, "the kept workspace is still mounted and writable");
        }
    }

    /// Removes one resource, if it exists. Returns the usage if the resource is a grant.
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
            ResourceKind::Files => run.perform(engine.workspaces.remove_files(self.ctx.run_id())).await??,
            ResourceKind::Grant => return self.close_grant(resource).await,
            ResourceKind::Listener => {
                if let Ok(dir) = SocketDirName::parse(&resource.name) {
                    // Closing the grant removes the listener. A warm container's listener may exist without a grant.
                    run.retry(async || engine.data_plane.release(&dir).await).await?;
                }
            }
            // Nothing creates volumes yet. The rest of a turn at its gateway can make no call once the grant is closed.
            ResourceKind::Volume | ResourceKind::Session | ResourceKind::Turn => {}
        }
        Ok(None)
    }

    /// Closes the run's grant, and returns the usage of its calls.
    async fn close_grant(&self, grant: &ResourceChange) -> Result<Option<Usage>, Error> {
        let run = self.ctx.run;
        let data_plane = &self.ctx.engine.data_plane;
        let close = async || data_plane.close(self.ctx.run_id(), run.holder(), DRAIN_TIMEOUT).await;
        match run.retry(close).await {
            Ok(view) => Ok(Some(view.usage)),
            // A wanted grant was never registered. The data plane has forgotten any other, and its usage is unknown.
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
        ResourceKind::Volume
        | ResourceKind::Files
        | ResourceKind::Session
        | ResourceKind::Turn
        | ResourceKind::Listener => {}
    }
}
