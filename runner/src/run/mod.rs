//! One run, from its row to the removal of everything it needed.
//!
//! Steps, in this order: store the run; make the workspace, register at the data plane; make the container; run it;
//! then close the grant, remove container and workspace, and tell what was used. Each is a move of `lifecycle` that is
//! stored before it is made, with a row for whatever it is about to make. The second half happens on every path, also
//! after Ctrl-C and after a step that failed; unless somebody else has taken the run over, who then does it.

mod booked;
mod plan;
mod relay;

use std::time::{Duration, Instant};

use platform_core::{
    control::{Register, RunView, Usage},
    event::{AgentEvent, Phase, RunErrorCode},
    grant::Correlation,
    id::{AccountId, AgentId, InstallationId, RunId, SocketDirName, WorkspaceId},
    limit::Millis,
};
use platform_runtime::{
    random, report,
    settings::{Agent, Settings},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) use self::booked::{Booked, Error as BookingError};
use self::relay::{announce, relay, tell};
use crate::{
    data_plane::{self, DataPlane},
    lifecycle::{Ending, Failure, Move},
    sandbox::{
        Ended,
        docker::{self, Container, Docker},
    },
    store::{self, Change, Kind, Stage, Step, Store, Worker},
    verdict,
    workspace::{self, Exceeded, Message, Workspaces},
};

/// How long calls may go on once their container is gone. Nobody is left to read their answers.
const DRAIN: Millis = Millis(100);
/// Events that wait for a slow reader before live ones are left out.
const BACKLOG: usize = 256;
/// How long deltas may still come after the container's end.
const TAP_GRACE: Duration = Duration::from_millis(200);

/// What a run needs from its surroundings.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    pub(crate) data_plane: DataPlane,
    pub(crate) docker: Docker,
    pub(crate) store: Store,
    pub(crate) worker: Worker,
    pub(crate) workspaces: Workspaces,
    pub(crate) installation: InstallationId,
}

impl Host {
    /// What `settings` say, on a Docker that answers, a store that is open and a place for workspaces.
    pub(crate) fn of(settings: &Settings, docker: Docker, store: Store, workspaces: Workspaces) -> Self {
        Self {
            data_plane: DataPlane::at(&settings.proxy.control_socket()),
            docker,
            store,
            worker: Worker::this_process(),
            workspaces,
            installation: settings.sandbox.installation.clone(),
        }
    }
}

/// What is to be run, for whom.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) run_id: RunId,
    pub(crate) account: AccountId,
    pub(crate) correlation: Correlation,
    pub(crate) agent_id: AgentId,
    pub(crate) agent: Agent,
    /// Model the agent is told to ask for.
    pub(crate) model: String,
    pub(crate) messages: Vec<Message>,
}

/// What became of it.
#[derive(Debug)]
pub(crate) struct Finished {
    /// How the container ended; absent if it never ran.
    pub(crate) ended: Option<Ended>,
    /// The answer, or why there is none.
    pub(crate) answer: Result<String, Failure>,
    /// What the run used, as the data plane counted it.
    pub(crate) usage: Usage,
    /// From the order to the start of the container.
    pub(crate) start: Option<Duration>,
    /// From the order to the end.
    pub(crate) duration: Duration,
}

/// Why a step before the agent's own failed.
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
}

/// What has to be removed again, as far as it was made.
#[derive(Debug, Default)]
struct Made {
    /// What may be there by its rows.
    wanted: Vec<Change>,
    registered: bool,
    workspace: Option<WorkspaceId>,
    /// Why its container was stopped, if that was for the sake of the disk.
    exceeded: Option<Exceeded>,
    container: Option<Container>,
    start: Option<Duration>,
}

impl Made {
    /// What was wanted so far, as it is from now on.
    fn all(&self, stage: Stage) -> Vec<Change> {
        self.wanted.iter().map(|thing| thing.to(stage)).collect()
    }
}

/// Where a run plays.
struct Scene<'s> {
    host: &'s Host,
    order: &'s Order,
    booked: &'s Booked,
    events: &'s mpsc::Sender<AgentEvent>,
    cancel: &'s CancellationToken,
    began: Instant,
}

/// Lives the run that was `booked` for `order`, and tells `events` what happens meanwhile; a reader that is too slow
/// misses live pieces, never the end. Returns when nothing of the run is left, or somebody else has taken it over. Not
/// cancel safe: use `cancel`.
pub(crate) async fn execute(
    host: &Host,
    order: &Order,
    booked: &Booked,
    events: &mpsc::Sender<AgentEvent>,
    cancel: &CancellationToken,
) -> Finished {
    let scene = Scene { host, order, booked, events, cancel, began: Instant::now() };
    let finished = tokio::select! {
        finished = live(&scene) => finished,
        // From here on everything of the run is another's to decide, also what is half made.
        lost = booked.keep() => Finished {
            ended: None,
            answer: Err(internal(&lost)),
            usage: Usage::default(),
            start: None,
            duration: scene.began.elapsed(),
        },
    };
    announce(&finished, events).await;
    finished
}

async fn live(scene: &Scene<'_>) -> Finished {
    let mut made = Made::default();
    let outcome = attempt(scene, &mut made).await;
    tell(scene.events, AgentEvent::Status { phase: Phase::Settling });
    let (ended, answer) = match outcome {
        Ok(ended) => {
            let answer = match made.exceeded {
                Some(exceeded) => {
                    Err(Failure { code: RunErrorCode::ContainerFailed, message: exceeded.to_string() })
                }
                None => verdict::judge(&scene.order.agent, &ended),
            };
            (Some(ended), answer)
        }
        Err(error) => (None, Err(internal(&error))),
    };
    let ending = Ending { exit_code: ended.as_ref().and_then(|ended| ended.exit_code), answer };
    let start = made.start;
    let usage = settle(scene, made, &ending).await;
    Finished { ended, answer: ending.answer, usage, start, duration: scene.began.elapsed() }
}

fn internal(error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure { code: RunErrorCode::Internal, message: report::chain(error) }
}

async fn attempt(scene: &Scene<'_>, made: &mut Made) -> Result<Ended, Error> {
    let Scene { host, order, booked, events, .. } = *scene;
    tell(events, AgentEvent::Status { phase: Phase::Preparing });
    let socket_dir = SocketDirName::from_random(random::bits());
    let id = Workspaces::new_id();
    let things = [
        Change::wanted(Kind::Workspace, id.as_str()),
        Change::wanted(Kind::Grant, order.run_id.as_str()),
        Change::wanted(Kind::Listener, socket_dir.as_str()),
    ];
    booked.step(Step::from(Move::Prepare).with(things.clone())).await?;
    made.wanted.extend(things);
    let id = made.workspace.insert(id);
    let workspace = host.workspaces.create(id, &order.messages).await?;
    let register = Register { grant: plan::grant(order), socket_dir: Some(socket_dir) };
    let registered = host.data_plane.register(&register).await;
    // An answer that was lost may have been a yes.
    let refused =
        matches!(registered, Err(data_plane::Error::Refused { .. } | data_plane::Error::NotRunning { .. }));
    made.registered = !refused;
    let unexpected = || data_plane::Error::Unexpected("a run without a socket of its own".to_owned());
    let socket = registered?.socket.ok_or_else(unexpected)?;
    let tap = host.data_plane.tap(&order.run_id).await?;
    let spec = plan::spec(host, order, workspace.path(), socket.path);
    tell(events, AgentEvent::Status { phase: Phase::Starting });
    let container = Change::wanted(Kind::Container, spec.name.as_str());
    booked.step(Step::from(Move::Start).with(made.all(Stage::Made)).with([container.clone()])).await?;
    made.wanted.push(container.clone());
    let running = made.container.insert(host.docker.create(&spec).await?);
    booked.step(Step::from(Move::Run).with([container.to(Stage::Made)])).await?;
    let (pieces, output) = mpsc::channel(BACKLOG);
    tell(events, AgentEvent::Status { phase: Phase::Running });
    made.start = Some(scene.began.elapsed());
    let relay = relay(tap, output, events);
    let stop = scene.cancel.child_token();
    let running = running.run(spec.limits, pieces, &stop);
    let bounded = async {
        tokio::pin!(running);
        tokio::select! {
            ended = &mut running => ended,
            exceeded = workspace.watch() => {
                made.exceeded = Some(exceeded);
                stop.cancel();
                running.await
            }
        }
    };
    tokio::pin!(relay, bounded);
    tokio::select! {
        ended = &mut bounded => {
            drop(tokio::time::timeout(TAP_GRACE, relay).await);
            Ok(ended?)
        }
        () = &mut relay => Ok(bounded.await?),
    }
}

/// Removes everything and reads what was used. A step that fails is logged and does not stop the others, but for one:
/// whoever has taken the run over decides about what was made.
async fn settle(scene: &Scene<'_>, made: Made, ending: &Ending) -> Usage {
    let run = &scene.order.run_id;
    let unstored = |error: &store::Error| {
        tracing::warn!(%run, error = %report::chain(error), "the run's end is not stored");
    };
    let began = match &ending.answer {
        Err(failure) if made.wanted.is_empty() => Move::Withdraw(failure.clone()),
        _ => Move::Settle(ending.clone()),
    };
    match scene.booked.step(began).await {
        Ok(()) if made.wanted.is_empty() => return Usage::default(),
        Ok(()) => {}
        Err(error) => {
            unstored(&error);
            if matches!(error, store::Error::Fenced { .. }) {
                return Usage::default();
            }
        }
    }
    let (usage, gone) = remove(scene, made).await;
    if let Err(error) = scene.booked.step(Step::from(Move::Finish(usage)).with(gone)).await {
        unstored(&error);
    }
    usage
}

/// Removes what was made; returns what the run used and what is gone.
async fn remove(scene: &Scene<'_>, made: Made) -> (Usage, Vec<Change>) {
    let Scene { host, order, .. } = *scene;
    let mut gone = made.all(Stage::Removed);
    let mut stays = |kinds: &[Kind]| gone.retain(|thing| !kinds.contains(&thing.kind));
    if let Some(container) = made.container
        && !container.remove().await
    {
        stays(&[Kind::Container]);
    }
    let mut usage = Usage::default();
    if made.registered {
        match host.data_plane.close(&order.run_id, DRAIN).await {
            Ok(RunView { usage: used, .. }) => usage = used,
            Err(error) => {
                stays(&[Kind::Grant, Kind::Listener]);
                tracing::warn!(run = %order.run_id, error = %report::chain(&error), "the run's grant stays open");
            }
        }
    }
    if let Some(workspace) = made.workspace
        && let Err(error) = host.workspaces.remove(&workspace).await
    {
        stays(&[Kind::Workspace]);
        tracing::warn!(%workspace, error = %report::chain(&error), "workspace stays behind");
    }
    (usage, gone)
}
