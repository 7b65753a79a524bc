//! Executes a run phase by phase, and derives its completion from the end of its agent.

use platform_core::event::RunErrorCode;
use platform_runtime::settings::Execution;
use runner_docker::ContainerExit;
use runner_model::lifecycle::{Completion, Failure, Transition};
use runner_store::{self as store, ResourceChange};

use super::{
    agent_container::{AgentExit, ResumeState},
    context::RunContext,
    error::Error,
    resources::RunResources,
    result::{RunEnd, RunResult},
};
use crate::outcome;

/// Executor of one run, with the run's context and its present resources.
pub(super) struct RunExecutor<'r> {
    pub(super) ctx: &'r RunContext<'r>,
    pub(super) resources: RunResources,
    /// True if the workspace holds commits that could not be taken out of it.
    pub(super) keeps_workspace: bool,
}

impl<'r> RunExecutor<'r> {
    pub(super) fn new(ctx: &'r RunContext<'r>) -> Self {
        Self { ctx, resources: ctx.run.recovered().resources.clone(), keeps_workspace: false }
    }

    /// Executes the run to its end, and removes its resources.
    ///
    /// # Errors
    /// The store's error that shows that another worker has taken the run over.
    pub(super) async fn execute(mut self) -> Result<RunResult, store::Error> {
        let RunEnd { container, completion } = match self.ctx.run.recovered().completion.clone() {
            // A previous worker has stored the completion.
            Some(completion) => RunEnd { container: None, completion },
            None => match self.ctx.agent().mode {
                Execution::Ephemeral => {
                    let exit = Box::pin(self.run_agent()).await;
                    Box::pin(self.conclude(exit)).await
                }
                Execution::Gateway => {
                    let outcome = Box::pin(self.run_turn()).await;
                    RunEnd::without_container(outcome.map_or_else(|error| Err(error.into()), Into::into))
                }
            },
        };
        let completion = Box::pin(self.collect_work(completion)).await?;
        let usage = self.settle(&completion).await?;
        // Only now: the run is certainly this worker's.
        self.ctx.close_gateway_calls().await;
        Ok(RunResult::new(self.ctx, RunEnd { container, completion }, usage))
    }

    /// Runs the agent in a container to its end, or continues where previous workers stopped.
    async fn run_agent(&mut self) -> Result<AgentExit, Error> {
        match self.resume().await? {
            ResumeState::Running(agent) => Box::pin(self.supervise(agent)).await,
            ResumeState::Ended(container) => self.collect(container).await,
            ResumeState::NeverStarted => {
                self.clear_leftovers().await?;
                let provisioned = Box::pin(self.provision()).await?;
                let agent = Box::pin(self.launch(provisioned)).await?;
                Box::pin(self.supervise(agent)).await
            }
        }
    }

    /// Returns the end of the run that follows from the agent's exit.
    async fn conclude(&self, exit: Result<AgentExit, Error>) -> RunEnd {
        let AgentExit { container, exceeded } = match exit {
            Ok(exit) => exit,
            Err(error) => {
                return RunEnd { container: None, completion: Completion::without_agent(error.into()) };
            }
        };
        let answer = match exceeded {
            Some(exceeded) => Err(Failure::new(RunErrorCode::ContainerFailed, exceeded.to_string())),
            None => self.judge(&container).await,
        };
        self.ctx.events.record_output_end(&container);
        let ContainerExit { exit_code, oom_seen, .. } = container;
        let completion = Completion { exit_code, oom_seen: Some(oom_seen), answer };
        RunEnd { container: Some(container), completion }
    }

    /// Returns the answer, or the reason why it is missing. Reads the end of the last call from the data plane only
    /// where the exit alone does not decide.
    async fn judge(&self, container: &ContainerExit) -> Result<String, Failure> {
        let judge = |last_call| outcome::container::judge(self.ctx.agent(), container, last_call);
        match judge(None) {
            Ok(answer) if !answer.is_empty() => Ok(answer),
            Err(failure) if container.killed_by.is_some() || failure.code == RunErrorCode::OomKilled => {
                Err(failure)
            }
            _ => judge(self.ctx.last_call().await),
        }
    }

    /// Stores a transition together with changes of resources.
    pub(super) async fn step(
        &mut self,
        transition: Transition,
        changes: Vec<ResourceChange>,
    ) -> Result<(), Error> {
        self.ctx.run.step(transition, changes.clone()).await?;
        self.resources.apply(&changes);
        Ok(())
    }

    /// Stores changes of resources, without a transition.
    pub(super) async fn store_changes(&mut self, changes: Vec<ResourceChange>) -> Result<(), Error> {
        self.ctx.run.store_changes(changes.clone()).await?;
        self.resources.apply(&changes);
        Ok(())
    }
}
