//! A run that is a turn of a gateway's session: registered at the data plane, told to the gateway, and watched to its end.
//!
//! A turn is told once: its id is the run's, and gateways do not run one id twice. It is stored when the gateway has taken it;
//! whoever takes the run over then only waits for its end. What ends a turn before its time is the closing of the run's grant, at
//! once: no further call passes, whatever the gateway makes of being told to stop.

use std::{convert::Infallible, future::pending, time::Duration};

use futures_util::{FutureExt, future::LocalBoxFuture};
use gateway_bridge::{
    Attribution, Ending, Event, Failure as Frames, Gateway, Generation, Hello, Phase as Reached, Running,
    SessionKey, Turn, TurnId,
};
use platform_core::{
    control::Correlation, event::Phase, grant::RunGrant, id::ModelName, limit::Millis, token::UnixSeconds,
};
use platform_runtime::report;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::{Error, Scene, calls::Calls, making::opened, relay::relay, things::Things};
use crate::{
    away::Away,
    data_plane::Lines,
    failpoint::Point,
    gateway::{
        self, Link,
        attribution::{self, Registered},
        verdict,
    },
    lifecycle::{Failure, Move},
    sandbox::KilledBy,
    store::{self, Change, Kind, Stage},
    workspace::as_markdown,
};

/// How long a gateway may take to say that a turn is over which was ended.
const ABORT: Duration = Duration::from_secs(6);
/// The gateway's own deadline is that much later than ours, which is what ends a turn.
const LATER: Duration = Duration::from_secs(10);
/// For how long nothing has to come of a turn that is over, so that what the gateway still tidies up is the run's;
const QUIET: Duration = Duration::from_millis(300);
/// the same of a turn that has set sub-agents to work, which begin and go on when it is done.
const QUIET_OF_MANY: Duration = Duration::from_secs(5);
/// Longest wait for that, unless there are sub-agents: those have the time of the run.
const TIDYING: Duration = Duration::from_secs(10);
/// Pause after it could not be asked.
const PAUSE: Duration = Duration::from_millis(500);
/// How long deltas may still come after the end.
const TAP_GRACE: Duration = Duration::from_millis(200);

/// A turn, as its run has it.
struct At<'l> {
    link: &'l Link,
    gateway: Gateway,
    hello: Hello,
    key: SessionKey,
    /// How long it may still take.
    left: Duration,
    tap: Lines,
    steps: Lines,
}

/// Has the turn come to its end, or takes up where others were.
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
    let is_told = things.last(Kind::Session).is_some_and(|session| session.stage == Stage::Made);
    let _place = tokio::select! {
        // Nobody closes it. One that is under way has its place at the gateway already.
        place = link.place_at_work(), if !is_told => place.ok(),
        () = scene.cancel.cancelled(), if !is_told => return Err(Error::Cancelled),
        else => None,
    };
    let (gateway, hello) = tokio::select! {
        connected = link.connected() => connected?,
        () = scene.cancel.cancelled() => match is_told {
            true => return give_up(scene, (link, &key), KilledBy::Cancel).await,
            false => return Err(Error::Cancelled),
        },
    };
    prepare(scene, things, (link, &key)).await?;
    let grant = register(scene, link).await?;
    let (data_plane, run) = (&scene.host.data_plane, &scene.order().run_id);
    let after = scene.telling.tap();
    let tap = scene.booked.ask(async || data_plane.tap(run, after).await).await?;
    let steps = scene.booked.ask(async || data_plane.trace(run).await).await?;
    let ran = scene.booked.past().started.unwrap_or_default();
    let left = scene.order().wanted.agent.runtime.duration().saturating_sub(ran);
    let at = At { link, gateway, hello, key, left, tap, steps };
    let told = if is_told {
        let unusable = |source| gateway::Error::Unusable { gateway: at.link.id.clone(), source };
        let turn = turn(scene, &at, Attribution::AsBegun)?;
        Told { running: at.gateway.take_up(turn).await.map_err(unusable)?, slot: None }
    } else {
        Box::pin(tell(scene, things, (&at, &grant))).await?
    };
    Box::pin(watch(scene, things, (at, told))).await
}

/// A turn that a gateway was told.
struct Told {
    running: Running,
    /// What the run has for itself, if this process has leased it.
    slot: Option<Correlation>,
}

/// Ends a turn that nobody works on, whether it was ever told or not.
async fn give_up(
    scene: &Scene<'_>,
    (link, key): (&Link, &SessionKey),
    by: KilledBy,
) -> Result<Result<String, Failure>, Error> {
    let turn: TurnId = (&scene.order().run_id).into();
    let abort = async {
        if scene.booked.past().started.is_some()
            && let Ok((gateway, _)) = link.connected().await
            && let Err(error) = gateway.abort(key, &turn).await
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

/// The gateway and the session that the run is for: those that were stored, if some were.
fn place<'s>(scene: &'s Scene<'_>, things: &Things) -> Result<(&'s Link, SessionKey), gateway::Error> {
    let order = scene.order();
    let gateways = &scene.host.gateways;
    let link = match things.last(Kind::Session).and_then(|session| session.name.split_once('/')) {
        Some((id, _key)) => gateways.named(id)?,
        None => gateways.of_run(&order.wanted.agent, &order.account)?,
    };
    // It may be configured differently by now.
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
        wanted.push(Change::wanted(Kind::Session, format!("{}/{key}", link.id)));
    }
    scene.booked.step(Move::Prepare, wanted.clone()).await?;
    things.change(&wanted);
    Point::Prepared.reach();
    Ok(())
}

/// Opens the run at the data plane, where the gateway's calls come in.
async fn register(scene: &Scene<'_>, link: &Link) -> Result<RunGrant, Error> {
    let (grant, registered) = opened(scene, link.listener(), None).await?;
    Point::Registered.reach();
    drop(registered);
    Ok(grant)
}

/// Tells the gateway the turn. Stored before: whoever takes the run over may find that it was.
async fn tell(
    scene: &Scene<'_>,
    things: &mut Things,
    (at, grant): (&At<'_>, &RunGrant),
) -> Result<Told, Error> {
    let Scene { host, booked, .. } = *scene;
    scene.telling.enters(Phase::Starting);
    let expiry = grant.expires.unwrap_or(UnixSeconds(u64::MAX));
    let run = &scene.order().run_id;
    let Registered { attribution, slot } =
        booked.ask(async || attribution::register(at.link, &host.data_plane, (run, expiry)).await).await?;
    let made = Change::wanted(Kind::Grant, run.as_str()).to(Stage::Made);
    for (makes, changes) in [(Move::Start, vec![made]), (Move::Run, vec![])] {
        booked.step(makes, changes.clone()).await?;
        things.change(&changes);
    }
    Point::RunStored.reach();
    scene.go_on()?;
    scene.telling.enters(Phase::Running);
    let turn = turn(scene, at, attribution)?;
    let unusable = |source| gateway::Error::Unusable { gateway: at.link.id.clone(), source };
    let running = booked.act(at.gateway.run(turn)).await?.map_err(unusable)?;
    Point::Started.reach();
    Ok(Told { running, slot })
}

fn turn(scene: &Scene<'_>, at: &At<'_>, attribution: Attribution) -> Result<Turn, gateway::Error> {
    let wanted = &scene.order().wanted;
    let last = wanted.messages.last().map(|message| message.content.clone()).unwrap_or_default();
    // A session that goes on has what was said before.
    let before = &wanted.messages[..wanted.messages.len().saturating_sub(1)];
    let message = match (&wanted.state_key, before) {
        (Some(_), _) | (None, []) => last,
        (None, before) => format!("{}\n# Answer this\n\n{last}", as_markdown(before)),
    };
    Ok(Turn {
        id: (&scene.order().run_id).into(),
        session: at.key.clone(),
        message,
        model: Some(ModelName::parse(&wanted.model)?),
        attribution,
        deadline: Instant::now() + at.left + LATER,
        instructions: None,
    })
}

/// Waits for the turn's end, and brings it about if its time is over or somebody asks.
async fn watch(
    scene: &Scene<'_>,
    things: &mut Things,
    (at, told): (At<'_>, Told),
) -> Result<Result<String, Failure>, Error> {
    let At { hello, left, tap, steps, .. } = at;
    let (calls, gone) = (Calls::new(), CancellationToken::new());
    let plane = (&scene.host.data_plane, &scene.order().run_id);
    let beside = async {
        tokio::join!(relay(plane, tap, &scene.telling, &gone), calls.follow(plane, steps));
        pending::<Infallible>().await
    };
    let deadline = Instant::now() + left;
    let ended = async {
        let (ending, killed_by) = Box::pin(hear(scene, things, (told.running, deadline))).await?;
        if killed_by.is_none() {
            if matches!(ending, Ending::Completed { .. }) {
                settled(scene, &calls, deadline).await;
            }
            give_back(scene, told.slot).await;
        }
        gone.cancel();
        sleep(TAP_GRACE).await;
        Point::Ended.reach();
        let seen = verdict::Seen { killed_by, generation: hello.generation, last: calls.last() };
        Ok::<_, Error>(verdict::judge(&scene.order().wanted.agent, ending, seen))
    };
    tokio::select! {
        ended = ended => ended,
        never = beside => match never {},
        never = scene.telling.keep(scene.booked) => match never {},
    }
}

/// Gives a slot back of which the gateway has said that nothing is called there any more. Others rest.
async fn give_back(scene: &Scene<'_>, slot: Option<Correlation>) {
    let Some(slot) = slot else { return };
    let run = &scene.order().run_id;
    if let Err(error) = scene.host.data_plane.withdraw(run, slot).await {
        tracing::debug!(%run, error = %report::chain(&error), "a slot rests");
    }
}

/// Hears a turn. Who drops this leaves it as it is, for whoever takes the run over.
async fn hear(
    scene: &Scene<'_>,
    things: &mut Things,
    (mut running, deadline): (Running, Instant),
) -> Result<(Ending, Option<KilledBy>), Error> {
    running.detach();
    let mut killed_by = None;
    // Beside everything else: a store that is away holds up neither a deadline nor a cancel.
    let mut taken: Option<(Change, LocalBoxFuture<'_, Result<(), store::Error>>)> = None;
    loop {
        let until = if killed_by.is_some() { Instant::now() + ABORT } else { deadline };
        let by = tokio::select! {
            event = running.next() => match event {
                Some(Event::Text(text)) => {
                    scene.telling.said(text);
                    continue;
                }
                Some(Event::Status(Reached::Accepted)) => {
                    let change = things.last(Kind::Session).map(|session| session.to(Stage::Made));
                    taken = change.map(|change| (change.clone(), scene.booked.change([change]).boxed_local()));
                    continue;
                }
                // Tools are told by the data plane, whatever the gateway's version.
                Some(Event::Tool { .. } | Event::Status(_) | Event::Usage(_) | Event::Missed { .. }) => continue,
                None => return Ok((running.ending().await, killed_by)),
            },
            stored = kept(&mut taken) => {
                things.change(&[stored?]);
                taken = None;
                Point::TurnTaken.reach();
                continue;
            }
            () = sleep_until(until) => KilledBy::Timeout,
            () = scene.cancel.cancelled(), if killed_by.is_none() => KilledBy::Cancel,
        };
        if killed_by.is_some() {
            // It was told to end, and says nothing.
            return Ok((Ending::Failed(Frames::Aborted), killed_by));
        }
        killed_by = Some(by);
        running.cancel();
        stop(scene, by).await?;
    }
}

/// What is stored of a turn that the gateway has taken; never ready if there is nothing to store.
async fn kept(
    taken: &mut Option<(Change, LocalBoxFuture<'_, Result<(), store::Error>>)>,
) -> Result<Change, store::Error> {
    match taken {
        Some((change, storing)) => storing.await.map(|()| change.clone()),
        None => pending().await,
    }
}

/// Ends what the turn may still do: that it is to end is stored, and its grant is closed, however long the data plane is away.
/// One that is over its time is ended whoever holds the run by now, as that one would, too.
async fn stop(scene: &Scene<'_>, by: KilledBy) -> Result<(), Error> {
    let Scene { host, booked, .. } = *scene;
    let run = &booked.order.run_id;
    let close = async {
        loop {
            let close = host.data_plane.close(run, booked.epoch(), Millis(0));
            let closed = match by {
                KilledBy::Timeout | KilledBy::Disk => close.await,
                KilledBy::Cancel => booked.act(close).await?,
            };
            match closed {
                Err(error) if error.is_away() => sleep(PAUSE).await,
                Err(error) if !error.is_unknown_run() => return Err(error.into()),
                _ => return Ok::<_, Error>(()),
            }
        }
    };
    let (stored, closed) = tokio::join!(booked.stopping(by), close);
    stored?;
    closed
}

/// Waits until what the gateway does after a turn is done, such as shortening the conversation, or what sub-agents do: it is the
/// run's. Who cancels the run waits no longer.
async fn settled(scene: &Scene<'_>, calls: &Calls, deadline: Instant) {
    let (data_plane, run) = (&scene.host.data_plane, &scene.order().run_id);
    let (least, longest) = if scene.telling.has_delegated() {
        (QUIET_OF_MANY, deadline.saturating_duration_since(Instant::now()))
    } else {
        (QUIET, TIDYING)
    };
    let quiet = async {
        loop {
            sleep(QUIET / 3).await;
            let is_idle = data_plane.run(run).await.is_ok_and(|view| view.in_flight == 0);
            if is_idle && calls.quiet() >= least {
                return;
            }
        }
    };
    tokio::select! {
        done = timeout(longest, quiet) => drop(done),
        () = scene.cancel.cancelled() => {}
    }
}
