//! Chooses the workspace of a run: a new one, or the one that earlier runs of its thread have left.
//!
//! A workspace of a thread survives its runs. A run claims it when it begins to prepare, and leaves it when it settles. A
//! worker that takes the run over finds it among the run's resources, and never removes it. Until its agent may have run,
//! a new workspace holds nothing worth keeping.

use platform_core::id::WorkspaceId;
use runner_store::{ResourceChange, ResourceKind, ResourceState, ThreadClaim};
use runner_workspace::{InitialContent, Workspace, Workspaces};

use super::{context::RunContext, error::Error, executor::RunExecutor};

/// Workspace that a run is to have.
pub(super) struct ChosenWorkspace {
    pub(super) id: WorkspaceId,
    source: WorkspaceSource,
    /// Claim on the workspace; absent if the run shares it with no other.
    pub(super) claim: Option<ThreadClaim>,
}

/// Source of a run's workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkspaceSource {
    /// A workspace that is to be created.
    New,
    /// A workspace that earlier runs of the thread have left.
    Left,
}

impl ChosenWorkspace {
    /// Returns the changes that record the workspace as a resource of the run.
    pub(super) fn wanted(&self) -> Vec<ResourceChange> {
        let wanted = ResourceChange::wanted(ResourceKind::Workspace, self.id.as_str());
        let made = (self.source == WorkspaceSource::Left).then(|| wanted.to(ResourceState::Made));
        [wanted].into_iter().chain(made).collect()
    }
}

impl RunExecutor<'_> {
    /// Returns whether `resource` is a workspace of the run's thread that may hold what agents left there.
    pub(super) fn is_of_thread(&self, resource: &ResourceChange) -> bool {
        resource.kind == ResourceKind::Workspace
            && resource.stage == ResourceState::Made
            && self.ctx.request().thread_workspace().is_some()
    }
}

impl RunContext<'_> {
    /// Returns the workspaces of this host, with the size of the run's and what it has to survive.
    pub(super) fn workspaces(&self) -> Workspaces {
        let workspaces = self.engine.workspaces.sized(self.agent().disk);
        if self.request().thread_workspace().is_some() { workspaces.durable() } else { workspaces }
    }

    /// Chooses the workspace of the run. One that is gone from the disk is replaced.
    pub(super) async fn choose_workspace(&self, workspaces: &Workspaces) -> Result<ChosenWorkspace, Error> {
        let Some(key) = self.request().thread_workspace() else {
            return Ok(ChosenWorkspace {
                id: Workspaces::new_id(),
                source: WorkspaceSource::New,
                claim: None,
            });
        };
        let previous = self.engine.store.thread_workspace(&key).await?;
        let open = previous.as_ref().filter(|previous| previous.is_open_to(self.run_id()));
        let left = open.map(|previous| previous.workspace.clone()).filter(|id| workspaces.exists(id));
        if let Some(gone) = open.filter(|_| left.is_none()) {
            let workspace = &gone.workspace;
            tracing::warn!(run = %self.run_id(), %workspace, "the workspace of the thread is gone: the run gets a new one");
        }
        let source = if left.is_some() { WorkspaceSource::Left } else { WorkspaceSource::New };
        let id = left.unwrap_or_else(Workspaces::new_id);
        let claim = ThreadClaim { key, workspace: id.clone(), previous };
        Ok(ChosenWorkspace { id, source, claim: Some(claim) })
    }

    /// Creates the chosen workspace with `content`, or writes `content` into the one that was left.
    pub(super) async fn fill_workspace(
        &self,
        workspaces: &Workspaces,
        chosen: &ChosenWorkspace,
        content: InitialContent,
    ) -> Result<Workspace, Error> {
        let id = &chosen.id;
        if chosen.source == WorkspaceSource::New {
            return Ok(self.run.perform(workspaces.create(id, content)).await??);
        }
        // A worker that was stopped while it wrote has the lock still. One that waited for the lock proves anew that it
        // has the run.
        let lock = self.run.perform(workspaces.lock(id)).await??;
        self.remove_users(id).await?;
        let workspace = self.run.perform(workspaces.reopen(id, &lock)).await??;
        self.run.perform(workspace.refresh(content)).await??;
        match self.run.perform(workspace.exceeded()).await?? {
            Some(exceeded) => Err(Error::ThreadWorkspaceFull(exceeded)),
            None => Ok(workspace),
        }
    }

    /// Removes containers of earlier runs that still have the workspace mounted: an earlier removal may have failed.
    async fn remove_users(&self, id: &WorkspaceId) -> Result<(), Error> {
        let docker = &self.engine.docker;
        let own = Some(self.engine.installation.as_str());
        let containers = self.run.retry(async || docker.containers().await).await?;
        for user in containers.iter().filter(|user| user.mounts_part_of(id) && user.installation() == own) {
            self.run.retry(async || docker.remove(&user.name).await).await?;
        }
        Ok(())
    }
}
