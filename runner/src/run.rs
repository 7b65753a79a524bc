//! One run, from its grant to the removal of everything it needed.
//!
//! Steps, in this order: make the workspace, register at the data plane, make the container, run it; then
//! close the grant, remove container and workspace, and tell what was used. The second half happens on every
//! path, also after Ctrl-C and after a step that failed.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use platform_core::{
    control::{Register, RunView, TapEvent, Usage},
    event::{AgentEvent, Phase, RunErrorCode},
    grant::{CallLimits, Correlation, Listener, RunGrant, Tap},
    id::{AccountId, AgentId, InstallationId, RunId},
    limit::Millis,
    name::{env, path},
    token::UnixSeconds,
};
use platform_runtime::{
    report,
    settings::{Agent, Settings},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    data_plane::{self, DataPlane, Lines},
    sandbox::{
        Ended, Limits, Piece, SandboxSpec,
        docker::{self, Container, Docker},
    },
    verdict::{self, Failure},
    workspace::{self, Message, Workspace},
};

/// What a run's container may take to start and to end, beyond its own time.
const START_AND_END: Duration = Duration::from_secs(60);
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
    pub(crate) workspaces: PathBuf,
    pub(crate) installation: InstallationId,
}

impl Host {
    /// What `settings` say, on a Docker that answers.
    pub(crate) fn of(settings: &Settings, docker: Docker) -> Self {
        Self {
            data_plane: DataPlane::at(&settings.proxy.control_socket()),
            docker,
            workspaces: settings.sandbox.workspace_dir.clone(),
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
    registered: bool,
    workspace: Option<Workspace>,
    container: Option<Container>,
    start: Option<Duration>,
}

/// Runs `order` and tells `events` what happens meanwhile; a reader that is too slow misses live pieces,
/// never the end. Returns when nothing of the run is left. Not cancel safe: use `cancel`.
pub(crate) async fn execute(
    host: &Host,
    order: &Order,
    events: &mpsc::Sender<AgentEvent>,
    cancel: &CancellationToken,
) -> Finished {
    let began = Instant::now();
    let mut made = Made::default();
    let outcome = attempt(host, order, &mut made, &Scene { events, cancel, began }).await;
    tell(events, AgentEvent::Status { phase: Phase::Settling });
    let start = made.start;
    let usage = settle(host, order, made).await;
    let (ended, answer) = match outcome {
        Ok(ended) => {
            let answer = verdict::judge(&order.agent, &ended);
            (Some(ended), answer)
        }
        Err(error) => (None, Err(Failure { code: RunErrorCode::Internal, message: report::chain(&error) })),
    };
    let finished = Finished { ended, answer, usage, start, duration: began.elapsed() };
    announce(&finished, events).await;
    finished
}

/// Where a run plays.
struct Scene<'s> {
    events: &'s mpsc::Sender<AgentEvent>,
    cancel: &'s CancellationToken,
    began: Instant,
}

async fn attempt(host: &Host, order: &Order, made: &mut Made, scene: &Scene<'_>) -> Result<Ended, Error> {
    tell(scene.events, AgentEvent::Status { phase: Phase::Preparing });
    // First, because only one of two runs with the same id can make it: the other must not close this one's grant.
    let workspace =
        made.workspace.insert(Workspace::create(&host.workspaces, &order.run_id, &order.messages)?);
    let registered = host.data_plane.register(&Register { grant: grant(order), socket_dir: None }).await;
    // An answer that was lost may have been a yes.
    let refused =
        matches!(registered, Err(data_plane::Error::Refused { .. } | data_plane::Error::NotRunning { .. }));
    made.registered = !refused;
    let unexpected = || data_plane::Error::Unexpected("a run without a socket of its own".to_owned());
    let socket = registered?.socket.ok_or_else(unexpected)?;
    let tap = host.data_plane.tap(&order.run_id).await?;
    let spec = spec(host, order, workspace, socket.path);
    tell(scene.events, AgentEvent::Status { phase: Phase::Starting });
    let container = made.container.insert(host.docker.create(&spec).await?);
    let (pieces, output) = mpsc::channel(BACKLOG);
    tell(scene.events, AgentEvent::Status { phase: Phase::Running });
    made.start = Some(scene.began.elapsed());
    let relay = relay(tap, output, scene.events);
    let running = container.run(spec.limits, pieces, scene.cancel);
    tokio::pin!(relay, running);
    tokio::select! {
        ended = &mut running => {
            drop(tokio::time::timeout(TAP_GRACE, relay).await);
            Ok(ended?)
        }
        () = &mut relay => Ok(running.await?),
    }
}

fn grant(order: &Order) -> RunGrant {
    RunGrant {
        run_id: order.run_id.clone(),
        attempt: 0,
        account: order.account.clone(),
        graph: order.agent_id.clone(),
        correlation: order.correlation.clone(),
        listener: Listener::default(),
        limits: CallLimits {
            output_tokens: order.agent.output_tokens_per_call,
            times: order.agent.times,
            ..CallLimits::default()
        },
        budget: order.agent.budget,
        expires: Some(end(order.agent.runtime)),
        models: Some(order.agent.models.clone()).filter(|models| !models.is_empty()),
        capabilities: order.agent.capabilities.iter().copied().collect(),
        tap: Tap::Text,
    }
}

/// When a run's time is over that starts now. Its container is stopped on time; this ends the grant if nobody does that.
fn end(runtime: Millis) -> UnixSeconds {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixSeconds((now + runtime.duration() + START_AND_END).as_secs())
}

fn spec(host: &Host, order: &Order, workspace: &Workspace, socket_dir: PathBuf) -> SandboxSpec {
    let Order { agent, run_id, .. } = order;
    let environment = [
        (env::OPENAI_API_BASE, path::API_BASE.to_owned()),
        (env::RUN_ID, run_id.to_string()),
        (env::COGNI_MODEL, order.model.clone()),
        (env::LLM_PROXY_SOCKET, path::SOCKET.to_owned()),
    ];
    SandboxSpec {
        name: format!("sluice-{}-{run_id}", host.installation),
        image: agent.image.clone(),
        argv: agent.argv.clone(),
        environment: BTreeMap::from(environment),
        labels: docker::labels(host.installation.as_str(), run_id.as_str(), order.agent_id.as_str()),
        workspace: workspace.path().to_owned(),
        socket_dir,
        limits: Limits {
            runtime: agent.runtime,
            memory: agent.memory,
            pids: agent.pids,
            milli_cpu: agent.milli_cpu,
            output: agent.output,
        },
    }
}

/// Passes on what the container prints and what the data plane sees stream by, until both have ended.
async fn relay(mut tap: Lines, mut output: mpsc::Receiver<Piece>, events: &mpsc::Sender<AgentEvent>) {
    let from_tap = async {
        while let Ok(Some(line)) = tap.next().await {
            match serde_json::from_slice(line) {
                Ok(event) => streamed(event).into_iter().for_each(|event| tell(events, event)),
                Err(error) => tracing::debug!(%error, "a tap event that is not in the protocol"),
            }
        }
    };
    let from_container = async {
        while let Some(Piece { stream, text }) = output.recv().await {
            tell(events, AgentEvent::Log { stream, text });
        }
    };
    tokio::join!(from_tap, from_container);
}

fn streamed(event: TapEvent) -> Option<AgentEvent> {
    match event {
        TapEvent::Text { delta, .. } => Some(AgentEvent::TextDelta { delta }),
        TapEvent::Tool { name, .. } => Some(AgentEvent::Tool { name }),
        TapEvent::Missed { count } => Some(AgentEvent::Missed { count }),
        // The run's own report sums them up.
        TapEvent::Ended { .. } => None,
    }
}

/// Removes everything and reads what was used. A step that fails is logged and does not stop the others.
async fn settle(host: &Host, order: &Order, made: Made) -> Usage {
    if let Some(container) = made.container {
        container.remove().await;
    }
    let closed = if made.registered { Some(host.data_plane.close(&order.run_id, DRAIN).await) } else { None };
    if let Some(workspace) = made.workspace {
        workspace.remove();
    }
    match closed {
        Some(Ok(RunView { usage, .. })) => usage,
        Some(Err(error)) => {
            tracing::warn!(run = %order.run_id, error = %report::chain(&error), "the run's grant stays open");
            Usage::default()
        }
        None => Usage::default(),
    }
}

/// The run's last events. They wait for their reader, who by now can hold up nothing else.
async fn announce(finished: &Finished, events: &mpsc::Sender<AgentEvent>) {
    let Usage { calls, tokens, .. } = finished.usage;
    let (last, end) = match &finished.answer {
        Ok(content) => (Some(AgentEvent::AssistantFinal { content: content.clone() }), AgentEvent::Done),
        Err(Failure { code, message }) => (None, AgentEvent::Error { code: *code, message: message.clone() }),
    };
    let usage = Some(AgentEvent::UsageReport { calls, tokens });
    for event in [last, usage, Some(end)].into_iter().flatten() {
        // A reader that has left does not want to know.
        drop(events.send(event).await);
    }
}

/// Tells a live event, unless the reader is too far behind.
fn tell(events: &mpsc::Sender<AgentEvent>, event: AgentEvent) {
    drop(events.try_send(event));
}
