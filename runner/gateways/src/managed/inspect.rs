//! Reports the state of managed gateways, and of others as far as they answer.

use std::{collections::BTreeSet, time::Duration};

use gateway_bridge::Hello;
use platform_core::{id::GatewayId, json::Raw};
use platform_runtime::{
    report::{self, ErrorText},
    settings::{Attribution, Gateway, Settings},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Error, Finding, ManagedGateway, check as rules, files::Files, probe::ProbeAnswer};
use crate::{GatewayPaths, GatewayPool, openclaw, secrets};

/// Longest wait for a gateway's configuration.
const CONFIG_TIMEOUT: Duration = Duration::from_secs(20);

/// State of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The gateway is ready for turns; one that runs elsewhere accepts connections.
    Up,
    /// The container runs, and does not answer yet, or no more.
    Starting,
    /// No container runs; a gateway that runs elsewhere accepts no connection.
    Down,
}

impl State {
    /// Returns the state in a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Starting => "starting",
            Self::Down => "down",
        }
    }
}

/// Returns the state of the gateway `id`.
pub async fn state(settings: &Settings, id: &GatewayId, gateway: &Gateway) -> Result<State, Error> {
    if !gateway.is_managed() {
        let reached = GatewayPaths::of(settings, id, gateway).reach().await;
        return Ok(if reached.is_ok() { State::Up } else { State::Down });
    }
    let managed = ManagedGateway::open(settings, id).await?;
    let is_running = managed.container().await?.is_some_and(|found| found.is_running);
    Ok(match (is_running, managed.probe().await) {
        (true, Ok(ProbeAnswer::Ready)) => State::Up,
        (true, _) => State::Starting,
        (false, _) => State::Down,
    })
}

/// Returns the defects of the gateway `id`. Checks the configuration that the gateway reports; if it reports none, the
/// one in its file.
pub async fn check(settings: &Settings, id: &GatewayId, gateway: &Gateway) -> Vec<Finding> {
    let paths = GatewayPaths::of(settings, id, gateway);
    let mut found = Vec::new();
    let mut written = None;
    if gateway.attribution == Attribution::Headers && gateway.is_managed() {
        let why = "no published OpenClaw takes headers with an order: set its `attribution` to `trace`, `slot` or `plugin`";
        found.push(Finding::Attribution(why));
    }
    let reached = if gateway.is_managed() {
        match ManagedGateway::open(settings, id).await {
            Ok(managed) => {
                written = match managed.written_config() {
                    None => Some(managed.planned_config().await),
                    written => written,
                };
                found.extend(check_container(&managed).await);
                found.extend(match managed.disk().nearly_exceeded().await {
                    Ok(exceeded) => exceeded.map(|exceeded| Finding::Disk(exceeded.to_string())),
                    Err(error) => Some(Finding::Unknown(report::chain(&error))),
                });
            }
            Err(error) => found.push(Finding::Unknown(report::chain(&error))),
        }
        !found.iter().any(|finding| matches!(finding, Finding::Unreachable(_) | Finding::Unknown(_)))
    } else {
        match paths.reach().await {
            Ok(()) => true,
            Err(error) => {
                found.push(Finding::Unreachable(report::chain(&error)));
                false
            }
        }
    };
    found.extend(check_secrets(gateway, &paths));
    let reported = if reached { Some(query_config(settings, id).await) } else { None };
    let (config, hello) = match reported {
        Some(Ok(Reported { config: Ok(config), hello, .. })) => (config, Some(hello)),
        Some(Ok(Reported { config: Err(ErrorText(why)), hello, .. })) => {
            found.push(Finding::Unknown(why));
            (written, Some(hello))
        }
        Some(Err(ErrorText(why))) => {
            found.push(Finding::Unknown(why));
            (written, None)
        }
        None => (written, None),
    };
    found.extend(hello.iter().flat_map(|hello| check_attribution(gateway, hello)));
    if let Some(config) = config {
        found.extend(rules::check_config(gateway, &config));
        found.extend(check_models(settings, id, gateway, &config));
    }
    found
}

async fn check_container(managed: &ManagedGateway<'_>) -> Vec<Finding> {
    let found = match managed.container().await {
        Err(error) => return vec![Finding::Unknown(report::chain(&error))],
        Ok(found) => found.filter(|found| found.is_running),
    };
    let Some(found) = found else {
        return vec![Finding::Unreachable(format!("it is down: `sluice gateway up {}`", managed.id))];
    };
    let answer = match managed.probe().await {
        Ok(ProbeAnswer::Ready) => None,
        Ok(ProbeAnswer::NotReady) => Some(Finding::Unreachable("it is starting or stopping".to_owned())),
        Err(error) => Some(Finding::Unreachable(error.to_string())),
    };
    let networks = found.networks.iter().cloned().map(Finding::Network);
    let isolation = match managed.changed_settings(&found) {
        None => Some(Finding::Container(vec!["its setup is not known".to_owned()])),
        Some(changed) if changed.is_empty() => None,
        Some(changed) => Some(Finding::Container(changed)),
    };
    networks.chain(isolation).chain(answer).collect()
}

fn check_secrets(gateway: &Gateway, paths: &GatewayPaths) -> Vec<Finding> {
    let token = secrets::token(&paths.token()).err();
    let uses_slots = gateway.attribution == Attribution::Slot;
    let slots = if uses_slots { secrets::slots(&paths.slots()).err() } else { None };
    token.into_iter().chain(slots).map(|error| Finding::Secret(report::chain(&error))).collect()
}

/// Answers of a gateway.
struct Reported {
    /// Configuration that the gateway reports, if its version can; or the reason why it did not answer.
    config: Result<Option<Value>, ErrorText>,
    /// Approvals of commands, if the gateway reports them.
    approvals: Option<Value>,
    hello: Hello,
}

/// Answer to `config.get`: the configuration in the forms that a version knows.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfigAnswer<'a> {
    #[serde(borrow)]
    runtime_config: Option<Raw<'a>>,
    #[serde(borrow)]
    resolved: Option<Raw<'a>>,
    #[serde(borrow)]
    config: Option<Raw<'a>>,
}

/// Answer to `exec.approvals.get`.
#[derive(Deserialize)]
struct ApprovalsAnswer<'a> {
    #[serde(borrow)]
    file: Option<Raw<'a>>,
}

impl ConfigAnswer<'_> {
    /// Returns the first form that is an object.
    fn config(&self) -> Option<Value> {
        let forms = [self.runtime_config, self.resolved, self.config];
        forms.into_iter().flatten().find(|form| form.get().starts_with('{'))?.read().ok()
    }
}

/// Place where a configuration was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigSource {
    /// The gateway has reported it.
    Gateway,
    /// The file of a managed gateway that does not answer has it.
    File,
}

/// Configuration of a gateway.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadConfig {
    /// The configuration.
    pub config: Value,
    /// Approvals of commands, which a gateway elsewhere keeps beside its configuration.
    pub approvals: Option<Value>,
    /// Place where it was read.
    pub source: ConfigSource,
}

/// Reads the configuration of the gateway `id`: from the gateway, or from the file of a managed one that does not answer.
///
/// # Errors
/// The reason why it cannot be read.
pub async fn read_config(
    settings: &Settings,
    id: &GatewayId,
    gateway: &Gateway,
) -> Result<ReadConfig, ErrorText> {
    let mut approvals = None;
    let asked = match state(settings, id, gateway).await {
        Ok(State::Up) => query_config(settings, id).await.and_then(|reported| {
            approvals = reported.approvals;
            reported.config
        }),
        Ok(State::Starting | State::Down) => Ok(None),
        Err(error) => Err(ErrorText::of(&error)),
    };
    if let Ok(Some(config)) = asked {
        return Ok(ReadConfig { config, approvals, source: ConfigSource::Gateway });
    }
    let written = Files { paths: &GatewayPaths::of(settings, id, gateway) }.config();
    match (written.filter(|_| gateway.is_managed()), asked) {
        (Some(config), _) => Ok(ReadConfig { config, approvals: None, source: ConfigSource::File }),
        (None, Err(why)) => Err(why),
        (None, Ok(_)) if gateway.is_managed() => {
            Err(ErrorText(format!("it has never run here: `sluice gateway up {id}`")))
        }
        (None, Ok(_)) => Err(ErrorText("it reports no configuration".to_owned())),
    }
}

/// Connects to a gateway and asks for its configuration.
async fn query_config(settings: &Settings, id: &GatewayId) -> Result<Reported, ErrorText> {
    let pool = GatewayPool::of(settings);
    let connection = pool.named(id.as_str()).map_err(|error| ErrorText::of(&error))?;
    let (gateway, hello) = connection.connected().await.map_err(|error| ErrorText::of(&error))?;
    let answer = timeout(CONFIG_TIMEOUT, gateway.call("config.get", json!({}))).await;
    let approvals = timeout(CONFIG_TIMEOUT, gateway.call("exec.approvals.get", json!({}))).await;
    let approvals = approvals.ok().and_then(Result::ok).and_then(|answer| {
        answer.read::<ApprovalsAnswer<'_>>().ok().and_then(|answer| answer.file?.read().ok())
    });
    gateway.close().await;
    let config = match answer {
        Err(_late) => Err(ErrorText(format!(
            "it did not report its configuration within {} s",
            CONFIG_TIMEOUT.as_secs()
        ))),
        Ok(Err(error)) => Err(ErrorText::of(&error)),
        Ok(Ok(answer)) => Ok(answer.read::<ConfigAnswer<'_>>().ok().and_then(|answer| answer.config())),
    };
    Ok(Reported { config, approvals, hello })
}

fn check_attribution(gateway: &Gateway, hello: &Hello) -> Vec<Finding> {
    let impossible = match gateway.attribution {
        Attribution::Trace if !hello.takes_traces() => Some(Finding::Attribution(
            "its OpenClaw passes no trace id on: set its `attribution` to `slot`, or update it",
        )),
        Attribution::Plugin if !hello.has("sluicegate.headers.set") => Some(Finding::Attribution(
            "our plugin does not answer there: load services/openclaw-headers-plugin, and name it in plugins.allow",
        )),
        _ => None,
    };
    let untested = openclaw::features(gateway)
        .into_iter()
        .filter_map(|feature| feature.untested(hello.version.as_str()));
    // The finding about attribution already says that the version is too old, and what to do.
    let untested = untested.filter(|_| impossible.is_none()).map(Finding::Version);
    impossible.iter().cloned().chain(untested).collect()
}

/// Returns the models that agents of the registry name, and that the gateway cannot call.
fn check_models(settings: &Settings, id: &GatewayId, gateway: &Gateway, config: &Value) -> Option<Finding> {
    let known = rules::models(gateway, config);
    if known.is_empty() {
        return None; // `check_config` reports that
    }
    let agents = settings.agents.values().filter(|agent| agent.gateways.contains(id));
    let requested: BTreeSet<_> = agents.filter_map(|agent| agent.model.clone()).collect();
    let missing: Vec<_> = requested.into_iter().filter(|model| !known.contains(model)).collect();
    (!missing.is_empty()).then_some(Finding::Models(missing))
}
