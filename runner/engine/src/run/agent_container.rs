//! Defines an agent in its container: running, ended, or never started.

use std::time::Duration;

use runner_control_client::Lines;
use runner_docker::{Container, ContainerExit};
use runner_workspace::{Exceeded, Workspace};

/// A running agent, with its container, workspace and tap.
pub(super) struct RunningAgent {
    pub(super) container: Container,
    pub(super) workspace: Workspace,
    pub(super) tap: Lines,
    /// Time that the agent may still run.
    pub(super) time_left: Duration,
}

/// Exit of an agent.
pub(super) struct AgentExit {
    pub(super) container: ContainerExit,
    /// Excess of disk use for which the container was stopped, if that was the reason.
    pub(super) exceeded: Option<Exceeded>,
}

/// State of a run after a previous worker may have started its agent.
pub(super) enum ResumeState {
    /// The agent runs.
    Running(RunningAgent),
    /// The agent has ended.
    Ended(Container),
    /// The agent never ran.
    NeverStarted,
}
