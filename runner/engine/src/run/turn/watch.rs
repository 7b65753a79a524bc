//! Watches a turn that was sent to its gateway, and ends it at its timeout or after a cancel.

use std::{convert::Infallible, future::pending, time::Duration};

use futures_util::{FutureExt, future::LocalBoxFuture};
use gateway_bridge::{Ending, Running, TurnEvent, TurnFailure, TurnPhase};
use platform_core::{control::Correlation, id::ToolName, limit::Millis};
use platform_runtime::{poll::poll, report};
use runner_docker::KilledBy;
use runner_model::failpoint::Point;
use runner_store::{self as store, ResourceChange, ResourceKind, ResourceState};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::{ABORT_TIMEOUT, PreparedTurn, TurnOutcome, TurnReports, start::SentTurn};
use crate::{
    outcome::turn::{self as outcome, TurnEnd},
    run::{activity::CallActivity, error::Error, executor::RunExecutor, supervise::TAP_DRAIN_TIMEOUT},
};

/// Silence after which a turn that is over counts as settled, so that calls of the gateway's own cleanup belong to the
/// run.
const IDLE_TIMEOUT: Duration = Duration::from_millis(300);
/// The same for a turn that has started sub-agents: these may begin and go on after the turn is done.
const SUB_AGENT_IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between checks whether a turn that is over has calls in flight.
const IDLE_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Longest wait for that, unless there are sub-agents: those have the time of the run.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(10);

/// End of a turn as it was observed.
struct ObservedEnd {
    ending: Ending,
    /// Reason for which this process ended it, if it did.
    killed_by: Option<KilledBy>,
}

/// Acceptance of a turn that is being stored.
struct Acceptance<'r> {
    change: ResourceChange,
    storing: LocalBoxFuture<'r, Result<(), store::Error>>,
}

/// State of a turn after its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settled {
    Yes,
    /// The wait was given up.
    No,
}

impl<'r> RunExecutor<'r> {
    /// Waits for the turn's end, and ends the turn at its timeout or after a cancel. Records its events meanwhile.
    pub(super) async fn watch_turn(
        &mut self,
        prepared: &PreparedTurn<'_>,
        sent: SentTurn,
        reports: TurnReports,
    ) -> Result<TurnOutcome, Error> {
        let ctx = self.ctx;
        let TurnReports { tap, steps } = reports;
        let activity = CallActivity::new(ctx);
        let gone = CancellationToken::new();
        let beside = async {
            tokio::join!(ctx.relay_tap(tap, &gone), activity.follow(steps));
            pending::<Infallible>().await
        };
        let deadline = Instant::now() + prepared.time_left;
        let generation = prepared.hello.generation;
        let ended = async {
            let ObservedEnd { ending, killed_by } =
                Box::pin(self.follow_turn(sent.running, deadline)).await?;
            let is_waited_for = killed_by.is_none() && may_have_calls(&ending, sent.slot);
            if is_waited_for && self.settled(&activity, deadline).await == Settled::Yes {
                self.return_slot(sent.slot).await;
            }
            gone.cancel();
            sleep(TAP_DRAIN_TIMEOUT).await;
            Point::Ended.reach();
            let is_open = killed_by.is_none() && outcome::is_open(&ending, generation);
            let last_call = if is_open { ctx.last_call().await } else { None };
            let end = TurnEnd { ending, killed_by, generation, last_call };
            Ok::<_, Error>(outcome::judge(ctx.agent(), end).into())
        };
        tokio::select! {
            ended = ended => ended,
            never = beside => match never {},
            never = ctx.events.store_batches(ctx.run) => match never {},
        }
    }

    /// Reads a turn's events to its end. Dropping this future leaves the turn as it is, for the worker that takes the
    /// run over.
    async fn follow_turn(&mut self, mut running: Running, deadline: Instant) -> Result<ObservedEnd, Error> {
        let ctx = self.ctx;
        running.detach();
        let mut killed_by = None;
        // Stored beside everything else: an unavailable store delays neither a deadline nor a cancel.
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
                        self.record_turn_event(event);
                        continue;
                    }
                    None => return Ok(ObservedEnd { ending: running.ending().await, killed_by }),
                },
                stored = stored(&mut acceptance) => {
                    self.resources.apply(&[stored?]);
                    acceptance = None;
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
            self.stop_turn(by).await?;
        }
    }

    /// Records an event of a turn, except that it was accepted.
    fn record_turn_event(&self, event: TurnEvent) {
        let events = &self.ctx.events;
        match event {
            TurnEvent::Text(text) => events.send_text(text),
            // The data plane reports tools, whatever the gateway's version.
            TurnEvent::Tool { name, .. } => events.note_tool(name.as_ref().map_or("", ToolName::as_str)),
            TurnEvent::Status(_) | TurnEvent::Usage(_) | TurnEvent::Missed { .. } => {}
        }
    }

    /// Begins to store that the gateway has accepted the turn.
    fn accept_turn(&self) -> Option<Acceptance<'r>> {
        let change = self.resources.last(ResourceKind::Turn)?.to(ResourceState::Made);
        let storing = self.ctx.run.change([change.clone()]).boxed_local();
        Some(Acceptance { change, storing })
    }

    /// Stores that the turn is to end and closes its grant, and retries while the data plane is unavailable. A turn that
    /// is over its time is ended even if another worker holds the run by now, because that worker would end it too.
    pub(super) async fn stop_turn(&self, by: KilledBy) -> Result<(), Error> {
        let run = self.ctx.run;
        let data_plane = &self.ctx.engine.data_plane;
        let close = async {
            let close = async || data_plane.close(self.ctx.run_id(), run.epoch(), Millis(0)).await;
            match run.enforce(by, close).await {
                Err(Error::DataPlane(error)) if error.is_unknown_run() => Ok(()),
                closed => closed.map(|_view| ()),
            }
        };
        let (stored, closed) = tokio::join!(run.record_stop_reason(by), close);
        stored?;
        closed
    }

    /// Returns a slot at which no call is made any more: the gateway has reported the end of the turn, and its calls are
    /// quiet. Other slots go into quarantine: sub-agents may still use them.
    async fn return_slot(&self, slot: Option<Correlation>) {
        let Some(slot) = slot.filter(|_| !self.ctx.events.has_sub_agents()) else { return };
        let run = self.ctx.run_id();
        if let Err(error) = self.ctx.engine.data_plane.withdraw(run, slot).await {
            tracing::debug!(%run, error = report::chain(&error), "slot not returned; left to quarantine");
        }
    }

    /// Waits until the gateway's work after a turn is done, such as shortening the conversation or the work of
    /// sub-agents: its calls belong to the run. A cancel ends the wait.
    async fn settled(&self, activity: &CallActivity<'_>, deadline: Instant) -> Settled {
        let ctx = self.ctx;
        let has_sub_agents = ctx.events.has_sub_agents();
        let idle_timeout = if has_sub_agents { SUB_AGENT_IDLE_TIMEOUT } else { IDLE_TIMEOUT };
        let longest =
            if has_sub_agents { deadline.saturating_duration_since(Instant::now()) } else { CLEANUP_TIMEOUT };
        let idle = async {
            sleep(IDLE_POLL_INTERVAL).await;
            let is_idle = async || {
                let view = ctx.engine.data_plane.run(ctx.run_id()).await;
                let has_no_calls = view.is_ok_and(|view| view.in_flight == 0);
                (has_no_calls && activity.idle_time() >= idle_timeout).then_some(())
            };
            poll(IDLE_POLL_INTERVAL, is_idle).await;
        };
        tokio::select! {
            done = timeout(longest, idle) => done.map_or(Settled::No, |()| Settled::Yes),
            () = ctx.cancel.cancelled() => Settled::No,
        }
    }
}

/// Returns whether calls of a turn that ended so may go on.
const fn may_have_calls(ending: &Ending, slot: Option<Correlation>) -> bool {
    match ending {
        Ending::Completed { .. } => true,
        // The gateway's state is not known.
        Ending::Failed(TurnFailure::Lost | TurnFailure::Aborted | TurnFailure::Deadline) => false,
        Ending::Failed(_) => slot.is_some(),
    }
}

/// Waits until the acceptance of the turn is stored; never ready if there is nothing to store.
async fn stored(acceptance: &mut Option<Acceptance<'_>>) -> Result<ResourceChange, store::Error> {
    match acceptance {
        Some(Acceptance { change, storing }) => storing.await.map(|()| change.clone()),
        None => pending().await,
    }
}
