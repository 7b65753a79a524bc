//! Removes a resource that was judged dead, if a second judgement confirms it.

use platform_core::{
    id::{RunId, SocketDirName, WorkspaceId},
    limit::Millis,
};
use platform_runtime::report;
use runner_control_client::{self as data_plane, Holder};
use runner_docker::{self as docker, Docker, Removal};
use runner_store::{self as store, FencingToken, Resource, ResourceKind, ResourceState, WarmContainer};
use runner_workspace as workspace;

use super::{
    Reaper,
    decision::{Decision, Terms, judge},
    evidence::{FoundResource, StoredRun},
    gc_report::GcOutcome,
    inventory::{list_containers, with_users},
};
use crate::pool;

/// Reason why a dead resource was not removed.
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
    #[error("the warm container could not be removed")]
    WarmContainer(#[from] pool::Error),
    /// The container was renamed, or another run of a thread has the workspace.
    #[error("it has changed since it was inspected")]
    Changed,
}

impl Reaper {
    /// Judges `resource` again, after the earlier decision `judged`, and removes it if it is still dead. Returns the
    /// new decision and its outcome.
    pub(super) async fn act(
        &self,
        resource: &FoundResource,
        run_id: Option<&RunId>,
        terms: &Terms<'_>,
        judged: Decision,
    ) -> (Decision, GcOutcome) {
        let failed = |error: Error| GcOutcome::Failed { error: report::chain(&error) };
        let stored_run = match self.stored_run(run_id).await {
            Ok(stored_run) => stored_run,
            Err(error) => return (judged, failed(error.into())),
        };
        let refreshed = match self.refresh(resource).await {
            Ok(refreshed) => refreshed,
            Err(error) => return (judged, failed(error)),
        };
        let decision = judge(&refreshed, stored_run.as_ref(), terms);
        if !matches!(decision, Decision::Remove(_)) {
            let outcome = GcOutcome::of(&decision);
            return (decision, outcome);
        }
        let outcome = match self.remove(&refreshed, run_id, stored_run.as_ref()).await {
            Ok(outcome) => self.record_removed(&refreshed, stored_run.as_ref()).await.map(|()| outcome),
            Err(error) => Err(error),
        };
        (decision, outcome.unwrap_or_else(failed))
    }

    async fn stored_run(&self, run_id: Option<&RunId>) -> Result<Option<StoredRun>, store::Error> {
        let Some(run_id) = run_id else { return Ok(None) };
        match self.store.run_with_resources(run_id).await {
            Ok((run, rows)) => Ok(Some(StoredRun::new(&run, rows))),
            Err(store::Error::Unknown { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns `resource` with the present users of a workspace: also a container that could not be removed.
    async fn refresh(&self, resource: &FoundResource) -> Result<FoundResource, Error> {
        let FoundResource::Workspace(dir) = resource else { return Ok(resource.clone()) };
        let containers = list_containers(&self.sandbox.docker_socket).await?;
        let dirs = with_users(vec![dir.clone()], &containers).into_iter();
        Ok(dirs.map(FoundResource::Workspace).next().unwrap_or_else(|| resource.clone()))
    }

    async fn remove(
        &self,
        resource: &FoundResource,
        run_id: Option<&RunId>,
        stored_run: Option<&StoredRun>,
    ) -> Result<GcOutcome, Error> {
        match resource {
            FoundResource::Container(found) => {
                match Docker::connect(&self.sandbox.docker_socket).await?.remove_listed(found).await? {
                    Removal::Done => Ok(GcOutcome::Removed),
                    Removal::GoneBefore => Ok(GcOutcome::WasGone),
                    Removal::Changed => Err(Error::Changed),
                }
            }
            FoundResource::Grant(grant) => {
                // The close names the judged epoch, so it does not affect a later one.
                let epoch = stored_run.map_or(grant.epoch, |stored_run| stored_run.epoch);
                let holder = Holder { attempt: grant.attempt, epoch };
                // No client is left to read an answer, so calls in flight are cut at once.
                match self.data_plane.close(&grant.run_id, holder, Millis(0)).await {
                    Ok(view) => {
                        let token = FencingToken { run_id: grant.run_id.clone(), epoch };
                        self.store.correct_usage(&token, &view.usage).await?;
                        Ok(GcOutcome::Removed)
                    }
                    Err(error) if error.is_unknown_run() => Ok(GcOutcome::WasGone),
                    Err(error) => Err(error.into()),
                }
            }
            FoundResource::Workspace(dir) => {
                let owner = run_id.filter(|_| stored_run.is_some());
                if !self.store.retire_workspace(&dir.id, owner).await? {
                    return Err(Error::Changed);
                }
                if !self.sandbox.workspace_dir.join(dir.id.as_str()).exists() {
                    return Ok(GcOutcome::WasGone);
                }
                workspace::remove(&self.sandbox.workspace_dir, &dir.id).await?;
                Ok(GcOutcome::Removed)
            }
            FoundResource::Files(dir) => {
                workspace::remove_files(&self.sandbox.workspace_dir, &dir.run_id).await?;
                Ok(GcOutcome::Removed)
            }
            FoundResource::WarmContainer(entry) => self.remove_warm(&entry.warm).await,
            FoundResource::Row(row) => {
                if let (ResourceKind::Listener, Ok(dir)) = (row.kind, SocketDirName::parse(&row.name)) {
                    // The listener of a warm container may exist without a grant that would remove it at its end.
                    self.data_plane.release(&dir).await?;
                }
                if let (ResourceKind::Workspace, Ok(id)) = (row.kind, WorkspaceId::parse(&row.name)) {
                    self.store.retire_workspace(&id, run_id).await?;
                }
                self.store.mark_removed(row).await?;
                Ok(GcOutcome::WasGone)
            }
        }
    }

    /// Removes a warm container, unless another process has removed it or its owner is active again.
    async fn remove_warm(&self, warm: &WarmContainer) -> Result<GcOutcome, Error> {
        if !self.store.mark_warm_leaving(&warm.container, &self.worker).await? {
            return Ok(GcOutcome::WasGone);
        }
        let docker = Docker::connect(&self.sandbox.docker_socket).await?;
        pool::remove_parts(warm, &docker, &self.data_plane, &self.sandbox.workspace_dir).await?;
        self.store.mark_warm_gone(&warm.container).await?;
        Ok(GcOutcome::Removed)
    }

    /// Records that `resource` is removed. The rows of a live run belong to the run's holder.
    async fn record_removed(
        &self,
        resource: &FoundResource,
        stored_run: Option<&StoredRun>,
    ) -> Result<(), Error> {
        let Some(stored_run) = stored_run.filter(|stored_run| stored_run.state.is_final()) else {
            return Ok(());
        };
        let is_of_resource = |row: &&Resource| match resource {
            FoundResource::Container(_) | FoundResource::Workspace(_) | FoundResource::Files(_) => {
                row.kind == resource.kind() && row.name == resource.name()
            }
            FoundResource::Grant(_) => matches!(row.kind, ResourceKind::Grant | ResourceKind::Listener),
            FoundResource::WarmContainer(_) | FoundResource::Row(_) => false,
        };
        for row in
            stored_run.rows.iter().filter(is_of_resource).filter(|row| row.stage != ResourceState::Removed)
        {
            self.store.mark_removed(row).await?;
        }
        Ok(())
    }
}
