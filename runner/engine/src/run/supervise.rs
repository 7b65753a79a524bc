//! Supervises a running agent to its end. Stops it at its timeout, when its workspace is too large, or after a cancel.

use std::time::Duration;

use runner_docker::{Container, KilledBy, Piece};
use runner_model::failpoint::Point;
use runner_workspace::{Exceeded, Workspace};
use tokio_util::sync::CancellationToken;

use super::{
    agent_container::{AgentExit, RunningAgent},
    error::Error,
    executor::RunExecutor,
};

/// Longest wait for the tap's last lines after the container's end.
pub(super) const TAP_DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

/// Reason for which this process stops an agent.
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
    /// Waits for the agent's end, and stops the agent where necessary. Records its events meanwhile.
    pub(super) async fn supervise(&self, agent: RunningAgent) -> Result<AgentExit, Error> {
        let ctx = self.ctx;
        let RunningAgent { mut container, workspace, tap, time_left } = agent;
        let agent_ended = CancellationToken::new();
        let relay = ctx.relay_tap(tap, &agent_ended);
        let exit = async {
            let stop = self.await_end(&mut container, &workspace, time_left).await?;
            agent_ended.cancel();
            let container = container.ended(stop.as_ref().map(|stop| stop.by)).await?;
            Point::Ended.reach();
            Ok::<_, Error>(AgentExit { container, exceeded: stop.and_then(|stop| stop.exceeded) })
        };
        tokio::pin!(relay, exit);
        let exit_and_tap = async {
            tokio::select! {
                exit = &mut exit => {
                    drop(tokio::time::timeout(TAP_DRAIN_TIMEOUT, &mut relay).await);
                    exit
                }
                () = &mut relay => exit.await,
            }
        };
        tokio::select! {
            exit = exit_and_tap => exit,
            never = ctx.events.store_batches(ctx.run) => match never {},
        }
    }

    /// Waits until the agent has ended, or stops it and returns the reason.
    async fn await_end(
        &self,
        container: &mut Container,
        workspace: &Workspace,
        time_left: Duration,
    ) -> Result<Option<StopReason>, Error> {
        let ctx = self.ctx;
        let record_output = |piece: Piece| ctx.events.record_output(piece);
        let stop = match ctx.run.recovered().stopping {
            Some(by) => StopReason::from(by),
            None => tokio::select! {
                ended = container.until_exit(&record_output) => {
                    ended?;
                    return Ok(None);
                }
                () = tokio::time::sleep(time_left) => KilledBy::Timeout.into(),
                () = ctx.cancel.cancelled() => KilledBy::Cancel.into(),
                exceeded = workspace.watch() => StopReason { by: KilledBy::Disk, exceeded: Some(exceeded) },
            },
        };
        ctx.run.record_stop_reason(stop.by).await?;
        ctx.run.enforce(stop.by, async || Box::pin(container.stop(&record_output)).await).await?;
        Ok(Some(stop))
    }
}
