//! Executes one run, from its row to the removal of everything it needed.
//!
//! Steps, in this order: store the run; create the workspace and register at the data plane; create the container; run
//! it. Then close the grant, remove container and workspace, and report what was used. Each step is a transition of
//! `lifecycle`, stored before it is made. The row of a resource is stored with the transition that
//! precedes its creation. The second half happens on every path, also after Ctrl-C and after a step that failed. A
//! worker that takes over a run continues where the previous worker stopped: everything known of a run is in its rows.

mod admission;
mod attempt;
mod booked;
mod calls;
mod making;
mod needs;
mod plan;
mod relay;
mod session;
mod telling;
mod things;

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use gateway_bridge::InvalidSession;
use platform_core::{
    control::Usage,
    event::{AgentEvent, Phase, RunErrorCode},
};
use platform_runtime::{
    report,
    settings::{Execution, Stream},
};
use runner_control_client as data_plane;
use runner_docker::{self as docker, Ended};
use runner_gateways::{self as gateway, attribution::Unattributable};
use runner_model::{
    away::Away,
    failpoint::Point,
    lifecycle::{Detail, Ending, Failure, Move, StartKind, State},
};
use runner_store::{self as store, Record};
use runner_workspace::{self as workspace, Exceeded};
use tokio::sync::{SemaphorePermit, mpsc};
use tokio_util::sync::CancellationToken;

pub use self::booked::{Booked, Error as BookingError};
use self::{attempt::attempt, relay::announce, telling::Telling, things::Things};
pub(crate) use crate::request::RunRequest;
use crate::{context::EngineHandles, verdict};

/// Capacity of the channel for events that no reader consumes.
const UNHEARD: usize = 16;

/// Result of a run.
#[derive(Debug)]
pub struct Finished {
    /// Exit code of the agent's process; absent if it never ran.
    pub exit_code: Option<i64>,
    /// Exit of the container; absent if it never ran, or another process observed the exit.
    pub ended: Option<Ended>,
    /// True if a process in it was killed for lack of memory; absent if that is not known.
    pub oom_seen: Option<bool>,
    /// Answer, or the reason why there is none.
    pub answer: Result<String, Failure>,
    /// Usage that the data plane counted; absent if the data plane could not be asked.
    pub usage: Option<Usage>,
    /// Origin of the container; absent if none was started here.
    pub from: Option<StartKind>,
    /// Time from the request to the start of the container.
    pub start: Option<Duration>,
    /// Time from the request to the end.
    pub duration: Duration,
}

impl Finished {
    /// Builds the result of an ended run that another process executed.
    pub fn elsewhere(record: Record) -> Self {
        let Record { run, answer, .. } = record;
        Self {
            exit_code: run.exit_code,
            ended: None,
            oom_seen: run.oom_seen,
            answer: run.error.map_or_else(|| Ok(answer.unwrap_or_default()), Err),
            usage: run.usage,
            from: None,
            start: run.started.map(|started| run.created.until(started)),
            duration: run.created.until(run.ended.unwrap_or(record.now)),
        }
    }
}

/// Reason why the agent did not run to its end.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the step could not be stored")]
    Store(#[from] store::Error),
    #[error("the data plane failed")]
    DataPlane(#[from] data_plane::Error),
    #[error("the workspace failed")]
    Workspace(#[from] workspace::Error),
    #[error("the sandbox failed")]
    Docker(#[from] docker::Error),
    #[error("the gateway failed")]
    Gateway(#[from] gateway::Error),
    #[error("somebody has removed the container while the agent ran")]
    Gone,
    #[error("another run of this id is open at the data plane")]
    Another,
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// Returns whether the data plane reported that the grant under the run's id is not ours.
    fn is_refusal(&self) -> bool {
        match self {
            Self::Another => true,
            Self::DataPlane(error) => error.is_refusal(),
            _ => false,
        }
    }
}

impl Error {
    /// Returns what the caller of the run may read: no paths, and no text of other programs.
    fn told(&self) -> (RunErrorCode, String) {
        use RunErrorCode as Code;
        let (code, message) = match self {
            Self::Cancelled => (Code::Cancelled, "cancelled"),
            Self::Gone => (Code::ContainerLost, "somebody has removed the container while the agent ran"),
            Self::Another => (Code::DataPlaneFailed, "another run of this id is open at the data plane"),
            Self::Gateway(error) if error.is_of_the_order() => {
                let code = if error.is_away() { Code::GatewayUnavailable } else { Code::GatewayFailed };
                return (code, report::chain(error));
            }
            Self::Gateway(error) if error.is_away() => {
                (Code::GatewayUnavailable, "its gateway did not answer")
            }
            Self::Gateway(_) => (Code::GatewayFailed, "its gateway cannot be used"),
            Self::Store(_) => (Code::StoreFailed, "what the run does could not be stored"),
            Self::DataPlane(error) if error.is_away() => {
                (Code::DataPlaneUnavailable, "the data plane did not answer")
            }
            Self::DataPlane(_) => (Code::DataPlaneFailed, "the data plane refused the run"),
            Self::Workspace(workspace::Error::InsufficientDisk(_)) => {
                (Code::InsufficientDisk, "there was no room for its workspace")
            }
            Self::Workspace(_) => (Code::WorkspaceFailed, "its workspace could not be made or kept"),
            Self::Docker(error) if error.is_away() => (Code::DockerUnavailable, "Docker did not answer"),
            Self::Docker(error @ (docker::Error::NoImage { .. } | docker::Error::ImageGone { .. })) => {
                return (Code::ImageMissing, error.to_string());
            }
            Self::Docker(error @ docker::Error::NoVolume { .. }) => {
                return (Code::VolumeMissing, error.to_string());
            }
            Self::Docker(error) => return (Code::DockerFailed, error.to_string()),
        };
        (code, message.to_owned())
    }
}

impl From<Unattributable> for Error {
    fn from(error: Unattributable) -> Self {
        match error {
            Unattributable::DataPlane(error) => error.into(),
            Unattributable::Gateway(error) => error.into(),
        }
    }
}

impl From<InvalidSession> for Error {
    fn from(error: InvalidSession) -> Self {
        Self::Gateway(error.into())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (code, message) = error.told();
        Self { code, message, detail: Some(Detail::new(report::chain(&error))) }
    }
}

/// Everything that one run needs while it executes.
struct Scene<'s> {
    host: &'s EngineHandles,
    booked: &'s Booked,
    telling: Telling<'s>,
    cancel: CancellationToken,
    began: Instant,
    /// Excess of disk use for which the container was stopped, if that was the reason.
    exceeded: Cell<Option<Exceeded>>,
}

impl Scene<'_> {
    const fn order(&self) -> &RunRequest {
        &self.booked.order
    }

    /// Waits for a permit to provision and start a container. Permits are granted in order of arrival; a cancelled run
    /// stops waiting.
    async fn place_to_start(&self) -> Result<Option<SemaphorePermit<'_>>, Error> {
        tokio::select! {
            // The semaphore is never closed.
            place = self.host.starts.acquire() => Ok(place.ok()),
            () = self.cancel.cancelled() => Err(Error::Cancelled),
        }
    }

    /// Fails if the run is cancelled.
    fn go_on(&self) -> Result<(), Error> {
        if self.cancel.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// Executes the run that is `booked` and sends its events to `events`. A slow reader misses live pieces, never the end.
/// Returns when nothing of the run is left, or another worker has taken it over. Triggering `cancel` ends the run.
/// Dropping this future leaves the run as it is, for another worker to take over.
///
/// # Errors
/// The store's answer which shows that another worker has taken the run over and continues it.
pub async fn execute(
    host: &EngineHandles,
    booked: &Booked,
    events: &mpsc::Sender<AgentEvent>,
    cancel: &CancellationToken,
) -> Result<Finished, store::Error> {
    let (cancel, began) = (cancel.child_token(), Instant::now());
    let agent = &booked.order.wanted.agent;
    // Its gateway reports what a session says; what models write there is more than that.
    let stream = if agent.mode == Execution::Gateway { Stream::Progress } else { agent.stream };
    let telling = Telling::after(booked.past().told, events, (stream, agent.output));
    let scene = Scene { host, booked, telling, cancel, began, exceeded: Cell::new(None) };
    let finished = tokio::select! {
        finished = Box::pin(live(&scene)) => finished?,
        // From here on the new owner decides about everything of the run, also what is half created.
        lost = booked.keep(&scene.cancel) => return Err(lost),
    };
    announce(&finished, events).await;
    Ok(finished)
}

/// Executes the run as [`execute`] does, without a reader of its events: the end is stored.
pub async fn execute_unheard(
    host: &EngineHandles,
    booked: &Booked,
    cancel: &CancellationToken,
) -> Result<Finished, store::Error> {
    let (events, mut unheard) = mpsc::channel(UNHEARD);
    let execute = async {
        let events = events;
        Box::pin(execute(host, booked, &events, cancel)).await
    };
    let (finished, ()) = tokio::join!(execute, async { while unheard.recv().await.is_some() {} });
    finished
}

async fn live(scene: &Scene<'_>) -> Result<Finished, store::Error> {
    let mut things = scene.booked.past().things.clone();
    let (ended, ending) = match scene.booked.past().ending.clone() {
        // A previous worker has stored how the run ends.
        Some(ending) => (None, ending),
        None => Box::pin(end(scene, &mut things)).await,
    };
    scene.telling.enters(Phase::Settling);
    let usage = match settle(scene, &things, &ending).await {
        Ok(usage) => usage,
        Err(lost @ (store::Error::Fenced { .. } | store::Error::Unknown { .. })) => return Err(lost),
        Err(error) => {
            tracing::warn!(run = %scene.order().run_id, error = %report::chain(&error), "the run's end is not stored");
            None
        }
    };
    let Ending { exit_code, oom_seen, answer } = ending;
    let (from, start) = scene.booked.start().unzip();
    let duration = scene.began.elapsed();
    Ok(Finished { exit_code, ended, oom_seen, answer, usage, from, start, duration })
}

/// Runs the agent to its end, in the mode of its entry.
async fn end(scene: &Scene<'_>, things: &mut Things) -> (Option<Ended>, Ending) {
    match scene.order().wanted.agent.mode {
        Execution::Ephemeral => {
            let outcome = Box::pin(attempt(scene, things)).await;
            Box::pin(conclude(scene, outcome)).await
        }
        Execution::Gateway => {
            let answer = Box::pin(session::attempt(scene, things)).await;
            let answer = answer.unwrap_or_else(|error| Err(error.into()));
            (None, Ending { exit_code: None, oom_seen: None, answer })
        }
    }
}

/// Decides what the end of the agent means for the run.
async fn conclude(scene: &Scene<'_>, outcome: Result<Ended, Error>) -> (Option<Ended>, Ending) {
    match outcome {
        Ok(ended) => {
            let answer = match scene.exceeded.get() {
                Some(exceeded) => Err(Failure::new(RunErrorCode::ContainerFailed, exceeded.to_string())),
                None => judge(scene, &ended).await,
            };
            scene.telling.ended(&ended);
            let Ended { exit_code, oom_seen, .. } = ended;
            (Some(ended), Ending { exit_code, oom_seen: Some(oom_seen), answer })
        }
        Err(error) => (None, Ending::without_agent(error.into())),
    }
}

/// Returns the answer, or the reason why there is none. Asks the data plane how the last call ended only where the exit
/// does not decide it.
async fn judge(scene: &Scene<'_>, ended: &Ended) -> Result<String, Failure> {
    let judge = |last| verdict::container::judge(&scene.order().wanted.agent, ended, last);
    match judge(None) {
        Ok(answer) if !answer.is_empty() => Ok(answer),
        Err(failure) if ended.killed_by.is_some() || failure.code == RunErrorCode::OomKilled => Err(failure),
        _ => judge(calls::last(scene).await),
    }
}

/// Removes all resources and reads the usage. A step that is not stored counts as not done: the worker that takes the
/// run over repeats it.
async fn settle(scene: &Scene<'_>, things: &Things, ending: &Ending) -> Result<Option<Usage>, store::Error> {
    let booked = scene.booked;
    match (booked.state(), &ending.answer) {
        (State::Settling(_), _) => {}
        (State::Queued, Err(failure)) => {
            booked.step(Move::Withdraw(failure.clone()), []).await?;
            return Ok(Some(Usage::default()));
        }
        _ => booked.settle(ending.clone(), scene.telling.untold()).await?,
    }
    Point::SettleStored.reach();
    let removed = things::remove_all(scene, things).await;
    booked.step(Move::Finish(removed.usage), removed.changes).await?;
    Point::Finished.reach();
    Ok(removed.usage)
}
