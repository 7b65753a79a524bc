//! Provisions a run: creates its workspace, grant and socket, or claims a warm container, which lacks only the grant.
//!
//! The store records each resource before it is created.

use std::path::PathBuf;

use platform_core::{
    event::Phase,
    id::{SocketDirName, WorkspaceId},
};
use platform_runtime::{random, report};
use runner_control_client::Lines;
use runner_docker::Container;
use runner_files::Stage;
use runner_model::{
    failpoint::Point,
    lifecycle::{State, Transition},
};
use runner_store::{self as store, ResourceChange, ResourceKind, ResourceState, WarmContainer};
use runner_workspace::{InitialContent, Workspace, Workspaces};
use tokio::sync::SemaphorePermit;

use super::{context::RunContext, error::Error, executor::RunExecutor, registration::RunSocket};
use crate::{
    pool::ContainerTemplate,
    relay::{RelayOwner, RepoOrder},
    run_request::RunRequest,
};

/// Resources that exist before the agent may run.
pub(super) struct Provisioned<'r> {
    pub(super) workspace: Workspace,
    pub(super) tap: Lines,
    pub(super) container: PreparedContainer,
    /// Permit to provision and start; a warm container needs none.
    pub(super) permit: Option<SemaphorePermit<'r>>,
}

/// Container in which the agent will run.
pub(super) enum PreparedContainer {
    /// A container that is to be created for this run.
    New {
        /// Id of the image.
        image: String,
        workspace_id: WorkspaceId,
        socket_dir: PathBuf,
    },
    /// A warm container that waits for its start file.
    Warm(Box<Container>),
}

impl<'r> RunExecutor<'r> {
    /// Creates all resources that the run needs before its agent may run.
    pub(super) async fn provision(&mut self) -> Result<Provisioned<'r>, Error> {
        let ctx = self.ctx;
        ctx.check_cancelled()?;
        ctx.events.send_phase(Phase::Preparing);
        ctx.check_priced()?;
        let image = ctx.image().await?;
        if let Some(provisioned) = Box::pin(self.provision_warm(&image)).await? {
            return Ok(provisioned);
        }
        let permit = ctx.start_permit().await?;
        Box::pin(self.provision_new(image, permit)).await
    }

    /// Removes what previous workers created for an agent that never ran. Grant and listener stay, because the present
    /// worker uses them; so does a workspace of the run's thread.
    pub(super) async fn clear_leftovers(&mut self) -> Result<(), Error> {
        self.remove_kinds(&[ResourceKind::Container, ResourceKind::Workspace]).await
    }

    /// Removes the resources of these `kinds`, and stores that. A workspace of the run's thread stays.
    pub(super) async fn remove_kinds(&mut self, kinds: &[ResourceKind]) -> Result<(), Error> {
        let mut removed = Vec::new();
        for resource in self.resources.all(kinds) {
            if self.is_of_thread(&resource) {
                continue;
            }
            self.remove(&resource).await?;
            removed.push(resource.to(ResourceState::Removed));
        }
        if removed.is_empty() { Ok(()) } else { self.store_changes(removed).await }
    }

    /// Provisions the run with a warm container from `image`, if there is one.
    async fn provision_warm(&mut self, image: &str) -> Result<Option<Provisioned<'r>>, Error> {
        let ctx = self.ctx;
        // A preparation that began without a warm container continues without one.
        let is_in_thread = ctx.request().thread_workspace().is_some();
        if ctx.run.state() != State::Queued || is_in_thread || ctx.start_file().is_none() {
            return Ok(None);
        }
        let template = ContainerTemplate::new(ctx.engine, &ctx.request().agent_id, ctx.agent(), image).id();
        let Some(warm) = self.claim_warm(&template).await? else { return Ok(None) };
        Point::Prepared.reach();
        let docker = &ctx.engine.docker;
        let attach = async || docker.find_waiting(&warm.container, ctx.agent().output_capture_limit).await;
        let Some(container) = Box::pin(ctx.run.retry(attach)).await? else {
            // The container has ended while it waited.
            self.clear_leftovers().await?;
            return Ok(None);
        };
        let workspaces = ctx.workspaces();
        let workspace = ctx.run.perform(workspaces.adopt(&warm.workspace)).await??;
        let content = Box::pin(ctx.initial_content(&workspaces)).await?;
        ctx.run.perform(workspace.furnish(content)).await??;
        Point::WorkspaceMade.reach();
        let RunSocket { tap, .. } = self.open_socket().await?;
        let container = PreparedContainer::Warm(Box::new(container));
        Ok(Some(Provisioned { workspace, tap, container, permit: None }))
    }

    /// Claims a warm container of `template` for the run.
    async fn claim_warm(&mut self, template: &str) -> Result<Option<WarmContainer>, Error> {
        let ctx = self.ctx;
        let mut warm_containers = match ctx.engine.store.warm_containers(template).await {
            Ok(warm_containers) => warm_containers,
            Err(error) => {
                tracing::warn!(error = report::chain(&error), "warm container not claimed");
                return Ok(None);
            }
        };
        while !warm_containers.is_empty() {
            // The choice is random, so that concurrent runs do not compete for the same container.
            let warm = warm_containers.swap_remove(random::below(warm_containers.len()));
            let mut wanted = self.wanted_files();
            wanted.push(ResourceChange::wanted(ResourceKind::Grant, ctx.run_id().as_str()));
            match ctx.run.prepare_with(warm.clone(), wanted.clone()).await {
                Ok(()) => {
                    self.resources.apply(&wanted);
                    self.resources.apply(&warm.resource_changes());
                    return Ok(Some(warm));
                }
                Err(store::Error::NotWarm { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Provisions the run for a new container.
    async fn provision_new(
        &mut self,
        image: String,
        permit: Option<SemaphorePermit<'r>>,
    ) -> Result<Provisioned<'r>, Error> {
        let ctx = self.ctx;
        let workspaces = ctx.workspaces();
        let reserved = ctx.reserve_disk_space(&workspaces).await?;
        let chosen = ctx.choose_workspace(&workspaces).await?;
        let mut wanted = self.wanted_files();
        wanted.extend(chosen.wanted());
        if self.resources.last(ResourceKind::Listener).is_none() {
            let socket_dir = SocketDirName::from_random(random::bits());
            wanted.push(ResourceChange::wanted(ResourceKind::Grant, ctx.run_id().as_str()));
            wanted.push(ResourceChange::wanted(ResourceKind::Listener, socket_dir.as_str()));
        }
        match chosen.claim.clone() {
            Some(claim) => ctx.run.prepare_in_thread(claim, wanted.clone()).await?,
            None => ctx.run.step(Transition::Prepare, wanted.clone()).await?,
        }
        self.resources.apply(&wanted);
        Point::Prepared.reach();
        let content = Box::pin(ctx.initial_content(&workspaces)).await?;
        let workspace = Box::pin(ctx.fill_workspace(&workspaces, &chosen, content)).await?;
        drop(reserved);
        Point::WorkspaceMade.reach();
        let RunSocket { dir: socket_dir, tap } = self.open_socket().await?;
        let container = PreparedContainer::New { image, workspace_id: chosen.id, socket_dir };
        Ok(Provisioned { workspace, tap, container, permit })
    }
}

impl RunExecutor<'_> {
    /// Returns the change that records the staged files of the run as a resource, if it has any and no row yet.
    fn wanted_files(&self) -> Vec<ResourceChange> {
        let run_id = self.ctx.run_id().as_str();
        let is_recorded = self.resources.last(ResourceKind::Files).is_some();
        let is_wanted = self.ctx.spec().has_tree() && !is_recorded;
        is_wanted.then(|| ResourceChange::wanted(ResourceKind::Files, run_id)).into_iter().collect()
    }
}

impl RunContext<'_> {
    /// Returns the content of the run's workspace when its agent starts.
    async fn initial_content(&self, workspaces: &Workspaces) -> Result<InitialContent, Error> {
        let spec = self.spec();
        let files = match (&spec.files, &spec.repo) {
            (Some(staged), _) => Some(self.run.perform(workspaces.files(self.run_id(), staged)).await??),
            (None, Some(repo)) => Some(Box::pin(self.clone_repository(repo)).await?),
            (None, None) => None,
        };
        Ok(InitialContent { conversation: spec.messages.clone(), behaviour: spec.behaviour.clone(), files })
    }

    /// Makes the clone that the agent works in. A cancelled run does not wait for it.
    async fn clone_repository(&self, repo: &RepoOrder) -> Result<Stage, Error> {
        let relays = self.engine.relays();
        let RunRequest { run_id, account, .. } = self.request();
        let disk = self.spec().agent.disk;
        let owner = RelayOwner { run_id, account, attempt: self.run.attempt(), disk };
        tokio::select! {
            prepared = self.run.retry(async || relays.prepare(owner, repo).await) => prepared,
            () = self.cancel.cancelled() => Err(Error::Cancelled),
        }
    }
}
