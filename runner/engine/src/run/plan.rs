//! Derives the grant and the container of a request.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use platform_core::{
    grant::{CallLimits, Listener, RunGrant, Tap},
    id::{RunId, WorkspaceId},
    limit::Millis,
    name::{env, path},
    start::{MOST_BYTES, Start},
    token::UnixSeconds,
};
use platform_runtime::settings::Filling;
use runner_docker::{self as docker, First, Limits, Program, SandboxSpec};

use super::Scene;
use crate::{
    context::EngineHandles,
    request::{RunRequest, RunSpec},
};

/// Time that a run may take to start and to end beyond its own time, a take-over or two included.
const START_AND_END: Duration = Duration::from_secs(600);

/// Returns the name of the container that is created for a run in `epoch`. Each epoch has its own name, so that no
/// worker takes one for the other.
fn container(host: &EngineHandles, run: &RunId, epoch: u64) -> String {
    format!("sluice-{}-{run}.{epoch}", host.installation)
}

/// Returns the grant of `order`, with calls that come in at `listener`.
pub(super) fn grant(order: &RunRequest, listener: Listener) -> RunGrant {
    let agent = &order.wanted.agent;
    RunGrant {
        run_id: order.run_id.clone(),
        attempt: 0,
        account: order.account.clone(),
        graph: order.agent_id.clone(),
        correlation: order.correlation.clone(),
        listener,
        limits: CallLimits {
            output_tokens: agent.output_tokens_per_call,
            times: agent.times,
            ..CallLimits::default()
        },
        budget: agent.budget,
        expires: Some(end(agent.runtime)),
        models: Some(agent.models.clone()).filter(|models| !models.is_empty()),
        tools: agent.tools.clone(),
        capabilities: agent.capabilities.iter().copied().collect(),
        tap: Tap::Text,
    }
}

/// Returns the time at which a run that starts now is over. Its container is stopped on time; this ends the grant if no
/// worker does that.
fn end(runtime: Millis) -> UnixSeconds {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixSeconds((now + runtime.duration() + START_AND_END).as_secs())
}

/// Parts of a container that exist before it is created.
pub(super) struct Around<'p> {
    pub(super) id: &'p WorkspaceId,
    pub(super) workspace: &'p Path,
    pub(super) socket_dir: PathBuf,
    /// Id of the image.
    pub(super) image: String,
}

pub(super) fn spec(scene: &Scene<'_>, around: Around<'_>) -> SandboxSpec {
    let Scene { host, booked, .. } = *scene;
    let RunRequest { run_id, agent_id, wanted, .. } = &booked.order;
    let Around { id, workspace, socket_dir, image } = around;
    let labels = [host.installation.as_str(), run_id.as_str(), agent_id.as_str(), id.as_str()];
    SandboxSpec {
        name: container(host, run_id, booked.epoch()),
        image,
        first: First::Run(program(scene.order())),
        volumes: wanted.agent.volumes.clone(),
        labels: docker::labels(labels, booked.epoch()),
        workspace: workspace.to_owned(),
        socket_dir,
        limits: Limits::of(&wanted.agent),
    }
}

/// Returns the start file of a warm container; `None` if the request does not fit into one.
pub(super) fn start(order: &RunRequest) -> Option<Start> {
    let Program { argv, environment } = program(order);
    let start = Start::new(argv, environment, path::WORKSPACE.to_owned()).ok()?;
    let fits = serde_json::to_vec(&start).is_ok_and(|text| text.len() as u64 <= MOST_BYTES);
    fits.then_some(start)
}

fn program(order: &RunRequest) -> Program {
    let RunRequest { run_id, wanted: RunSpec { agent, model, .. }, .. } = order;
    let filling = Filling { run_id, model };
    let mut environment: BTreeMap<_, _> =
        agent.environment.iter().map(|(name, value)| (name.clone(), value.fill(filling))).collect();
    let own = [
        (env::OPENAI_API_BASE, path::API_BASE.to_owned()),
        (env::RUN_ID, run_id.to_string()),
        (env::COGNI_MODEL, model.clone()),
        (env::LLM_PROXY_SOCKET, path::SOCKET.to_owned()),
    ];
    environment.extend(own.map(|(name, value)| (name.to_owned(), value)));
    Program { argv: agent.argv.iter().map(|argument| argument.fill(filling)).collect(), environment }
}
