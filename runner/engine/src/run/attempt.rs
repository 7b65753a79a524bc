//! Supervises an agent from the lease on its run to its end. What previous workers created is adopted, or everything is
//! created for the run (`making`).
//!
//! An agent is started at most once. The store records that it may run before it is started. A worker that takes the
//! run over then looks at the container itself. A container that was never started is removed, so that no previous
//! worker can still start it.

use std::time::Duration;

use platform_core::id::WorkspaceId;
use runner_control_client::Lines;
use runner_docker::{Container, Ended, Found, Hear, KilledBy, Piece};
use runner_model::{away::Away, failpoint::Point, lifecycle::State};
use runner_store::{Change, Kind, Stage};
use runner_workspace::Workspace;
use tokio_util::sync::CancellationToken;

use super::{
    Error, Scene,
    making::{make, register, tell},
    relay::relay,
    things::{self, Things},
};

/// Longest wait for deltas after the container's end.
const TAP_GRACE: Duration = Duration::from_millis(200);
/// Delay before a failed stop of an agent is repeated.
const PAUSE: Duration = Duration::from_millis(500);

/// A running agent and what belongs to it.
pub(super) struct AtWork {
    pub(super) container: Container,
    pub(super) workspace: Workspace,
    pub(super) tap: Lines,
    /// Time that it may still run.
    pub(super) left: Duration,
}

/// State of a run whose agent a previous worker may have started.
enum Before {
    /// The agent runs.
    Runs(AtWork),
    /// The agent has ended.
    Ended(Container),
    /// The agent never ran.
    Nothing,
}

/// Runs the agent to its end, or continues where previous workers stopped. `things` holds the run's resources, also
/// when this fails.
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
            let at_work = Box::pin(make(scene, things)).await?;
            Box::pin(watch(scene, at_work)).await
        }
    }
}

/// Reads from the tap what came while no worker held the run, if the data plane still has it.
async fn tapped_before(scene: &Scene<'_>) {
    let (data_plane, run) = (&scene.host.data_plane, &scene.order().run_id);
    if let Ok(tap) = data_plane.tap(run, scene.telling.tap()).await {
        let gone = CancellationToken::new();
        gone.cancel();
        drop(tokio::time::timeout(TAP_GRACE, relay((data_plane, run), tap, &scene.telling, &gone)).await);
    }
}

/// Finds out what became of an agent that a previous worker started.
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
            Found::Ended(_) if was_never_told(scene, things) => {
                keep(scene, things, row.to(Stage::Wanted)).await?;
                return Ok(Before::Nothing);
            }
            Found::Ended(container) => return Ok(Before::Ended(told(container))),
            Found::Fresh => {
                // Stored before it is done: a worker that then finds nothing knows why.
                keep(scene, things, row.to(Stage::Wanted)).await?;
                // The previous worker may be about to start it. If that worker is faster, the agent runs, and stays.
                booked.ask(async || host.docker.discard(&row.name).await).await?;
            }
            Found::Nothing if row.stage == Stage::Wanted => return Ok(Before::Nothing),
            Found::Nothing => return Err(Error::Gone),
        }
    };
    // The data plane learns the epoch: from now on it refuses earlier ones.
    let (_, tap) = register(scene, things).await?;
    let workspace = workspace(things).ok_or(Error::Gone)?;
    let workspace = booked.act(host.workspaces.sized(agent.disk).adopt(&workspace)).await??;
    // The previous worker may not have written the start file yet.
    tell(scene, &workspace).await?;
    let ran = booked.past().started.unwrap_or_default();
    let left = agent.runtime.duration().saturating_sub(ran);
    Ok(Before::Runs(AtWork { container, workspace, tap, left }))
}

/// Returns whether its warm container ended without a start file.
fn was_never_told(scene: &Scene<'_>, things: &Things) -> bool {
    workspace(things).is_some_and(|id| scene.host.workspaces.waits(&id))
}

/// Returns the id of the run's workspace.
fn workspace(things: &Things) -> Option<WorkspaceId> {
    things.last(Kind::Workspace).and_then(|row| WorkspaceId::parse(&row.name).ok())
}

/// Stores a change of one resource.
async fn keep(scene: &Scene<'_>, things: &mut Things, change: Change) -> Result<(), Error> {
    scene.booked.change([change.clone()]).await?;
    things.change(&[change]);
    Ok(())
}

/// Waits for the agent's end. Ends the agent itself at its timeout, when its workspace is too large, or after a cancel.
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

/// Ends the agent, and retries while Docker is unavailable. An agent that exceeds its limits is ended even if another
/// worker holds the run by now, because that worker would end it too: an unavailable store does not give it more time.
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
