//! Sends a turn to its gateway: stores it before, registers how its calls are attributed, and builds its message.

use std::time::Duration;

use gateway_bridge::{Attribution, Begun, Running, Taken, Turn};
use platform_core::{control::Correlation, event::Phase, grant::RunGrant, id::ModelName, token::UnixSeconds};
use runner_gateways::{
    self as gateway,
    attribution::{self, Registered},
};
use runner_model::{failpoint::Point, lifecycle::Move};
use runner_store::{Change, Kind, Stage};
use runner_workspace::as_markdown;
use tokio::time::Instant;

use super::At;
use crate::run::{Error, Scene, things::Things};

/// Time by which the gateway's own deadline is later than ours, which is what ends a turn.
const LATER: Duration = Duration::from_secs(10);

/// A turn that was sent to a gateway.
pub(super) struct Told {
    pub(super) running: Running,
    /// Slot of the run, if this process has leased one.
    pub(super) slot: Option<Correlation>,
}

/// Sends the turn to the gateway, or resumes the turn that previous workers had `begun`.
pub(super) async fn tell(
    scene: &Scene<'_>,
    things: &mut Things,
    (at, grant): (&At<'_>, &RunGrant),
    begun: Option<Begun>,
) -> Result<Told, Error> {
    let unusable = |source| gateway::Error::Unusable { gateway: at.link.id.clone(), source };
    if let Some(begun @ Begun { taken: Taken::Yes, .. }) = begun {
        let turn = turn(scene, at, Attribution::AsBegun)?;
        let running = at.gateway.take_up(turn, begun).await.map_err(unusable)?;
        return Ok(Told { running, slot: None });
    }
    let Scene { host, booked, .. } = *scene;
    scene.telling.enters(Phase::Starting);
    let expiry = grant.expires.unwrap_or(UnixSeconds(u64::MAX));
    let run = &scene.order().run_id;
    let Registered { attribution, slot } =
        booked.ask(async || attribution::register(at.link, &host.data_plane, (run, expiry)).await).await?;
    // The gateway may have restarted since the connection was made.
    let (_, hello) = at.link.connected().await?;
    let mut going = vec![Change::wanted(Kind::Session, at.session()).to(Stage::Made)];
    if begun.is_none() {
        going.push(Change::wanted(Kind::Turn, hello.boot.to_string()));
    }
    let made = Change::wanted(Kind::Grant, run.as_str()).to(Stage::Made);
    for (makes, changes) in [(Move::Start, vec![made]), (Move::Run, going)] {
        booked.step(makes, changes.clone()).await?;
        things.change(&changes);
    }
    Point::RunStored.reach();
    scene.go_on()?;
    scene.telling.enters(Phase::Running);
    let turn = turn(scene, at, attribution)?;
    let running = match begun {
        None => booked.act(at.gateway.run(turn)).await?,
        Some(begun) => booked.act(at.gateway.take_up(turn, begun)).await?,
    };
    Point::Started.reach();
    Ok(Told { running: running.map_err(unusable)?, slot })
}

fn turn(scene: &Scene<'_>, at: &At<'_>, attribution: Attribution) -> Result<Turn, gateway::Error> {
    let wanted = &scene.order().wanted;
    let last = wanted.messages.last().map(|message| message.content.clone()).unwrap_or_default();
    // A session that continues has the earlier messages.
    let before = &wanted.messages[..wanted.messages.len().saturating_sub(1)];
    let message = match (&wanted.state_key, before) {
        (Some(_), _) | (None, []) => last,
        (None, before) => format!("{}\n# Answer this\n\n{last}", as_markdown(before)),
    };
    Ok(Turn {
        id: scene.order().run_id.clone(),
        session: at.key.clone(),
        message,
        model: Some(ModelName::parse(&wanted.model)?),
        attribution,
        deadline: Instant::now() + at.left + LATER,
    })
}
