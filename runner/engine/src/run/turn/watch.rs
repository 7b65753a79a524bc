//! Watches a turn that was sent to its gateway, and stops it at its timeout or after a cancel.

use std::{convert::Infallible, future::pending, time::Duration};

use futures_util::{FutureExt, future::LocalBoxFuture};
use gateway_bridge::{Ending, Running, TurnEvent, TurnFailure, TurnPhase};
use platform_core::{control::Correlation, limit::Millis};
use platform_runtime::{poll::poll, report};
use runner_docker::KilledBy;
use runner_model::failpoint::Point;
use runner_store::{self as store, ResourceChange, ResourceKind, ResourceState};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{
    ABORT_TIMEOUT, PreparedTurn, TurnOutcome, TurnReports, approvals::TurnApprovals, start::SentTurn,
};
use crate::{
    outcome::turn::{self as outcome, TurnEnd},
    run::{activity::CallActivity, error::Error, executor::RunExecutor, supervise::TAP_DRAIN_TIMEOUT},
};

/// Silence after which an ended turn counts as settled. Calls of the gateway's own cleanup thus still belong to the
/// run.
const IDLE_TIMEOUT: Duration = Duration::from_millis(300);
/// Silence for a turn that has started sub-agents, which may begin and continue after the turn's end.
const SUB_AGENT_IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between checks for calls in flight of an ended turn.
const IDLE_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Longest wait for that silence. With sub-agents, the wait lasts until the run's timeout.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Observed end of a turn.
struct ObservedEnd {
    ending: Ending,
    /// Reason for which this process stopped the turn, if it did.
    killed_by: Option<KilledBy>,
}

/// Acceptance of a turn by its gateway, while it is being stored.
struct Acceptance<'r> {
    change: ResourceChange,
    storing: LocalBoxFuture<'r, Result<(), store::Error>>,
}

/// Result of the wait for an ended turn to settle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settled {
    Yes,
    /// The wait was given up.
    No,
}

impl<'r> RunExecutor<'r> {
    /// Waits for the turn's end, and stops the turn at its timeout or after a cancel. Records its events meanwhile.
    pub(super) async fn watch_turn(
        &mut self,
        prepared: &PreparedTurn<'_>,
        sent: SentTurn,
        reports: TurnReports,
    ) -> Result<TurnOutcome, Error> {
        let ctx = self.ctx;
        let TurnReports { tap, steps } = reports;
        let activity = CallActivity::new(ctx);
        let turn_ended = CancellationToken::new();
        let follow_calls = async {
            tokio::join!(ctx.relay_tap(tap, &turn_ended), activity.follow(steps));
            pending::<Infallible>().await
        };
        let approvals = TurnApprovals::new(ctx, prepared);
        let deadline = Instant::now() + prepared.time_left;
        let generation = prepared.hello.generation;
        let outcome = async {
            let ObservedEnd { ending, killed_by } =
                Box::pin(self.follow_turn(sent.running, deadline, &approvals)).await?;
            let may_settle = killed_by.is_none() && may_have_calls(&ending, sent.slot);
            if may_settle && self.await_settled(&activity, deadline).await == Settled::Yes {
                self.return_slot(sent.slot).await;
            }
            turn_ended.cancel();
            sleep(TAP_DRAIN_TIMEOUT).await;
            Point::Ended.reach();
            let needs_last_call = killed_by.is_none() && outcome::depends_on_last_call(&ending, generation);
            let last_call = if needs_last_call { ctx.last_call().await } else { None };
            ctx.events.record_turn_end();
            let end = TurnEnd { ending, killed_by, generation, last_call };
            Ok::<_, Error>(outcome::judge(ctx.agent(), end).into())
        };
        tokio::select! {
            outcome = outcome => outcome,
            never = follow_calls => match never {},
            never = approvals.answer() => match never {},
            never = ctx.events.store_batches(ctx.run) => match never {},
        }
    }

    /// Reads a turn's events to its end. Dropping this future leaves the turn as it is, for the worker that takes the
    /// run over.
    async fn follow_turn(
        &mut self,
        mut running: Running,
        deadline: Instant,
        approvals: &TurnApprovals<'_>,
    ) -> Result<ObservedEnd, Error> {
        let ctx = self.ctx;
        running.detach();
        let mut killed_by = None;
        // Stored concurrently, so that an unavailable store delays neither a deadline nor a cancel.
        let mut acceptance: Option<Acceptance<'_>> = None;
        loop {
            let until = if killed_by.is_some() { Instant::now() + ABORT_TIMEOUT } else { deadline };
            let by = tokio::select! {
                event = running.next() => match event {
                    Some(TurnEvent::Status(TurnPhase::Accepted)) => {
                        acceptance = self.accept_turn();
                        continue;
                    }
                    Some(event) => {
                        if let TurnEvent::Status(TurnPhase::WaitingForApproval | TurnPhase::Reconnected) = event {
                            approvals.look_again();
                        }
                        ctx.events.record_turn_event(event);
                        continue;
                    }
                    None => return Ok(ObservedEnd { ending: running.ending().await, killed_by }),
                },
                stored = finish_storing(&mut acceptance), if acceptance.is_some() => {
                    self.resources.apply(stored?.as_slice());
                    Point::TurnTaken.reach();
                    continue;
                }
                () = sleep_until(until) => KilledBy::Timeout,
                () = ctx.cancel.cancelled(), if killed_by.is_none() => KilledBy::Cancel,
            };
            if killed_by.is_some() {
                // The abort was sent, and the gateway does not answer.
                return Ok(ObservedEnd { ending: Ending::Failed(TurnFailure::Aborted), killed_by });
            }
            killed_by = Some(by);
            running.cancel();
            // The acceptance may hold the store's only connection, which the stop needs.
            let (stopped, stored) = tokio::join!(self.stop_turn(by), finish_storing(&mut acceptance));
            stopped?;
            self.resources.apply(stored?.as_slice());
        }
    }

    /// Begins to store that the gateway has accepted the turn.
    fn accept_turn(&self) -> Option<Acceptance<'r>> {
        let change = self.resources.last(ResourceKind::Turn)?.to(ResourceState::Made);
        let storing = self.ctx.run.store_changes([change.clone()]).boxed_local();
        Some(Acceptance { change, storing })
    }

    /// Stores the reason for stopping the turn and closes its grant. Retries while the data plane is unavailable. A
    /// turn beyond its time is stopped even if another worker holds the run by now, because that worker would stop it
    /// too.
    pub(super) async fn stop_turn(&self, by: KilledBy) -> Result<(), Error> {
        let run = self.ctx.run;
        let data_plane = &self.ctx.engine.data_plane;
        let close = async {
            let close = async || data_plane.close(self.ctx.run_id(), run.holder(), Millis(0)).await;
            match run.enforce(by, close).await {
                Err(Error::DataPlane(error)) if error.is_unknown_run() => Ok(()),
                closed => closed.map(|_view| ()),
            }
        };
        let (stored, closed) = tokio::join!(run.record_stop_reason(by), close);
        stored?;
        closed
    }

    /// Returns the slot of a settled turn to the data plane. The slot of a turn with sub-agents goes into quarantine
    /// instead, because they may still use it.
    async fn return_slot(&self, slot: Option<Correlation>) {
        let Some(slot) = slot.filter(|_| !self.ctx.events.has_sub_agents()) else { return };
        let run_id = self.ctx.run_id();
        if let Err(error) = self.ctx.engine.data_plane.withdraw(run_id, slot).await {
            tracing::debug!(run = %run_id, error = report::chain(&error), "slot not returned; left to quarantine");
        }
    }

    /// Waits until the gateway has finished its work after a turn, such as shortening the conversation or running
    /// sub-agents. The calls of that work belong to the run. A cancel ends the wait.
    async fn await_settled(&self, activity: &CallActivity<'_>, deadline: Instant) -> Settled {
        let ctx = self.ctx;
        let cleanup_deadline = Instant::now() + CLEANUP_TIMEOUT;
        let look = async || {
            // Asked each time: the report of the tool that starts a sub-agent may come after the turn's end.
            let has_sub_agents = ctx.events.has_sub_agents();
            let idle_timeout = if has_sub_agents { SUB_AGENT_IDLE_TIMEOUT } else { IDLE_TIMEOUT };
            let view = ctx.engine.data_plane.run(ctx.run_id()).await;
            let has_no_calls = view.is_ok_and(|view| view.in_flight == 0);
            if has_no_calls && activity.idle_time() >= idle_timeout {
                return Some(Settled::Yes);
            }
            let longest = if has_sub_agents { deadline } else { cleanup_deadline };
            (Instant::now() >= longest).then_some(Settled::No)
        };
        let settled = async {
            sleep(IDLE_POLL_INTERVAL).await;
            poll(IDLE_POLL_INTERVAL, look).await
        };
        tokio::select! {
            settled = settled => settled,
            () = ctx.cancel.cancelled() => Settled::No,
        }
    }
}

/// Returns whether the calls of a turn with this `ending` may continue.
const fn may_have_calls(ending: &Ending, slot: Option<Correlation>) -> bool {
    match ending {
        Ending::Completed { .. } => true,
        // The gateway's state is not known.
        Ending::Failed(TurnFailure::Lost | TurnFailure::Aborted | TurnFailure::Deadline) => false,
        Ending::Failed(_) => slot.is_some(),
    }
}

/// Waits until the acceptance of the turn is stored, if there is one, and returns it. Cancel safe.
async fn finish_storing(
    acceptance: &mut Option<Acceptance<'_>>,
) -> Result<Option<ResourceChange>, store::Error> {
    if let Some(Acceptance { storing, .. }) = acceptance {
        storing.await?;
    }
    Ok(acceptance.take().map(|acceptance| acceptance.change))
}
