//! Executes a run as a turn of a gateway's session. It registers the run at the data plane, sends the turn, and watches
//! it to its end.
//!
//! A turn runs once: its id is the run's, and no boot of a gateway runs one id twice. The store records the boot before
//! the turn is sent, and the delivery after the gateway has accepted it. A worker that takes the run over sends the
//! turn again only where it cannot run twice. Otherwise it waits for the turn's end. Closing the run's grant stops a
//! turn at once. No further call passes, whatever the gateway does with the abort.

mod approvals;
mod start;
mod watch;

use std::time::Duration;

use gateway_bridge::{Begun, Delivery, Ending, Gateway, Generation, Hello, SessionKey, TurnFailure};
use platform_core::{event::Phase, grant::RunGrant};
use platform_runtime::report;
use runner_control_client::Lines;
use runner_docker::KilledBy;
use runner_gateways::{self as gateway, GatewayConnection, managed::make_session_directory};
use runner_model::{
    failpoint::Point,
    lifecycle::{Failure, Transition},
};
use runner_store::{ResourceChange, ResourceKind, ResourceState};
use tokio::{sync::SemaphorePermit, time::timeout};

use super::{error::Error, event_recorder::TurnRecord, executor::RunExecutor};
use crate::outcome::turn::{self as outcome, TurnEnd};

/// Longest wait for a gateway to confirm the end of an aborted turn.
const ABORT_TIMEOUT: Duration = Duration::from_secs(6);

/// Outcome of a turn that has ended.
pub(super) enum TurnOutcome {
    /// The turn ended with an answer.
    Answered(String),
    /// The turn ended without an answer.
    Failed(Failure),
}

/// Gateway and session of a run.
struct TurnTarget<'r> {
    connection: &'r GatewayConnection,
    key: SessionKey,
}

/// A turn that is registered at the data plane and may be sent.
struct PreparedTurn<'r> {
    target: TurnTarget<'r>,
    gateway: Gateway,
    hello: Hello,
    grant: RunGrant,
    /// Directory in which the session works; that of its agent if absent.
    directory: Option<String>,
    /// Time that the turn may still take.
    time_left: Duration,
}

/// Progress reports of the data plane about the calls of a turn.
struct TurnReports {
    tap: Lines,
    steps: Lines,
}

/// A connected gateway, and its description of itself.
struct Connected {
    gateway: Gateway,
    hello: Hello,
}

impl From<Result<String, Failure>> for TurnOutcome {
    fn from(answer: Result<String, Failure>) -> Self {
        match answer {
            Ok(answer) => Self::Answered(answer),
            Err(failure) => Self::Failed(failure),
        }
    }
}

impl From<TurnOutcome> for Result<String, Failure> {
    fn from(outcome: TurnOutcome) -> Self {
        match outcome {
            TurnOutcome::Answered(answer) => Ok(answer),
            TurnOutcome::Failed(failure) => Err(failure),
        }
    }
}

impl TurnTarget<'_> {
    /// Returns the name under which the session is stored.
    fn session(&self) -> String {
        format!("{}/{}", self.connection.id, self.key)
    }
}

impl<'r> RunExecutor<'r> {
    /// Runs the turn to its end, or continues where previous workers stopped.
    pub(super) async fn run_turn(&mut self) -> Result<TurnOutcome, Error> {
        let ctx = self.ctx;
        let target = self.turn_target()?;
        if let Some(by) = ctx.run.recovered().stopping {
            return self.abort_turn(&target, by).await;
        }
        ctx.check_cancelled()?;
        ctx.events.send_phase(Phase::Preparing);
        let begun = self.begun_turn();
        if begun.is_none() {
            ctx.check_priced()?;
        }
        let _permit = self.session_permit(&target, begun.as_ref()).await?;
        let Some(Connected { gateway, hello }) = self.connect(&target, begun.as_ref()).await? else {
            return self.abort_turn(&target, KilledBy::Cancel).await;
        };
        self.prepare_turn(&target).await?;
        let grant = ctx.register(target.connection.listener(), None).await?.grant;
        Point::Registered.reach();
        let tap = ctx.open_tap().await?;
        let steps = ctx.run.retry(async || ctx.engine.data_plane.trace(ctx.run_id()).await).await?;
        let record = match begun {
            Some(_) => TurnRecord::read(&ctx.engine.store, ctx.run_id()).await?,
            None => TurnRecord::default(),
        };
        ctx.events.begin_turn(record, hello.generation);
        let directory = match hello.takes_directories() {
            true => make_session_directory(target.connection, &target.key).await,
            false => None,
        };
        let turn = PreparedTurn { target, gateway, hello, grant, directory, time_left: ctx.time_left() };
        let sent = Box::pin(self.start_turn(&turn, begun)).await?;
        Box::pin(self.watch_turn(&turn, sent, TurnReports { tap, steps })).await
    }

    /// Returns the gateway and the session of the run: the stored ones, if any.
    fn turn_target(&self) -> Result<TurnTarget<'r>, gateway::Error> {
        let request = self.ctx.request();
        let gateways = &self.ctx.engine.gateways;
        let session = self.resources.last(ResourceKind::Session);
        let connection = match session.and_then(|session| session.name.split_once('/')) {
            Some((id, _key)) => gateways.named(id)?,
            None => gateways.of_run(&request.spec.agent, &request.account)?,
        };
        // The gateway may be configured differently by now.
        if !connection.gateway.serves(&request.account) {
            return Err(gateway::Error::ServesNot { account: request.account.clone() });
        }
        Ok(TurnTarget { connection, key: request.session_key()? })
    }

    /// Returns the boot and the delivery of a turn that previous workers had begun.
    fn begun_turn(&self) -> Option<Begun> {
        let turn = self.resources.last(ResourceKind::Turn)?;
        let Ok(at) = turn.name.parse();
        let delivery =
            if turn.stage == ResourceState::Made { Delivery::Confirmed } else { Delivery::Unconfirmed };
        Some(Begun { at, delivery })
    }

    /// Waits for a permit for an active session. A turn that was begun already occupies the gateway, and needs none.
    async fn session_permit(
        &self,
        target: &TurnTarget<'r>,
        begun: Option<&Begun>,
    ) -> Result<Option<SemaphorePermit<'r>>, Error> {
        if begun.is_some() {
            return Ok(None);
        }
        tokio::select! {
            // The semaphore is never closed.
            permit = target.connection.acquire_session_permit() => Ok(permit.ok()),
            () = self.ctx.cancel.cancelled() => Err(Error::Cancelled),
        }
    }

    /// Connects to the gateway of the run; `None` if the run is cancelled meanwhile, and an earlier worker may have
    /// sent its turn.
    async fn connect(
        &self,
        target: &TurnTarget<'_>,
        begun: Option<&Begun>,
    ) -> Result<Option<Connected>, Error> {
        tokio::select! {
            connected = target.connection.connected() => {
                let (gateway, hello) = connected?;
                Ok(Some(Connected { gateway, hello }))
            }
            () = self.ctx.cancel.cancelled() => match begun {
                None => Err(Error::Cancelled),
                Some(_) => Ok(None),
            },
        }
    }

    /// Stores that the session and the grant of the turn are wanted.
    async fn prepare_turn(&mut self, target: &TurnTarget<'_>) -> Result<(), Error> {
        let mut wanted = Vec::new();
        if self.resources.last(ResourceKind::Session).is_none() {
            wanted.push(ResourceChange::wanted(ResourceKind::Grant, self.ctx.run_id().as_str()));
            wanted.push(ResourceChange::wanted(ResourceKind::Session, target.session()));
        }
        self.step(Transition::Prepare, wanted).await?;
        Point::Prepared.reach();
        Ok(())
    }

    /// Stops a turn that no worker supervises. The turn may never have been sent.
    async fn abort_turn(&self, target: &TurnTarget<'_>, by: KilledBy) -> Result<TurnOutcome, Error> {
        let ctx = self.ctx;
        let run_id = ctx.run_id();
        let abort = async {
            if ctx.run.recovered().started.is_some()
                && let Ok((gateway, _)) = target.connection.connected().await
                && let Err(error) = gateway.abort(&target.key, run_id).await
            {
                let error = report::chain(&error);
                tracing::warn!(run = %run_id, error, "turn not aborted at its gateway");
            }
        };
        let (stopped, _aborted) = tokio::join!(self.stop_turn(by), timeout(ABORT_TIMEOUT, abort));
        stopped?;
        let end = TurnEnd {
            ending: Ending::Failed(TurnFailure::Aborted),
            killed_by: Some(by),
            generation: Generation::Four,
            last_call: None,
        };
        Ok(outcome::judge(ctx.agent(), end).into())
    }
}
