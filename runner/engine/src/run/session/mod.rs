//! Executes a run as a turn of a gateway's session: registers it at the data plane, sends it, and watches it to its
//! end.
//!
//! A turn runs once: its id is the run's, and no boot of a gateway runs one id twice. The boot that the turn is sent to
//! is stored before, and that the gateway has accepted it, after. A worker that takes the run over sends the turn again
//! only where it cannot run twice. Otherwise it waits for the turn's end. Closing the run's grant ends a turn before
//! its time, at once. No further call passes, whatever the gateway does with the abort.

mod tell;
mod watch;

use std::time::Duration;

use gateway_bridge::{Begun, Ending, Failure as Frames, Gateway, Generation, Hello, SessionKey, Taken};
use platform_core::event::Phase;
use platform_runtime::report;
use runner_control_client::Lines;
use runner_docker::KilledBy;
use runner_gateways::{self as gateway, Link};
use runner_model::{
    failpoint::Point,
    lifecycle::{Failure, Move},
};
use runner_store::{Change, Kind, Stage};
use tokio::time::timeout;

use self::{
    tell::tell,
    watch::{stop, watch},
};
use super::{Error, Scene, making::opened, things::Things};
use crate::verdict::turn as verdict;

/// Longest wait for a gateway to confirm the end of an aborted turn.
const ABORT: Duration = Duration::from_secs(6);

/// Connection, session and remaining time of a turn.
struct At<'l> {
    link: &'l Link,
    gateway: Gateway,
    hello: Hello,
    key: SessionKey,
    /// Time that it may still take.
    left: Duration,
    tap: Lines,
    steps: Lines,
}

impl At<'_> {
    fn session(&self) -> String {
        session(self.link, &self.key)
    }
}

/// Returns the name under which a session is stored.
fn session(link: &Link, key: &SessionKey) -> String {
    format!("{}/{key}", link.id)
}

/// Runs the turn to its end, or continues where previous workers stopped.
pub(super) async fn attempt(
    scene: &Scene<'_>,
    things: &mut Things,
) -> Result<Result<String, Failure>, Error> {
    let (link, key) = place(scene, things)?;
    if let Some(by) = scene.booked.past().stopping {
        return give_up(scene, (link, &key), by).await;
    }
    scene.go_on()?;
    scene.telling.enters(Phase::Preparing);
    let begun = begun(things);
    let is_told = begun.is_some();
    let _place = tokio::select! {
        // The semaphore is never closed. A turn that is under way occupies the gateway already.
        place = link.place_at_work(), if !is_told => place.ok(),
        () = scene.cancel.cancelled(), if !is_told => return Err(Error::Cancelled),
        else => None,
    };
    let (gateway, hello) = tokio::select! {
        connected = link.connected() => connected?,
        () = scene.cancel.cancelled(), if !is_told => return Err(Error::Cancelled),
        () = scene.cancel.cancelled() => return give_up(scene, (link, &key), KilledBy::Cancel).await,
    };
    prepare(scene, things, (link, &key)).await?;
    let (grant, registered) = opened(scene, link.listener(), None).await?;
    Point::Registered.reach();
    drop(registered);
    let (data_plane, run) = (&scene.host.data_plane, &scene.order().run_id);
    let after = scene.telling.tap();
    let tap = scene.booked.ask(async || data_plane.tap(run, after).await).await?;
    let steps = scene.booked.ask(async || data_plane.trace(run).await).await?;
    let ran = scene.booked.past().started.unwrap_or_default();
    let left = scene.order().wanted.agent.runtime.duration().saturating_sub(ran);
    let at = At { link, gateway, hello, key, left, tap, steps };
    let told = Box::pin(tell(scene, things, (&at, &grant), begun)).await?;
    Box::pin(watch(scene, things, (at, told))).await
}

/// Returns what previous workers did of the turn, if it was begun.
fn begun(things: &Things) -> Option<Begun> {
    let turn = things.last(Kind::Turn)?;
    let Ok(at) = turn.name.parse();
    let taken = if turn.stage == Stage::Made { Taken::Yes } else { Taken::Maybe };
    Some(Begun { at, taken })
}

/// Ends a turn that no worker supervises, whether it was ever sent or not.
async fn give_up(
    scene: &Scene<'_>,
    (link, key): (&Link, &SessionKey),
    by: KilledBy,
) -> Result<Result<String, Failure>, Error> {
    let turn = &scene.order().run_id;
    let abort = async {
        if scene.booked.past().started.is_some()
            && let Ok((gateway, _)) = link.connected().await
            && let Err(error) = gateway.abort(key, turn).await
        {
            let (run, error) = (&scene.order().run_id, report::chain(&error));
            tracing::warn!(%run, error, "the gateway was not told to end the turn");
        }
    };
    let (stopped, _told) = tokio::join!(stop(scene, by), timeout(ABORT, abort));
    stopped?;
    let seen = verdict::Seen { killed_by: Some(by), generation: Generation::Four, last: None };
    Ok(verdict::judge(&scene.order().wanted.agent, Ending::Failed(Frames::Aborted), seen))
}

/// Returns the gateway and the session of the run: the stored ones, if there are any.
fn place<'s>(scene: &'s Scene<'_>, things: &Things) -> Result<(&'s Link, SessionKey), gateway::Error> {
    let order = scene.order();
    let gateways = &scene.host.gateways;
    let link = match things.last(Kind::Session).and_then(|session| session.name.split_once('/')) {
        Some((id, _key)) => gateways.named(id)?,
        None => gateways.of_run(&order.wanted.agent, &order.account)?,
    };
    // The gateway may be configured differently by now.
    if !link.gateway.serves(&order.account) {
        return Err(gateway::Error::ServesNot { account: order.account.clone() });
    }
    Ok((link, order.session_key()?))
}

async fn prepare(
    scene: &Scene<'_>,
    things: &mut Things,
    (link, key): (&Link, &SessionKey),
) -> Result<(), Error> {
    let mut wanted = Vec::new();
    if things.last(Kind::Session).is_none() {
        wanted.push(Change::wanted(Kind::Grant, scene.order().run_id.as_str()));
        wanted.push(Change::wanted(Kind::Session, session(link, key)));
    }
    scene.booked.step(Move::Prepare, wanted.clone()).await?;
    things.change(&wanted);
    Point::Prepared.reach();
    Ok(())
}
