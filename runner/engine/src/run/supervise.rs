//! Supervises a running agent to its end, and ends it itself at its timeout, when its workspace is too large, or after a
//! cancel.

use std::time::Duration;

use runner_control_client::Lines;
use runner_docker::{Container, ContainerExit, KilledBy, Piece};
use runner_model::failpoint::Point;
use runner_workspace::{Exceeded, Workspace};
use tokio_util::sync::CancellationToken;

use super::{error::Error, executor::RunExecutor};

/// Longest wait for deltas after the container's end.
pub(super) const TAP_DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

/// A running agent and what belongs to it.
pub(super) struct RunningAgent {
    pub(super) container: Container,
    pub(super) workspace: Workspace,
    pub(super) tap: Lines,
    /// Time that it may still run.
    pub(super) time_left: Duration,
}

/// Exit of an agent.
pub(super) struct AgentExit {
    pub(super) container: ContainerExit,
    /// Excess of disk use for which the container was stopped, if that was the reason.
    pub(super) exceeded: Option<Exceeded>,
}

/// Reason for which this process ends an agent.
struct StopReason {
    by: KilledBy,
    exceeded: Option<Exceeded>,
}

impl From<KilledBy> for StopReason {
    fn from(by: KilledBy) -> Self {
        Self { by, exceeded: None }
    }
}

impl RunExecutor<'_> {
    /// Waits for the agent's end, and ends the agent itself where it has to. Records its events meanwhile.
    pub(super) async fn supervise(&self, agent: RunningAgent) -> Result<AgentExit, Error> {
        let ctx = self.ctx;
        let RunningAgent { mut container, workspace, tap, time_left } = agent;
        let gone = CancellationToken::new();
        let relay = ctx.relay_tap(tap, &gone);
        let ended = async {
            let stop = self.await_end(&mut container, &workspace, time_left).await?;
            gone.cancel();
            let container = container.ended(stop.as_ref().map(|stop| stop.by)).await?;
            Point::Ended.reach();
            Ok::<_, Error>(AgentExit { container, exceeded: stop.and_then(|stop| stop.exceeded) })
        };
        tokio::pin!(relay, ended);
        let watched = async {
            tokio::select! {
                ended = &mut ended => {
                    drop(tokio::time::timeout(TAP_DRAIN_TIMEOUT, &mut relay).await);
                    ended
                }
                () = &mut relay => ended.await,
            }
        };
        tokio::select! {
            ended = watched => ended,
            never = ctx.events.store_batches(ctx.run) => match never {},
        }
    }

    /// Waits until the agent has ended. Ends it itself at its timeout, when its workspace is too large, or after a
    /// cancel, and returns the reason.
    async fn await_end(
        &self,
        container: &mut Container,
        workspace: &Workspace,
        time_left: Duration,
    ) -> Result<Option<StopReason>, Error> {
        let ctx = self.ctx;
        let hear = |piece: Piece| ctx.events.record_output(piece);
        let stop = match ctx.run.recovered().stopping {
            Some(by) => StopReason::from(by),
            None => tokio::select! {
                over = container.over(&hear) => {
                    over?;
                    return Ok(None);
                }
                () = tokio::time::sleep(time_left) => KilledBy::Timeout.into(),
                () = ctx.cancel.cancelled() => KilledBy::Cancel.into(),
                exceeded = workspace.watch() => StopReason { by: KilledBy::Disk, exceeded: Some(exceeded) },
            },
        };
        ctx.run.record_stop_reason(stop.by).await?;
        ctx.run.enforce(stop.by, async || Box::pin(container.stop(&hear)).await).await?;
        Ok(Some(stop))
    }
}
