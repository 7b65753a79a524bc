//! Creates the container of a provisioned run, and starts its agent.
//!
//! The store records that the agent may run, before the agent is started.

use platform_core::event::Phase;
use runner_docker::{Container, SandboxSpec};
use runner_model::{
    failpoint::Point,
    lifecycle::{StartKind, Transition},
};
use runner_store::{ResourceChange, ResourceKind};
use runner_workspace::Workspace;

use super::{
    agent_container::RunningAgent,
    context::RunContext,
    error::Error,
    executor::RunExecutor,
    plan::SandboxParts,
    provision::{PreparedContainer, Provisioned},
};

impl RunExecutor<'_> {
    /// Creates the container, unless a warm one was claimed, and starts the agent.
    pub(super) async fn launch(&mut self, provisioned: Provisioned<'_>) -> Result<RunningAgent, Error> {
        let ctx = self.ctx;
        // The permit is held until the agent is started.
        let Provisioned { workspace, tap, container, permit: _permit } = provisioned;
        ctx.check_cancelled()?;
        ctx.events.send_phase(Phase::Starting);
        let (container, start) = match container {
            PreparedContainer::New { image, workspace_id, socket_dir } => {
                let parts =
                    SandboxParts { id: &workspace_id, workspace: workspace.path(), socket_dir, image };
                (self.create_container(ctx.sandbox_spec(parts)).await?, StartKind::Cold)
            }
            PreparedContainer::Warm(container) => {
                self.step(Transition::Start, self.resources.mark_made()).await?;
                Point::Starting.reach();
                (*container, StartKind::Warm)
            }
        };
        Point::ContainerMade.reach();
        self.step(Transition::Run, self.resources.mark_made()).await?;
        Point::RunStored.reach();
        ctx.check_cancelled()?;
        ctx.events.send_phase(Phase::Running);
        match start {
            StartKind::Cold => ctx.run.retry(async || container.start().await).await?,
            StartKind::Warm => ctx.write_start_file(&workspace).await?,
        }
        ctx.run.record_start(start);
        Point::Started.reach();
        let time_left = ctx.agent().run_timeout.duration();
        Ok(RunningAgent { container, workspace, tap, time_left })
    }

    /// Creates the container without starting its agent.
    async fn create_container(&mut self, spec: SandboxSpec) -> Result<Container, Error> {
        let mut changes = self.resources.mark_made();
        changes.push(ResourceChange::wanted(ResourceKind::Container, spec.name.as_str()));
        self.step(Transition::Start, changes).await?;
        Point::Starting.reach();
        let docker = &self.ctx.engine.docker;
        match self.ctx.run.retry(async || docker.create(&spec).await).await {
            Err(error @ Error::Docker(_)) if !error.is_transient() => {
                self.disown(&[ResourceKind::Container]).await?;
                Err(error)
            }
            created => created,
        }
    }
}

impl RunContext<'_> {
    /// Writes the start file of a warm container. Does nothing if the file exists.
    pub(super) async fn write_start_file(&self, workspace: &Workspace) -> Result<(), Error> {
        if let Some(start) = self.start_file() {
            self.run.perform(workspace.place_start_file(start)).await??;
        }
        Ok(())
    }
}
