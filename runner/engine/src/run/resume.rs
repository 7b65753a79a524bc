//! Resumes a run after a previous worker may have started its agent.
//!
//! An agent is started at most once. The store records that it may run, before it is started. A worker that takes the
//! run over then inspects the container itself. A container that was never started is removed, so that no previous
//! worker can start it later.

use platform_core::id::WorkspaceId;
use runner_docker::{Container, FoundContainer};
use runner_model::lifecycle::State;
use runner_store::{ResourceKind, ResourceState};

use super::{
    agent_container::{AgentExit, ResumeState, RunningAgent},
    error::Error,
    executor::RunExecutor,
};

impl RunExecutor<'_> {
    /// Determines the state of an agent that a previous worker may have started, and takes over a running one.
    pub(super) async fn resume(&mut self) -> Result<ResumeState, Error> {
        let ctx = self.ctx;
        let docker = &ctx.engine.docker;
        loop {
            let container = self.resources.last(ResourceKind::Container).cloned();
            let Some(row) = container.filter(|_| ctx.run.state() == State::Running) else {
                return Ok(ResumeState::NeverStarted);
            };
            match docker.find(&row.name, ctx.agent().output_capture_limit).await? {
                FoundContainer::Running(container) => {
                    if row.stage == ResourceState::Wanted {
                        self.store_changes(vec![row.to(ResourceState::Made)]).await?;
                    }
                    return Box::pin(self.adopt(self.after_recorded_output(container))).await;
                }
                FoundContainer::Ended(_) if self.waits_for_start_file() => {
                    self.store_changes(vec![row.to(ResourceState::Wanted)]).await?;
                    return Ok(ResumeState::NeverStarted);
                }
                FoundContainer::Ended(container) => {
                    return Ok(ResumeState::Ended(self.after_recorded_output(container)));
                }
                FoundContainer::Fresh => {
                    // Stored before the removal: a later worker that finds no container knows why.
                    self.store_changes(vec![row.to(ResourceState::Wanted)]).await?;
                    // If the previous worker starts the agent first, the container is not discarded, and the loop
                    // adopts it.
                    ctx.run.retry(async || docker.discard(&row.name).await).await?;
                }
                FoundContainer::Nothing if row.stage == ResourceState::Wanted => {
                    return Ok(ResumeState::NeverStarted);
                }
                FoundContainer::Nothing => return Err(Error::ContainerLost),
            }
        }
    }

    /// Takes over a running agent with its grant and workspace, and writes its start file if that is missing.
    async fn adopt(&mut self, container: Container) -> Result<ResumeState, Error> {
        let ctx = self.ctx;
        // The data plane learns the epoch: from now on it refuses earlier ones.
        let tap = self.register_socket().await?.tap;
        let id = self.workspace_id().ok_or(Error::ContainerLost)?;
        let workspace = ctx.run.perform(ctx.workspaces().adopt(&id)).await??;
        // The previous worker may not have written the start file yet.
        ctx.write_start_file(&workspace).await?;
        Ok(ResumeState::Running(RunningAgent { container, workspace, tap, time_left: ctx.time_left() }))
    }

    /// Collects the exit of an agent that ended while no worker held the run.
    pub(super) async fn collect(&self, mut container: Container) -> Result<AgentExit, Error> {
        let ctx = self.ctx;
        container.until_exit(&|piece| ctx.events.record_output(piece)).await?;
        ctx.read_past_tap().await;
        let container = container.ended(ctx.run.recovered().stopping).await?;
        Ok(AgentExit { container, exceeded: None })
    }

    /// Returns `container` so that its output continues after the position that previous workers recorded.
    fn after_recorded_output(&self, mut container: Container) -> Container {
        let recorded = self.ctx.run.recovered().recorded;
        container.skip_output(recorded.stdout.bytes, recorded.stderr.bytes);
        container
    }

    /// Returns whether the run's warm container has no start file yet.
    fn waits_for_start_file(&self) -> bool {
        self.workspace_id().is_some_and(|id| self.ctx.engine.workspaces.waits(&id))
    }

    /// Returns the id of the run's workspace.
    pub(super) fn workspace_id(&self) -> Option<WorkspaceId> {
        self.resources.last(ResourceKind::Workspace).and_then(|row| WorkspaceId::parse(&row.name).ok())
    }
}
