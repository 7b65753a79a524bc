//! Checks a gateway's configuration, and names the defects of gateways. Pure.

use std::fmt;

use platform_runtime::settings::{Attribution, Gateway};
use serde_json::Value;

use super::tools;
use crate::openclaw::UntestedVersion;

/// Defect of a gateway that makes it unsuitable for runs. Its text names the fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Accounts share the gateway, and its agents have these tools.
    SharedTools(Vec<String>),
    /// Accounts share the gateway, and its configuration does not say what its agents may not use.
    SharedUndenied,
    /// The control UI is on.
    ControlUi,
    /// Cron is on: its calls belong to no run.
    Cron,
    /// The agents at this path of the configuration start turns without a run.
    Heartbeat(String),
    /// Elevated tools are on.
    Elevated,
    /// The gateway may call models elsewhere, or its provider is missing or has another address.
    Provider(String),
    /// The gateway cannot call these models.
    Models(Vec<String>),
    /// Its calls cannot be attributed to a run.
    Attribution(&'static str),
    /// Its OpenClaw has a version with which this feature was not tested.
    Version(UntestedVersion),
    /// Its agents may start sub-agents, with calls that cannot be attributed to their run.
    SubAgents,
    /// The container is in this network.
    Network(String),
    /// The isolation of its container differs from its setup in these settings.
    Container(Vec<String>),
    /// Its disk is nearly full, or exceeds its limit.
    Disk(String),
    /// A secret file of the gateway is exposed, or missing.
    Secret(String),
    /// The gateway does not answer.
    Unreachable(String),
    /// The state could not be examined.
    Unknown(String),
}

impl Finding {
    /// Returns the code of the finding.
    pub fn code(&self) -> &'static str {
        match self {
            Self::SharedTools(_) => "shared_tools",
            Self::SharedUndenied => "shared_tools_not_denied",
            Self::ControlUi => "control_ui_on",
            Self::Cron => "cron_on",
            Self::Heartbeat(_) => "heartbeat_on",
            Self::Elevated => "elevated_on",
            Self::Provider(_) => "provider_not_ours",
            Self::Models(_) => "models_missing",
            Self::Attribution(_) => "attribution_impossible",
            Self::Version(untested) if untested.fails() => "version_fails",
            Self::Version(_) => "version_untested",
            Self::SubAgents => "sub_agents_not_attributed",
            Self::Network(_) => "network_not_none",
            Self::Container(_) => "container_changed",
            Self::Disk(_) => "disk_full",
            Self::Secret(_) => "secret_exposed",
            Self::Unreachable(_) => "gateway_unavailable",
            Self::Unknown(_) => "not_known",
        }
    }

    /// Returns whether the check itself failed, so that a defect is neither found nor excluded.
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }

    /// Returns whether the finding is only a version that was not tested. Such a finding fails no check.
    pub fn is_untested(&self) -> bool {
        matches!(self, Self::Version(untested) if !untested.fails())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SharedTools(tools) => write!(
                f,
                "accounts share it, and its agents have {}, which is not known to be harmless: give it one `account`, or take them off its tools",
                list_tools(tools)
            ),
            Self::SharedUndenied => f.write_str(
                "accounts share it, and its tools.deny names neither `*` nor both `group:runtime` and `group:fs`: OpenClaw ignores an allow-list of which it knows no name",
            ),
            Self::ControlUi => f.write_str("its control UI is on: set gateway.controlUi.enabled to false"),
            Self::Cron => f.write_str("cron is on, whose calls belong to no run: set cron.enabled to false"),
            Self::Heartbeat(path) => {
                write!(f, "the heartbeat is on, whose calls belong to no run: set {path}.heartbeat.every to \"0m\"")
            }
            Self::Elevated => f.write_str("elevated tools are on: set tools.elevated.enabled to false"),
            Self::Provider(why) => write!(f, "{why}"),
            Self::Models(models) => {
                write!(f, "its provider has no {}: `sluice gateway up`, or add them there", models.join(", "))
            }
            Self::Attribution(why) => write!(f, "its calls cannot be known to be a run's: {why}"),
            Self::Version(untested) => untested.fmt(f),
            Self::SubAgents => f.write_str(
                "its agents have sessions_spawn, and calls of sub-agents belong to their run only with `attribution = \"trace\"`: set that, or deny them sessions_spawn",
            ),
            Self::Network(network) => {
                write!(f, "its container is in network `{network}`: `sluice gateway up` creates it again without one")
            }
            Self::Container(what) => write!(
                f,
                "its container has changed since it was created: {}; `sluice gateway up` creates it again",
                what.join(", ")
            ),
            Self::Disk(how) => write!(
                f,
                "it has no room left ({how}): remove what its agents left, or give it another `disk`, which takes `sluice gateway down NAME --purge` (its conversations are removed, too) and `up`"
            ),
            Self::Secret(why) | Self::Unknown(why) => f.write_str(why),
            Self::Unreachable(why) => write!(f, "it cannot be reached: {why}"),
        }
    }
}

/// Returns a list of tools, in which `*` is spelled out.
fn list_tools(tools: &[String]) -> String {
    let name = |tool: &String| if tool == "*" { "every tool".to_owned() } else { tool.clone() };
    tools.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Returns the defects of `config`, the current or next configuration of `gateway`, generated or edited by hand.
pub(super) fn check_config(gateway: &Gateway, config: &Value) -> Vec<Finding> {
    let is_off = |pointer: &str| config.pointer(pointer) == Some(&Value::Bool(false));
    let mut found = Vec::new();
    let tools = allowed_tools(config);
    let denied = denied_tools(config);
    if gateway.account.is_none() {
        found.extend(check_shared_tools(&tools, &denied));
    } else if !tools::attributes_sub_agents(gateway) && tools::allow_sub_agents(&tools, &denied) {
        found.push(Finding::SubAgents);
    }
    found.extend((!is_off("/gateway/controlUi/enabled")).then_some(Finding::ControlUi));
    found.extend((!is_off("/cron/enabled")).then_some(Finding::Cron));
    found.extend((!is_off("/tools/elevated/enabled")).then_some(Finding::Elevated));
    found.extend(check_heartbeat(config));
    found.extend(check_provider(gateway, config));
    found
}

/// Returns the agents of `config`, with the path of each.
fn configured_agents(config: &Value) -> Vec<(String, &Value)> {
    let entries = config.pointer("/agents/entries").and_then(Value::as_object);
    let entries = entries.into_iter().flatten().map(|(id, agent)| (format!("agents.entries.{id}"), agent));
    let list = config.pointer("/agents/list").and_then(Value::as_array);
    let list = list.into_iter().flatten().enumerate();
    entries.chain(list.map(|(at, agent)| (format!("agents.list[{at}]"), agent))).collect()
}

fn strings(value: Option<&Value>) -> Option<Vec<String>> {
    let names = value?.as_array()?.iter().filter_map(Value::as_str);
    Some(names.map(str::to_owned).collect())
}

/// Returns the tools that any agent of `config` is allowed; `*` without an allow-list.
fn allowed_tools(config: &Value) -> Vec<String> {
    let allowed = strings(config.pointer("/tools/allow")).filter(|tools| !tools.is_empty());
    let mut tools = allowed.unwrap_or_else(|| vec!["*".to_owned()]);
    tools.extend(strings(config.pointer("/tools/alsoAllow")).unwrap_or_default());
    for (_, agent) in configured_agents(config) {
        for field in ["/tools/allow", "/tools/alsoAllow"] {
            tools.extend(strings(agent.pointer(field)).unwrap_or_default());
        }
    }
    let code_mode = config.pointer("/tools/codeMode");
    if code_mode.is_some_and(|mode| *mode != false && mode.get("enabled") != Some(&Value::Bool(false))) {
        tools.push("tools.codeMode".to_owned());
    }
    tools
}

/// Returns the tools that `config` denies to all agents.
fn denied_tools(config: &Value) -> Vec<String> {
    strings(config.pointer("/tools/deny")).unwrap_or_default()
}

/// Checks a gateway that accounts share: all its agents have an allow-list of harmless tools, and nothing adds to it.
fn check_shared_tools(tools: &[String], denied: &[String]) -> Vec<Finding> {
    let dangerous: Vec<_> = tools::dangerous(tools).into_iter().map(str::to_owned).collect();
    let denies = |tool: &str| denied.iter().any(|name| name == tool);
    let undenied = !(denies("*") || denies("group:runtime") && denies("group:fs"));
    let dangerous = (!dangerous.is_empty()).then_some(Finding::SharedTools(dangerous));
    dangerous.into_iter().chain(undenied.then_some(Finding::SharedUndenied)).collect()
}

fn check_heartbeat(config: &Value) -> Vec<Finding> {
    let interval =
        |agent: &Value| agent.pointer("/heartbeat/every").and_then(Value::as_str).map(str::to_owned);
    let is_never = |every: &str| every.trim_end_matches(|c: char| c.is_ascii_alphabetic()) == "0";
    let defaults = config.pointer("/agents/defaults");
    let defaults = defaults.and_then(interval).is_none_or(|every| !is_never(&every));
    let own = configured_agents(config)
        .into_iter()
        .filter(|(_, agent)| interval(agent).is_some_and(|every| !is_never(&every)))
        .map(|(path, _)| path);
    defaults.then(|| "agents.defaults".to_owned()).into_iter().chain(own).map(Finding::Heartbeat).collect()
}

fn check_provider(gateway: &Gateway, config: &Value) -> Vec<Finding> {
    let name = &gateway.provider;
    let mut found = Vec::new();
    if config.pointer("/models/mode") != Some(&Value::from("replace")) {
        let why = "it may call models elsewhere: set models.mode to \"replace\"";
        found.push(Finding::Provider(why.to_owned()));
    }
    let providers = config.pointer("/models/providers").and_then(Value::as_object);
    let foreign = providers
        .into_iter()
        .flatten()
        .map(|(provider, _)| provider)
        .filter(|provider| !gateway.has_provider(provider));
    found.extend(foreign.map(|provider| {
        Finding::Provider(format!(
            "it may call models of provider {provider}: remove that from models.providers"
        ))
    }));
    let own = providers.and_then(|providers| providers.get(name));
    match own.map(|own| own.get("baseUrl").and_then(Value::as_str).unwrap_or_default()) {
        None => {
            found.push(Finding::Provider(format!("it has no provider {name}: add it to models.providers")))
        }
        Some(base) if gateway.is_managed() && base != "http://127.0.0.1:8080/v1" => {
            found.push(Finding::Provider(format!(
                "its provider {name} is at {base}: `sluice gateway up` fixes that"
            )));
        }
        Some(_) => {}
    }
    if own.is_some() && models(gateway, config).is_empty() {
        found.push(Finding::Models(vec!["model at all".to_owned()]));
    }
    let uses_slots = gateway.attribution == Attribution::Slot;
    if uses_slots && providers.is_some_and(|providers| !providers.contains_key(&gateway.slot_provider(0))) {
        found.push(Finding::Attribution("its configuration has no provider with a slot"));
    }
    found
}

/// Returns the models of the provider in `config` that reaches the data plane.
pub(super) fn models(gateway: &Gateway, config: &Value) -> Vec<String> {
    let provider = config.pointer("/models/providers").and_then(|providers| providers.get(&gateway.provider));
    let models = provider.and_then(|provider| provider.get("models")).and_then(Value::as_array);
    let ids = models.into_iter().flatten().filter_map(|model| model.get("id").and_then(Value::as_str));
    ids.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
