//! Provisions a run: workspace, grant and socket, container, and the start of its agent. Alternatively takes a warm
//! container, which has all of that but the grant.
//!
//! The store records what is about to be created before it is created, and that the agent may run before it is started.

use std::path::PathBuf;

use platform_core::{
    control::{Register, Registered, RunState},
    event::Phase,
    grant::{Listener, RunGrant},
    id::{SocketDirName, WorkspaceId},
};
use platform_runtime::{random, report, settings::WorkspaceSetup};
use runner_control_client::{self as data_plane, Lines};
use runner_docker::Container;
use runner_model::{
    away::Away,
    conversation::Message,
    failpoint::Point,
    lifecycle::{Move, StartKind, State},
};
use runner_store::{self as store, Change, Kind, Stage, WarmContainer};
use runner_workspace::{Workspace, Workspaces};

use super::{
    Error, Scene,
    attempt::AtWork,
    needs::{disk_space, image},
    plan::{self, Around},
    things::{self, Things},
};
use crate::pool;

/// Resources that exist before the agent may run.
struct Prepared {
    workspace: Workspace,
    tap: Lines,
    container: Prospect,
}

/// Container in which the agent will run.
enum Prospect {
    /// A new container, created for this run.
    New {
        /// Id of the image.
        image: String,
        id: WorkspaceId,
        socket_dir: PathBuf,
    },
    /// A warm container that waits for its start file.
    Waits(Box<Container>),
}

/// Provisions the run and starts the agent.
pub(super) async fn make(scene: &Scene<'_>, things: &mut Things) -> Result<AtWork, Error> {
    scene.go_on()?;
    scene.telling.enters(Phase::Preparing);
    let image = image(scene).await?;
    if let Some(prepared) = Box::pin(take(scene, things, &image)).await? {
        return Box::pin(start(scene, things, prepared)).await;
    }
    let _place = scene.place_to_start().await?;
    let prepared = Box::pin(prepare(scene, things, image)).await?;
    Box::pin(start(scene, things, prepared)).await
}

/// Returns the messages that are in the run's workspace when its agent begins.
fn messages<'s>(scene: &'s Scene<'_>) -> &'s [Message] {
    let wanted = &scene.order().wanted;
    match wanted.agent.workspace {
        WorkspaceSetup::Conversation => &wanted.messages,
    }
}

/// Prepares the run with a warm container from `image`, if there is one.
async fn take(scene: &Scene<'_>, things: &mut Things, image: &str) -> Result<Option<Prepared>, Error> {
    let Scene { host, booked, .. } = *scene;
    let agent = &scene.order().wanted.agent;
    // A preparation that was begun without a warm container continues without one.
    if booked.state() != State::Queued || plan::start(scene.order()).is_none() {
        return Ok(None);
    }
    let template = pool::template(host, (&scene.order().agent_id, agent), image);
    let Some(warm) = claim(scene, things, &template).await? else { return Ok(None) };
    Point::Prepared.reach();
    let waiting = booked.ask(async || host.docker.waiting(&warm.container, agent.output).await).await?;
    let Some(container) = waiting else {
        // The container has ended while it waited.
        things::clear(scene, things).await?;
        return Ok(None);
    };
    let workspaces = host.workspaces.sized(agent.disk);
    let workspace = booked.act(workspaces.adopt(&warm.workspace)).await??;
    booked.act(workspace.furnish(messages(scene))).await??;
    Point::WorkspaceMade.reach();
    let (_, tap) = open(scene, things).await?;
    Ok(Some(Prepared { workspace, tap, container: Prospect::Waits(Box::new(container)) }))
}

/// Claims a warm container of `template` for the run.
async fn claim(
    scene: &Scene<'_>,
    things: &mut Things,
    template: &str,
) -> Result<Option<WarmContainer>, Error> {
    let Scene { host, booked, .. } = *scene;
    let mut warm_containers = match host.store.warm_containers(template).await {
        Ok(warm_containers) => warm_containers,
        Err(error) => {
            tracing::warn!(error = %report::chain(&error), "nothing that waits is taken");
            return Ok(None);
        }
    };
    while !warm_containers.is_empty() {
        // Chosen at random: runs that all choose the same one would compete, and only one gets it.
        let warm = warm_containers.swap_remove(random::below(warm_containers.len()));
        let grant = Change::wanted(Kind::Grant, scene.order().run_id.as_str());
        match booked.prepare_with(warm.clone(), [grant.clone()]).await {
            Ok(()) => {
                things.change(&[grant]);
                things.change(&warm.things());
                return Ok(Some(warm));
            }
            Err(store::Error::NotWarm { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

async fn prepare(scene: &Scene<'_>, things: &mut Things, image: String) -> Result<Prepared, Error> {
    let Scene { host, booked, .. } = *scene;
    let workspaces = host.workspaces.sized(scene.order().wanted.agent.disk);
    let room = disk_space(scene, &workspaces).await?;
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
    let workspace = booked.act(workspaces.create(&id, messages(scene))).await??;
    drop(room);
    Point::WorkspaceMade.reach();
    let (socket_dir, tap) = open(scene, things).await?;
    Ok(Prepared { workspace, tap, container: Prospect::New { image, id, socket_dir } })
}

/// Opens the run at the data plane, for the first time in this attempt.
async fn open(scene: &Scene<'_>, things: &mut Things) -> Result<(PathBuf, Lines), Error> {
    let opened = match register(scene, things).await {
        Err(error) if error.is_refusal() => {
            disown(scene, things, &[Kind::Grant, Kind::Listener]).await?;
            return Err(error);
        }
        registered => registered?,
    };
    Point::Registered.reach();
    Ok(opened)
}

/// Records that resources of these names belong to another owner, and are not removed by this run.
async fn disown(scene: &Scene<'_>, things: &mut Things, kinds: &[Kind]) -> Result<(), Error> {
    let dir = things.last(Kind::Listener).filter(|_| kinds.contains(&Kind::Listener));
    if let Some(dir) = dir.and_then(|row| SocketDirName::parse(&row.name).ok())
        && let Err(error) = scene.host.data_plane.release(&dir).await
    {
        // A listener that existed before its run is ours in any case.
        tracing::warn!(error = %report::chain(&error), "a socket directory stays behind");
    }
    let rows = kinds.iter().filter_map(|kind| things.last(*kind));
    let rows: Vec<_> = rows.map(|row| row.to(Stage::Removed)).collect();
    scene.booked.change(rows.clone()).await?;
    things.change(&rows);
    Ok(())
}

/// Opens the run at the data plane, or confirms that it is open, for our epoch.
pub(super) async fn register(scene: &Scene<'_>, things: &Things) -> Result<(PathBuf, Lines), Error> {
    let Scene { host, booked, .. } = *scene;
    let socket_dir = things.last(Kind::Listener).and_then(|row| SocketDirName::parse(&row.name).ok());
    let unexpected = || data_plane::Error::Unexpected("a run without a socket of its own".to_owned());
    let (_, registered) = opened(scene, Listener::default(), socket_dir.clone()).await?;
    let socket = registered.socket.ok_or_else(unexpected)?;
    if Some(&socket.name) != socket_dir.as_ref() {
        return Err(Error::Another);
    }
    let (run, after) = (&scene.order().run_id, scene.telling.tap());
    Ok((socket.path, booked.ask(async || host.data_plane.tap(run, after).await).await?))
}

/// Opens the run with its stored grant, or with a new one, and returns the data plane's answer.
pub(super) async fn opened(
    scene: &Scene<'_>,
    listener: Listener,
    socket_dir: Option<SocketDirName>,
) -> Result<(RunGrant, Registered), Error> {
    let Scene { host, booked, .. } = *scene;
    let run = &scene.order().run_id;
    let known = match booked.epoch() {
        // No worker held the run before.
        1 => None,
        _ => match booked.ask(async || host.data_plane.run(run).await).await {
            Err(Error::DataPlane(error)) if error.is_unknown_run() => None,
            known => Some(known?),
        },
    };
    let grant = match known {
        // Exactly what previous workers registered: the expiry is a time that they chose.
        Some(view) if view.state == RunState::Open => view.grant,
        _ => plan::grant(scene.order(), listener),
    };
    let register = Register { grant, socket_dir, epoch: booked.epoch() };
    let registered = booked.ask(async || host.data_plane.register(&register).await).await?;
    Ok((register.grant, registered))
}

async fn start(scene: &Scene<'_>, things: &mut Things, prepared: Prepared) -> Result<AtWork, Error> {
    let Scene { booked, .. } = *scene;
    let Prepared { workspace, tap, container } = prepared;
    scene.go_on()?;
    scene.telling.enters(Phase::Starting);
    let (container, start) = match container {
        Prospect::New { image, id, socket_dir } => {
            let around = Around { id: &id, workspace: workspace.path(), socket_dir, image };
            (create(scene, things, around).await?, StartKind::Cold)
        }
        Prospect::Waits(container) => {
            step(scene, things, (Move::Start, things.made())).await?;
            Point::Starting.reach();
            (*container, StartKind::Warm)
        }
    };
    Point::ContainerMade.reach();
    step(scene, things, (Move::Run, things.made())).await?;
    Point::RunStored.reach();
    scene.go_on()?;
    scene.telling.enters(Phase::Running);
    match start {
        StartKind::Cold => booked.ask(async || container.start().await).await?,
        StartKind::Warm => tell(scene, &workspace).await?,
    }
    booked.started(start);
    Point::Started.reach();
    let left = scene.order().wanted.agent.runtime.duration();
    Ok(AtWork { container, workspace, tap, left })
}

/// Creates the container, whose agent does not run yet.
async fn create(scene: &Scene<'_>, things: &mut Things, around: Around<'_>) -> Result<Container, Error> {
    let Scene { host, booked, .. } = *scene;
    let spec = plan::spec(scene, around);
    let mut changes = things.made();
    changes.push(Change::wanted(Kind::Container, spec.name.as_str()));
    step(scene, things, (Move::Start, changes)).await?;
    Point::Starting.reach();
    match booked.ask(async || host.docker.create(&spec).await).await {
        Err(Error::Docker(error)) if !error.is_away() => {
            disown(scene, things, &[Kind::Container]).await?;
            Err(error.into())
        }
        created => created,
    }
}

/// Stores a transition together with changes of resources.
async fn step(
    scene: &Scene<'_>,
    things: &mut Things,
    (makes, changes): (Move, Vec<Change>),
) -> Result<(), Error> {
    scene.booked.step(makes, changes.clone()).await?;
    things.change(&changes);
    Ok(())
}

/// Writes the start file of a warm container. Without effect if it was written before.
pub(super) async fn tell(scene: &Scene<'_>, workspace: &Workspace) -> Result<(), Error> {
    if let Some(start) = plan::start(scene.order()) {
        scene.booked.act(workspace.tell(start)).await??;
    }
    Ok(())
}
