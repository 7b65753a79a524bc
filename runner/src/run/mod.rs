//! One run, from its row to the removal of everything it needed.
//!
//! Steps, in this order: store the run; make the workspace, register at the data plane; make the container; run it;
//! then close the grant, remove container and workspace, and tell what was used. Each is a move of `lifecycle` that is
//! stored before it is made, with a row for whatever it is about to make. The second half happens on every path, also
//! after Ctrl-C and after a step that failed. Whoever gets a run that somebody else has left goes on where that one was:
//! all that is known of a run is in its rows.

mod admission;
mod attempt;
mod booked;
mod calls;
mod execution;
mod making;
mod needs;
mod order;
mod plan;
mod relay;
mod session;
mod telling;
mod things;

use std::{
    cell::Cell,
    sync::Arc,
    time::{Duration, Instant},
};

use gateway_bridge::InvalidSession;
use platform_core::{
    control::Usage,
    event::{AgentEvent, Phase, RunErrorCode},
    id::InstallationId,
    limit::Millis,
};
use platform_runtime::{
    report,
    settings::{Accounts, Execution, Settings, Stream},
};
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};
use tokio_util::sync::CancellationToken;

use self::{attempt::attempt, relay::announce, telling::Telling, things::Things};
pub(crate) use self::{
    booked::{Booked, Error as BookingError, RENEWALS, now, sure_until},
    execution::Observer,
    order::{Keep, Order, Subject, Wanted},
};
use crate::{
    away::Away,
    data_plane::{self, DataPlane},
    failpoint::Point,
    gateway::{self, Links, attribution::Unattributable},
    lifecycle::{Detail, Ending, Failure, Move, State},
    sandbox::{
        Ended,
        docker::{self, Docker},
    },
    store::{self, Record, Store, Worker},
    verdict,
    workspace::{self, Exceeded, Workspaces},
};

/// Events of a run that nobody hears.
const UNHEARD: usize = 16;

/// What a run needs from its surroundings.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    pub(crate) data_plane: DataPlane,
    pub(crate) docker: Docker,
    pub(crate) store: Store,
    pub(crate) worker: Worker,
    /// How long after this process was last heard of its runs are another's.
    pub(crate) lease: Millis,
    pub(crate) workspaces: Workspaces,
    pub(crate) installation: InstallationId,
    /// What accounts may ask for.
    pub(crate) accounts: Accounts,
    /// Where runs may be sessions.
    pub(crate) gateways: Arc<Links>,
    /// Places for runs that are on their way to their container's start. Docker starts many at once more slowly than one
    /// after the other.
    pub(crate) starts: Arc<Semaphore>,
    pub(crate) observer: Observer,
}

impl Host {
    /// What `settings` say, on a Docker that answers, a store that is open and a place for workspaces.
    pub(crate) fn of(settings: &Settings, docker: Docker, store: Store, workspaces: Workspaces) -> Self {
        Self {
            data_plane: DataPlane::at(&settings.proxy.control_socket()),
            docker,
            store,
            worker: Worker::this_process(),
            lease: settings.worker.lease,
            workspaces,
            installation: settings.sandbox.installation.clone(),
            accounts: settings.accounts.clone(),
            gateways: Arc::new(Links::of(settings)),
            starts: Arc::new(Semaphore::new(settings.worker.starts as usize)),
            observer: Observer::default(),
        }
    }
}

/// What became of a run.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Exit code of the agent's process; absent if it never ran.
    pub(crate) exit_code: Option<i64>,
    /// How the container ended; absent if it never ran, or somebody else saw it.
    pub(crate) ended: Option<Ended>,
    /// Whether a process of it was killed for want of memory; absent if nobody could tell.
    pub(crate) oom_seen: Option<bool>,
    /// The answer, or why there is none.
    pub(crate) answer: Result<String, Failure>,
    /// What the run used, as the data plane counted it; absent if it could not be asked.
    pub(crate) usage: Option<Usage>,
    /// Where its container came from; absent if none was started here.
    pub(crate) from: Option<Start>,
    /// From the order to the start of the container.
    pub(crate) start: Option<Duration>,
    /// From the order to the end.
    pub(crate) duration: Duration,
}

impl Finished {
    /// A run that was lived by somebody else, once it has ended.
    pub(crate) fn elsewhere(record: Record) -> Self {
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

/// Where a run has its container from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// It was made for it.
    Cold,
    /// It waited for a run.
    Warm,
}

impl Start {
    /// Its name, as it is shown.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
        }
    }
}

/// Why the agent did not come to its end.
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
    /// Whether the data plane has said that what it has under the run's id is not ours.
    fn is_refusal(&self) -> bool {
        match self {
            Self::Another => true,
            Self::DataPlane(error) => error.is_refusal(),
            _ => false,
        }
    }
}

impl Error {
    /// What whoever ordered the run is told: nothing of paths, and nothing that other programs said.
    fn told(&self) -> (RunErrorCode, String) {
        use RunErrorCode as Code;
        let (code, message) = match self {
            Self::Cancelled => (Code::Cancelled, "cancelled"),
            Self::Gone => (Code::ContainerLost, "somebody has removed the container while the agent ran"),
            Self::Another => (Code::DataPlaneFailed, "another run of this id is open at the data plane"),
            Self::Gateway(error) if error.is_of_the_order() => {
                let code = if error.is_away() { Code::GatewayAway } else { Code::GatewayFailed };
                return (code, report::chain(error));
            }
            Self::Gateway(error) if error.is_away() => (Code::GatewayAway, "its gateway did not answer"),
            Self::Gateway(_) => (Code::GatewayFailed, "its gateway cannot be used"),
            Self::Store(_) => (Code::StoreFailed, "what the run does could not be stored"),
            Self::DataPlane(error) if error.is_away() => {
                (Code::DataPlaneAway, "the data plane did not answer")
            }
            Self::DataPlane(_) => (Code::DataPlaneFailed, "the data plane refused the run"),
            Self::Workspace(workspace::Error::NoRoom { .. }) => {
                (Code::NoRoom, "there was no room for its workspace")
            }
            Self::Workspace(_) => (Code::WorkspaceFailed, "its workspace could not be made or kept"),
            Self::Docker(error) if error.is_away() => (Code::DockerAway, "Docker did not answer"),
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

/// Where a run plays.
struct Scene<'s> {
    host: &'s Host,
    booked: &'s Booked,
    telling: Telling<'s>,
    cancel: CancellationToken,
    began: Instant,
    /// Why its container was stopped, if that was for the sake of the disk.
    exceeded: Cell<Option<Exceeded>>,
}

impl Scene<'_> {
    const fn order(&self) -> &Order {
        &self.booked.order
    }

    /// A place among the runs that are made ready and started, for as long as it is kept. Whoever is first here is first
    /// served; who is cancelled waits no longer.
    async fn place_to_start(&self) -> Result<Option<SemaphorePermit<'_>>, Error> {
        tokio::select! {
            // Nobody closes it.
            place = self.host.starts.acquire() => Ok(place.ok()),
            () = self.cancel.cancelled() => Err(Error::Cancelled),
        }
    }

    /// Whether nobody wants it to stop.
    fn go_on(&self) -> Result<(), Error> {
        if self.cancel.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// Lives the run that is `booked`, and tells `events` what happens meanwhile; a reader that is too slow misses live pieces,
/// never the end. Returns when nothing of the run is left, or somebody else has taken it over. To end the run, trigger
/// `cancel`; whoever drops this leaves the run as it is, for somebody to take over.
///
/// # Errors
/// How it was found out that somebody else has taken the run over, and goes on with it.
pub(crate) async fn execute(
    host: &Host,
    booked: &Booked,
    events: &mpsc::Sender<AgentEvent>,
    cancel: &CancellationToken,
) -> Result<Finished, store::Error> {
    let (cancel, began) = (cancel.child_token(), Instant::now());
    let agent = &booked.order.wanted.agent;
    // What a session says is told by its gateway; what models write there is more than that.
    let stream = if agent.mode == Execution::Gateway { Stream::Progress } else { agent.stream };
    let telling = Telling::after(booked.past().told, events, (stream, agent.output));
    let scene = Scene { host, booked, telling, cancel, began, exceeded: Cell::new(None) };
    let finished = tokio::select! {
        finished = Box::pin(live(&scene)) => finished?,
        // From here on everything of the run is another's to decide, also what is half made.
        lost = booked.keep(&scene.cancel) => return Err(lost),
    };
    announce(&finished, events).await;
    Ok(finished)
}

/// The same where nobody hears what happens meanwhile: how it ends is stored.
pub(crate) async fn execute_unheard(
    host: &Host,
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
        // It is decided how it ends.
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

/// Has the agent come to its end, in the way its entry says.
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

/// What the end of the agent means for the run.
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

/// The answer, or why there is none. Only where that is open the data plane is asked how the run's last call ended.
async fn judge(scene: &Scene<'_>, ended: &Ended) -> Result<String, Failure> {
    let judge = |last| verdict::container::judge(&scene.order().wanted.agent, ended, last);
    match judge(None) {
        Ok(answer) if !answer.is_empty() => Ok(answer),
        Err(failure) if ended.killed_by.is_some() || failure.code == RunErrorCode::OomKilled => Err(failure),
        _ => judge(calls::last(scene).await),
    }
}

/// Removes everything and reads what was used. What is not stored is not done: whoever takes the run over does it then.
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
