//! Checks everything that a run needs, for `sluice doctor`, and reports a fix for each broken part.

mod check;
mod connections;
mod dashboard;
mod data_plane;
mod obstacles;
mod relay;
mod tools;
mod upstream;

use std::path::Path;

use platform_runtime::{report, settings::Settings};
use runner_control_client::DataPlane;
use runner_docker::{self as docker, Docker};
use runner_engine::{
    agents::{self, AgentStatus, BlockReason, Probes},
    context::EngineHandles,
    run::{self, LeasedRun},
    run_request::RunRequest,
    worker::Presence,
};
use runner_gateways::managed;
use runner_store::{self as store, Store};
use runner_workspace::{self as workspace, Workspaces};
use tokio_util::sync::CancellationToken;

pub(crate) use self::{
    check::{Check, Verdict},
    connections::connections_check,
    dashboard::dashboard_check,
    obstacles::obstacles,
    relay::{credential_check, relay_check},
    tools::tools_check,
    upstream::{NO_DATABASE, OR_DATABASE, UpstreamProblem, in_words as upstream_in_words},
};

/// Account of the trial runs. Lists leave it out unless it is asked for.
pub(crate) const ACCOUNT: &str = "doctor";

const DOCKER: &str = "docker";
const AGENTS: &str = "agents";
const STORE: &str = "store";
const WORKSPACES: &str = "workspaces";
const PROXY: &str = "proxy";
const UPSTREAM: &str = "upstream";
const GATEWAYS: &str = "gateways";
const WORKER: &str = "worker";
const SOCKET: &str = "socket in a container";
const PRIVATE_FILES: &str = "private files";
const UNOPENED: &str = "runs that are not open";

/// Runs all checks. Executes the run `probe` to find out whether a container reaches its socket.
pub(crate) async fn run_checks(
    settings: &Settings,
    store: Result<Store, store::Error>,
    probe: RunRequest,
    cancel: &CancellationToken,
) -> Vec<Check> {
    let proxy = DataPlane::at(&settings.proxy.control_socket());
    let docker = Docker::connect(&settings.sandbox.docker_socket).await;
    let mut checks = vec![docker_check(&docker).await];
    let docker = docker.ok();
    let statuses = match &docker {
        Some(_) => {
            let facts = Probes::of(settings).probe(&settings.agents).await;
            agents::judge(&settings.agents, settings.upstream.default_model.as_deref(), &facts)
        }
        None => Vec::new(),
    };
    checks.push(if docker.is_some() { agents_check(&statuses) } else { Check::unknown(AGENTS, DOCKER) });
    // Faults of other agents, and models that the upstream lacks, do not keep the probe from running.
    let is_probe = |agent: &&AgentStatus| agent.id == probe.agent_id;
    let probe_can_run = statuses
        .iter()
        .find(is_probe)
        .is_some_and(|agent| !agent.block_reasons.iter().any(BlockReason::is_on_docker));
    checks.push(store_check(&store));
    let workspaces = Workspaces::open(&settings.sandbox);
    checks.push(workspaces_check(workspaces.as_ref()));
    let (proxy_check, unopened) = data_plane::proxy_checks(&proxy).await;
    let proxy_is_ok = proxy_check.is_ok();
    checks.push(proxy_check);
    checks.push(if proxy_is_ok {
        data_plane::upstream_check(&proxy, settings.upstream.key_file.as_deref()).await
    } else {
        Check::unknown(UPSTREAM, PROXY)
    });
    // The probe needs the first five parts: Docker, agents, store, workspaces and proxy.
    let is_obstacle = |check: &&Check| !(check.is_ok() || check.name == AGENTS && probe_can_run);
    let obstacle = checks.iter().take(5).find(is_obstacle).map(|check| check.name);
    checks.push(match docker.zip(store.ok()).zip(workspaces.ok()) {
        Some(((docker, store), workspaces)) if obstacle.is_none() => {
            socket_check(EngineHandles::of(settings, docker, store, workspaces), probe, cancel).await
        }
        _ => Check::unknown(SOCKET, obstacle.unwrap_or(DOCKER)),
    });
    checks.push(worker_check(settings));
    checks.extend(gateways_check(settings).await);
    checks.extend(unopened);
    checks
}

/// Says whether ordered runs are executed. Without a worker they wait, and `sluice run` executes its own.
fn worker_check(settings: &Settings) -> Check {
    let found = if Presence::is_shown(&settings.sandbox.state_dir) {
        "executes runs of the API, of gateways and of `sluice run --detach`"
    } else {
        "none: runs of the API, of gateways and of `sluice run --detach` wait until `sluice up` runs"
    };
    Check::ok(WORKER, found.to_owned())
}

/// Checks that other users cannot change the configuration in `file`, and can neither change nor read state and
/// secrets. Checks also that agents cannot write to the directories of sockets. Returns `None` if all is well.
pub(crate) fn private_files_check(settings: &Settings, file: &Path) -> Option<Check> {
    let mut exposed = settings.exposures(Some(file));
    exposed.extend(settings.exposed_sockets());
    let found: Vec<_> = exposed.iter().map(ToString::to_string).collect();
    let fix = "run the commands in backquotes, and replace secrets that others may have read";
    (!found.is_empty()).then(|| Check::broken(PRIVATE_FILES, found.join("; "), fix))
}

/// Checks that every configured gateway is up. `sluice gateway check` reports everything else about a gateway.
async fn gateways_check(settings: &Settings) -> Option<Check> {
    let mut found = Vec::new();
    let mut down = Vec::new();
    for (id, gateway) in &settings.gateways {
        match managed::state(settings, id, gateway).await {
            Ok(state) => {
                found.push(format!("{id} is {}", state.word()));
                if state != managed::State::Up {
                    down.push(id.as_str());
                }
            }
            Err(error) => {
                found.push(format!("{id}: {}", report::chain(&error)));
                down.push(id.as_str());
            }
        }
    }
    let found = found.join(", ");
    let fix = || {
        format!(
            "`sluice gateway check` shows more about {}; `sluice gateway up` starts one that runs here",
            down.join(", ")
        )
    };
    match (settings.gateways.is_empty(), down.is_empty()) {
        (true, _) => None,
        (false, true) => Some(Check::ok(GATEWAYS, found)),
        (false, false) => Some(Check::broken(GATEWAYS, found, &fix())),
    }
}

async fn docker_check(docker: &Result<Docker, docker::Error>) -> Check {
    let version = match docker {
        Ok(docker) => docker.version().await.map_err(|error| report::chain(&error)),
        Err(error @ docker::Error::NotPermitted { .. }) => {
            return Check::broken(DOCKER, error.to_string(), "do as it says");
        }
        Err(error) => Err(report::chain(error)),
    };
    match version {
        Ok(version) => Check::ok(DOCKER, format!("engine {}, API {}", version.engine, version.api)),
        Err(error) => Check::broken(
            DOCKER,
            error,
            "start Docker (`systemctl start docker`, or `dockerd` without systemd), or set sandbox.docker_socket",
        ),
    }
}

/// Checks that every agent can run, as `sluice agents check` does. Reports advisory notes, too, with one line for each
/// agent.
fn agents_check(statuses: &[AgentStatus]) -> Check {
    let line = |agent: &AgentStatus| {
        let reasons: Vec<_> = agent.block_reasons.iter().map(BlockReason::to_string).collect();
        if reasons.is_empty() {
            format!("{} can run", agent.id)
        } else {
            format!("{}: {}", agent.id, reasons.join("; "))
        }
    };
    // A model that the gateway's key may not use blocks no agent. It fails each call that names it.
    let fails =
        |reason: &BlockReason| reason.is_fault() || matches!(reason, BlockReason::SomeNotOffered { .. });
    let is_fault = |agent: &&AgentStatus| agent.block_reasons.iter().any(fails);
    let faults: Vec<_> = statuses.iter().filter(is_fault).map(line).collect();
    if faults.is_empty() {
        let lines: Vec<_> = statuses.iter().map(line).collect();
        return Check::ok(
            AGENTS,
            if lines.is_empty() { "there are none".to_owned() } else { lines.join("\n") },
        );
    }
    Check::broken(
        AGENTS,
        faults.join("\n"),
        "follow the advice above; `sluice images build` builds the image that ships",
    )
}

fn store_check(store: &Result<Store, store::Error>) -> Check {
    match store {
        Ok(store) => Check::ok(STORE, store.describe()),
        Err(error) => Check::broken(STORE, report::chain(error), "fix that, or set store.url"),
    }
}

fn workspaces_check(workspaces: Result<&Workspaces, &workspace::Error>) -> Check {
    let broken = |error: &workspace::Error| {
        let fix = match error {
            workspace::Error::NotPrivileged { .. } => "run `sluice up` and `sluice run` as root",
            _ => "fix that, or set sandbox.workspace_dir to another directory",
        };
        Check::broken(WORKSPACES, report::chain(error), fix)
    };
    let workspaces = match workspaces {
        Ok(workspaces) => workspaces,
        Err(error) => return broken(error),
    };
    match workspaces.disk_space() {
        Ok(space) if space.is_enough() => {
            Check::ok(WORKSPACES, format!("{}; {space}", workspaces.describe()))
        }
        Ok(space) => Check::broken(
            WORKSPACES,
            format!("too little room for {}: {space}", workspaces.describe()),
            "remove what fills the disk, or lower sandbox.disk_reserve or sandbox.workspace_size",
        ),
        Err(error) => broken(&error),
    }
}

/// Executes the run `probe` in a container that reaches the proxy through its socket.
async fn socket_check(engine: EngineHandles, probe: RunRequest, cancel: &CancellationToken) -> Check {
    let fix = "look at the proxy's log; is proxy.run_dir on a local file system that Docker can mount?";
    let leased_run = match LeasedRun::create(&engine, probe).await {
        Ok(leased_run) => leased_run,
        Err(error) => return Check::broken(SOCKET, report::chain(&error), "look at the store"),
    };
    let result = run::execute_without_reader(&engine, &leased_run, cancel).await;
    match result.map(|result| (result.duration, result.answer)) {
        Ok((duration, Ok(_))) => {
            Check::ok(SOCKET, format!("reached in {} ms, container start included", duration.as_millis()))
        }
        Ok((_, Err(failure))) => Check::broken(SOCKET, failure.message, fix),
        Err(lease_lost) => Check::broken(SOCKET, report::chain(&lease_lost), fix),
    }
}
