//! What an order comes to: a grant, a container, a row.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use platform_core::{
    grant::{CallLimits, Listener, RunGrant, Tap},
    limit::Millis,
    name::{env, path},
    token::UnixSeconds,
};
use serde_json::json;

use super::{Host, Order};
use crate::{
    sandbox::{Limits, SandboxSpec, docker},
    store::NewRun,
};

/// What a run's container may take to start and to end, beyond its own time.
const START_AND_END: Duration = Duration::from_secs(60);

/// The order as it is stored. Whatever changes what is run is in it, so that the same id never stands for two things.
pub(super) fn row(order: &Order) -> NewRun {
    let wanted = json!({
        "model": order.model,
        "image": order.agent.image,
        "argv": order.agent.argv,
        "budget": order.agent.budget,
        "messages": order.messages,
    });
    NewRun {
        run: order.run_id.clone(),
        account: order.account.clone(),
        agent: order.agent_id.clone(),
        correlation: order.correlation.clone(),
        wanted: wanted.to_string(),
    }
}

/// Name of the run's container.
pub(super) fn container(host: &Host, order: &Order) -> String {
    format!("sluice-{}-{}", host.installation, order.run_id)
}

pub(super) fn grant(order: &Order) -> RunGrant {
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

pub(super) fn spec(host: &Host, order: &Order, workspace: &Path, socket_dir: PathBuf) -> SandboxSpec {
    let Order { agent, run_id, .. } = order;
    let environment = [
        (env::OPENAI_API_BASE, path::API_BASE.to_owned()),
        (env::RUN_ID, run_id.to_string()),
        (env::COGNI_MODEL, order.model.clone()),
        (env::LLM_PROXY_SOCKET, path::SOCKET.to_owned()),
    ];
    SandboxSpec {
        name: container(host, order),
        image: agent.image.clone(),
        argv: agent.argv.clone(),
        environment: BTreeMap::from(environment),
        labels: docker::labels(host.installation.as_str(), run_id.as_str(), order.agent_id.as_str()),
        workspace: workspace.to_owned(),
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
