//! From a run that is ours to the end of its agent: everything is made for it, or what others made is taken up.
//!
//! An agent is started at most once. It is stored that it may run before it does; whoever takes the run over then looks at
//! the container itself. One that was never started is removed, and with it the possibility that somebody still starts it.

use std::{path::PathBuf, time::Duration};

use platform_core::{
    control::{Register, RunState},
    event::Phase,
    id::{SocketDirName, WorkspaceId},
};
use platform_runtime::{random, settings::WorkspaceSetup};
use tokio_util::sync::CancellationToken;

use super::{
    Error, Scene, Start,
    needs::{image, room},
    plan::{self, Around},
    relay::relay,
    things::{self, Things},
};
use crate::{
    away::Away,
    data_plane::{self, Lines},
    failpoint::Point,
    lifecycle::{Move, State},
    sandbox::{
        Ended, Hear, KilledBy, Piece,
        docker::{Container, Found},
    },
    store::{Change, Kind, Stage},
    workspace::{Workspace, Workspaces},
};

/// How long deltas may still come after the container's end.
const TAP_GRACE: Duration = Duration::from_millis(200);
/// Pause before an agent is told again to end.
const PAUSE: Duration = Duration::from_millis(500);

/// An agent at work.
struct AtWork {
    container: Container,
    workspace: Workspace,
    tap: Lines,
    /// How long it may still run.
    left: Duration,
}

/// What was found of a run whose agent was let run.
enum Before {
    /// It runs.
    Runs(AtWork),
    /// It has ended.
    Ended(Container),
    /// It never ran.
    Nothing,
}

/// Has the agent run to its end, or takes up where others were. `things` are those of the run, also when this fails.
pub(super) async fn attempt(scene: &Scene<'_>, things: &mut Things) -> Result<Ended, Error> {
    match take_up(scene, things).await? {
        Before::Runs(at_work) => Box::pin(watch(scene, at_work)).await,
        Before::Ended(mut container) => {
            container.over(&|piece| scene.telling.printed(piece)).await?;
            tapped_before(scene).await;
            Ok(container.ended(scene.booked.past().stopping).await?)
        }
        Before::Nothing => {
            things::clear(scene, things).await?;
            let prepared = prepare(scene, things).await?;
            let at_work = Box::pin(start(scene, things, prepared)).await?;
            Box::pin(watch(scene, at_work)).await
        }
    }
}

/// Takes from the tap what came while nobody worked on the run, if the data plane still has it.
async fn tapped_before(scene: &Scene<'_>) {
    let (data_plane, run) = (&scene.host.data_plane, &scene.order().run_id);
    if let Ok(tap) = data_plane.tap(run, scene.telling.tap()).await {
        let gone = CancellationToken::new();
        gone.cancel();
        drop(tokio::time::timeout(TAP_GRACE, relay((data_plane, run), tap, &scene.telling, &gone)).await);
    }
}

/// Looks what became of an agent that others let run.
async fn take_up(scene: &Scene<'_>, things: &mut Things) -> Result<Before, Error> {
    let Scene { host, booked, .. } = *scene;
    let agent = &scene.order().wanted.agent;
    let told = booked.past().told;
    let told = |mut container: Container| {
        container.was_told(told.stdout.bytes, told.stderr.bytes);
        container
    };
    let container = loop {
        let (State::Running, Some(row)) = (booked.state(), things.last(Kind::Container).cloned()) else {
            return Ok(Before::Nothing);
        };
        match host.docker.find(&row.name, agent.output).await? {
            Found::Running(container) => {
                if row.stage == Stage::Wanted {
                    keep(scene, things, row.to(Stage::Made)).await?;
                }
                break told(container);
            }
            Found::Ended(container) => return Ok(Before::Ended(told(container))),
            Found::Fresh => {
                // Stored before it is done: whoever then finds nothing knows why.
                keep(scene, things, row.to(Stage::Wanted)).await?;
                // Who held the run before may be about to start it. If that is faster, it runs, and stays.
                booked.ask(async || host.docker.discard(&row.name).await).await?;
            }
            Found::Nothing if row.stage == Stage::Wanted => return Ok(Before::Nothing),
            Found::Nothing => return Err(Error::Gone),
        }
    };
    // The data plane learns the epoch: from now on it does nothing for those before.
    let (_, tap) = register(scene, things).await?;
    let workspace = things.last(Kind::Workspace).and_then(|row| WorkspaceId::parse(&row.name).ok());
    let workspace = workspace.ok_or(Error::Gone)?;
    let workspace = booked.act(host.workspaces.sized(agent.disk).adopt(&workspace)).await??;
    let ran = booked.past().started.unwrap_or_default();
    let left = agent.runtime.duration().saturating_sub(ran);
    Ok(Before::Runs(AtWork { container, workspace, tap, left }))
}

/// Stores what becomes of a thing.
async fn keep(scene: &Scene<'_>, things: &mut Things, change: Change) -> Result<(), Error> {
    scene.booked.change([change.clone()]).await?;
    things.change(&[change]);
    Ok(())
}

/// What is there before the container.
struct Prepared {
    /// Id of the image.
    image: String,
    id: WorkspaceId,
    workspace: Workspace,
    socket_dir: PathBuf,
    tap: Lines,
}

async fn prepare(scene: &Scene<'_>, things: &mut Things) -> Result<Prepared, Error> {
    let Scene { host, booked, .. } = *scene;
    scene.go_on()?;
    scene.telling.enters(Phase::Preparing);
    let order = &scene.order().wanted;
    let image = image(scene).await?;
    let workspaces = host.workspaces.sized(order.agent.disk);
    let room = room(scene, &workspaces).await?;
    let id = Workspaces::new_id();
    let mut wanted = vec![Change::wanted(Kind::Workspace, id.as_str())];
    if things.last(Kind::Listener).is_none() {
        let socket_dir = SocketDirName::from_random(random::bits());
        wanted.push(Change::wanted(Kind::Grant, scene.order().run_id.as_str()));
        wanted.push(Change::wanted(Kind::Listener, socket_dir.as_str()));
    }
    booked.step(Move::Prepare, wanted.clone()).await?;
    things.change(&wanted);
    Point::Prepared.reach();
    let messages = match order.agent.workspace {
        WorkspaceSetup::Conversation => &order.messages,
    };
    let workspace = booked.act(workspaces.create(&id, messages)).await??;
    drop(room);
    Point::WorkspaceMade.reach();
    let (socket_dir, tap) = match register(scene, things).await {
        Err(error) if error.is_refusal() => {
            disown(scene, things, &[Kind::Grant, Kind::Listener]).await?;
            return Err(error);
        }
        registered => registered?,
    };
    Point::Registered.reach();
    Ok(Prepared { image, id, workspace, socket_dir, tap })
}

/// What is there under these names was made by somebody else, and is not to be removed by us.
async fn disown(scene: &Scene<'_>, things: &mut Things, kinds: &[Kind]) -> Result<(), Error> {
    let rows = kinds.iter().filter_map(|kind| things.last(*kind));
    let rows: Vec<_> = rows.map(|row| row.to(Stage::Removed)).collect();
    scene.booked.change(rows.clone()).await?;
    things.change(&rows);
    Ok(())
}

/// Opens the run at the data plane, or confirms that it is open, for our epoch.
async fn register(scene: &Scene<'_>, things: &Things) -> Result<(PathBuf, Lines), Error> {
    let Scene { host, booked, .. } = *scene;
    let run = &scene.order().run_id;
    let known = match booked.epoch() {
        // Nobody was there before us.
        1 => None,
        _ => match booked.ask(async || host.data_plane.run(run).await).await {
            Err(Error::DataPlane(error)) if error.is_unknown_run() => None,
            known => Some(known?),
        },
    };
    let grant = match known {
        // Word for word what those before us registered: its end is a time of theirs.
        Some(view) if view.state == RunState::Open => view.grant,
        _ => plan::grant(scene.order()),
    };
    let socket_dir = things.last(Kind::Listener).and_then(|row| SocketDirName::parse(&row.name).ok());
    let register = Register { grant, socket_dir, epoch: booked.epoch() };
    let unexpected = || data_plane::Error::Unexpected("a run without a socket of its own".to_owned());
    let registered = booked.ask(async || host.data_plane.register(&register).await).await?;
    let socket = registered.socket.ok_or_else(unexpected)?;
    if Some(&socket.name) != register.socket_dir.as_ref() {
        return Err(Error::Another);
    }
    let after = scene.telling.tap();
    Ok((socket.path, booked.ask(async || host.data_plane.tap(run, after).await).await?))
}

async fn start(scene: &Scene<'_>, things: &mut Things, prepared: Prepared) -> Result<AtWork, Error> {
    let Scene { host, booked, .. } = *scene;
    let Prepared { image, id, workspace, socket_dir, tap } = prepared;
    scene.go_on()?;
    let spec = plan::spec(scene, Around { id: &id, workspace: workspace.path(), socket_dir, image });
    scene.telling.enters(Phase::Starting);
    let row = Change::wanted(Kind::Container, spec.name.as_str());
    let mut changes = things.made();
    changes.push(row.clone());
    booked.step(Move::Start, changes.clone()).await?;
    things.change(&changes);
    Point::Starting.reach();
    let container = match booked.ask(async || host.docker.create(&spec).await).await {
        Err(Error::Docker(error)) if !error.is_away() => {
            disown(scene, things, &[Kind::Container]).await?;
            return Err(error.into());
        }
        created => created?,
    };
    Point::ContainerMade.reach();
    let made = [row.to(Stage::Made)];
    booked.step(Move::Run, made.clone()).await?;
    things.change(&made);
    Point::RunStored.reach();
    scene.go_on()?;
    scene.telling.enters(Phase::Running);
    scene.start.set(Some(scene.began.elapsed()));
    booked.ask(async || container.start().await).await?;
    booked.started(Start::Cold);
    Point::Started.reach();
    Ok(AtWork { container, workspace, tap, left: spec.limits.runtime.duration() })
}

/// Waits for the agent's end, and brings it about if its time is over, its workspace is too large, or somebody asks.
async fn watch(scene: &Scene<'_>, at_work: AtWork) -> Result<Ended, Error> {
    let AtWork { mut container, workspace, tap, left } = at_work;
    let (hear, gone) = (|piece: Piece| scene.telling.printed(piece), CancellationToken::new());
    let ended = async {
        let killed_by = match scene.booked.past().stopping {
            Some(by) => Some(by),
            None => tokio::select! {
                over = container.over(&hear) => { over?; None }
                () = tokio::time::sleep(left) => Some(KilledBy::Timeout),
                () = scene.cancel.cancelled() => Some(KilledBy::Cancel),
                exceeded = workspace.watch() => {
                    scene.exceeded.set(Some(exceeded));
                    Some(KilledBy::Disk)
                }
            },
        };
        if let Some(by) = killed_by {
            scene.booked.stopping(by).await?;
            Box::pin(stop(scene, &mut container, (by, &hear))).await?;
        }
        gone.cancel();
        let ended = container.ended(killed_by).await?;
        Point::Ended.reach();
        Ok::<_, Error>(ended)
    };
    let watched = (&scene.host.data_plane, &scene.order().run_id);
    let relay = relay(watched, tap, &scene.telling, &gone);
    tokio::pin!(relay, ended);
    let watched = async {
        tokio::select! {
            ended = &mut ended => {
                drop(tokio::time::timeout(TAP_GRACE, &mut relay).await);
                ended
            }
            () = &mut relay => ended.await,
        }
    };
    tokio::select! {
        ended = watched => ended,
        never = scene.telling.keep(scene.booked) => match never {},
    }
}

/// Ends the agent, however long Docker is away. One that is over its bounds is ended whoever holds the run by now, as that
/// one would, too: a store that is away does not give it more time.
async fn stop(
    scene: &Scene<'_>,
    container: &mut Container,
    (by, hear): (KilledBy, Hear<'_>),
) -> Result<(), Error> {
    loop {
        let stop = Box::pin(container.stop(hear));
        let stopped = match by {
            KilledBy::Timeout | KilledBy::Disk => stop.await,
            KilledBy::Cancel => scene.booked.act(stop).await?,
        };
        match stopped {
            Err(error) if error.is_away() => tokio::time::sleep(PAUSE).await,
            stopped => return Ok(stopped?),
        }
    }
}
