//! Sends a turn to its gateway: registers the attribution of its calls, stores its start, and builds its message.

use std::time::Duration;

use gateway_bridge::{Attribution, Begun, Delivery, Running, Turn};
use platform_core::{control::Correlation, event::Phase, id::ModelName};
use runner_gateways::{
    self as gateway,
    attribution::{self, Registered},
};
use runner_model::{failpoint::Point, lifecycle::Transition};
use runner_store::{ResourceChange, ResourceKind, ResourceState};
use runner_workspace::as_markdown;
use tokio::time::Instant;

use super::PreparedTurn;
use crate::run::{error::Error, executor::RunExecutor};

/// Time by which the gateway's own deadline is later than ours. Normally our deadline ends the turn.
const GATEWAY_DEADLINE_GRACE: Duration = Duration::from_secs(10);

/// A turn that was sent to a gateway.
pub(super) struct SentTurn {
    pub(super) running: Running,
    /// Slot of the run, if this process has leased one.
    pub(super) slot: Option<Correlation>,
}

impl RunExecutor<'_> {
    /// Sends the turn to the gateway, or resumes the turn that previous workers had `begun`.
    pub(super) async fn start_turn(
        &mut self,
        prepared: &PreparedTurn<'_>,
        begun: Option<Begun>,
    ) -> Result<SentTurn, Error> {
        let ctx = self.ctx;
        let unusable =
            |source| gateway::Error::Unusable { gateway: prepared.target.connection.id.clone(), source };
        if let Some(begun @ Begun { delivery: Delivery::Confirmed, .. }) = begun {
            let turn = self.build_turn(prepared, Attribution::AsBegun)?;
            let running = prepared.gateway.resume(turn, begun).await.map_err(unusable)?;
            return Ok(SentTurn { running, slot: None });
        }
        ctx.events.send_phase(Phase::Starting);
        let Registered { attribution, slot } = self.register_attribution(prepared).await?;
        self.store_start(prepared, begun.as_ref()).await?;
        Point::RunStored.reach();
        ctx.check_cancelled()?;
        ctx.events.send_phase(Phase::Running);
        let turn = self.build_turn(prepared, attribution)?;
        let running = match begun {
            None => ctx.run.perform(prepared.gateway.run(turn)).await?,
            Some(begun) => ctx.run.perform(prepared.gateway.resume(turn, begun)).await?,
        };
        Point::Started.reach();
        Ok(SentTurn { running: running.map_err(unusable)?, slot })
    }

    /// Registers the attribution of the turn's calls to the run.
    async fn register_attribution(&self, prepared: &PreparedTurn<'_>) -> Result<Registered, Error> {
        let ctx = self.ctx;
        let data_plane = &ctx.engine.data_plane;
        let connection = prepared.target.connection;
        ctx.run.retry(async || attribution::register(connection, data_plane, &prepared.grant).await).await
    }

    /// Stores that the turn may run, and the boot of the gateway that receives it.
    async fn store_start(&mut self, prepared: &PreparedTurn<'_>, begun: Option<&Begun>) -> Result<(), Error> {
        // The gateway may have restarted since the connection was opened.
        let (_, hello) = prepared.target.connection.connected().await?;
        let grant =
            ResourceChange::wanted(ResourceKind::Grant, self.ctx.run_id().as_str()).to(ResourceState::Made);
        let mut changes = vec![
            ResourceChange::wanted(ResourceKind::Session, prepared.target.session()).to(ResourceState::Made),
        ];
        if begun.is_none() {
            changes.push(ResourceChange::wanted(ResourceKind::Turn, hello.boot.to_string()));
        }
        self.step(Transition::Start, vec![grant]).await?;
        self.step(Transition::Run, changes).await
    }

    /// Builds the turn, with its message.
    fn build_turn(
        &self,
        prepared: &PreparedTurn<'_>,
        attribution: Attribution,
    ) -> Result<Turn, gateway::Error> {
        let spec = self.ctx.spec();
        let question = spec.messages.last().map(|message| message.content.clone()).unwrap_or_default();
        // A session that continues has the earlier messages.
        let earlier = &spec.messages[..spec.messages.len().saturating_sub(1)];
        let message = match (&spec.state_key, earlier) {
            (Some(_), _) | (None, []) => question,
            (None, earlier) => format!("{}\n# Answer this\n\n{question}", as_markdown(earlier)),
        };
        Ok(Turn {
            run_id: self.ctx.run_id().clone(),
            session: prepared.target.key.clone(),
            message,
            model: Some(ModelName::parse(&spec.model)?),
            directory: prepared.directory.clone(),
            attribution,
            deadline: Instant::now() + prepared.time_left + GATEWAY_DEADLINE_GRACE,
        })
    }
}
