//! Builds the configuration of a managed gateway, in OpenClaw's format. Pure.
//!
//! Everything that a gateway would do by itself is off. Its agents are active only in turns of runs, and each of their
//! calls belongs to that run. The configuration is written for OpenClaw 2026.9. OpenClaw 2026.2 does not know
//! `models.catalogRefresh`, `agents.ownership`, `agents.entries` (there: `agents.list`) and `agents.defaults.skills`.
//! Nor does it know the limits of sub-agents but `maxConcurrent`, `tools.toolSearch`, `tools.sessions` and
//! `logging.level = "silent"`. It refuses a file that has any of them.

use std::collections::BTreeMap;

use platform_core::limit::Millis;
use platform_runtime::settings::{Attribution, Gateway, ModelLimits};
use runner_model::gateway_agent::{CommandMode, Switch};
use runner_store::NewGatewayAgent;
use serde_json::{Map, Value, json};

use super::tools;

/// Port at which the gateway listens inside its container.
pub(super) const PORT: u16 = 18789;
/// Directory of agents' files inside the container.
const AGENT_FILES_DIR: &str = "/workspace/agents";
/// Directory of Sluicegate's plugin inside the container.
const PLUGIN_DIR: &str = "/config/plugin";
/// Id of Sluicegate's plugin.
const PLUGIN_ID: &str = "sluicegate-headers";
/// API key that OpenClaw requires. The real key is the data plane's.
const PLACEHOLDER_KEY: &str = "the-proxy-has-the-key";
/// Timeout longer than any turn: runs have limits of their own.
const MODEL_TIMEOUT: Millis = Millis::seconds(24 * 3600);
/// Number of tokens that a model is assumed to read, and to write, where `[models]` does not say.
const CONTEXT_WINDOW: u64 = 200_000;
const MAX_TOKENS: u64 = 8192;

/// Inputs of a configuration, besides the gateway's settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConfigInputs<'p> {
    /// Models that may be called; the first is the default.
    pub(super) models: &'p [String],
    /// Token that admits a client.
    pub(super) token: &'p str,
    /// Slots for all active sessions, if their calls are attributed by slots.
    pub(super) slots: &'p [String],
    /// Text that models take and give.
    pub(super) limits: &'p BTreeMap<String, ModelLimits>,
    /// Agents that people made, beside those of the settings.
    pub(super) agents: &'p [NewGatewayAgent],
}

/// Returns the directory of an agent's files inside the container.
#[must_use]
pub fn agent_workspace(agent: &str) -> String {
    format!("{AGENT_FILES_DIR}/{agent}")
}

/// Returns the content of the configuration file.
pub(super) fn configuration(gateway: &Gateway, inputs: ConfigInputs<'_>) -> Value {
    json!({
        "models": {
            "mode": "replace",
            "catalogRefresh": { "enabled": false },
            "providers": providers(gateway, inputs),
        },
        "agents": agents(gateway, inputs),
        "tools": {
            "allow": tools::allowed(gateway),
            "deny": tools::denied(gateway),
            "elevated": { "enabled": false },
            "agentToAgent": { "enabled": false },
            "sessions": { "visibility": "tree" },
            "toolSearch": false,
        },
        "plugins": plugins(gateway),
        "cron": { "enabled": false },
        "discovery": { "mdns": { "mode": "off" } },
        "update": { "checkOnStart": false },
        // The container's output is kept, within bounds; a file would grow.
        "logging": { "level": "silent", "consoleLevel": "info" },
        "gateway": {
            "mode": "local",
            "port": PORT,
            "bind": "loopback",
            "auth": { "mode": "token", "token": inputs.token },
            "controlUi": { "enabled": false },
            // Agents that people make or change need no restart. Only this host writes the file.
            "reload": { "mode": "hybrid" },
        },
    })
}

fn providers(gateway: &Gateway, inputs: ConfigInputs<'_>) -> Map<String, Value> {
    let model = |id: &String| {
        let limits = inputs.limits.get(id).copied().unwrap_or_default();
        json!({
            "id": id,
            "name": id,
            "reasoning": false,
            "input": ["text"],
            "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0 },
            "contextWindow": limits.context_window.unwrap_or(CONTEXT_WINDOW),
            "maxTokens": limits.max_output_tokens.unwrap_or(MAX_TOKENS),
        })
    };
    let models: Vec<_> = inputs.models.iter().map(model).collect();
    let provider = |path: String| {
        json!({
            "baseUrl": format!("http://127.0.0.1:8080{path}/v1"),
            "apiKey": PLACEHOLDER_KEY,
            "api": "openai-completions",
            "timeoutSeconds": MODEL_TIMEOUT.0 / 1000,
            "models": models,
        })
    };
    let slots = inputs.slots.iter().enumerate();
    let slots = slots.map(|(at, slot)| (gateway.slot_provider(at), provider(format!("/slot/{slot}"))));
    [(gateway.provider.clone(), provider(String::new()))].into_iter().chain(slots).collect()
}

fn agents(gateway: &Gateway, inputs: ConfigInputs<'_>) -> Value {
    let entry = |agent: &String| (agent.clone(), json!({ "workspace": agent_workspace(agent) }));
    let made = inputs.agents.iter().map(|agent| (agent.key.agent.to_string(), made_entry(gateway, agent)));
    let entries: Map<_, _> = made.chain(gateway.managed.agents.iter().map(entry)).collect();
    let primary = inputs.models.first().map(|model| format!("{}/{model}", gateway.provider));
    json!({
        "ownership": "explicit",
        "defaults": {
            "model": { "primary": primary },
            "sandbox": { "mode": "off" },
            "heartbeat": { "every": "0m" },
            "skipBootstrap": true,
            "skills": [],
            "timeoutSeconds": MODEL_TIMEOUT.0 / 1000,
            "maxConcurrent": gateway.max_concurrent_sessions,
            // Sub-agents start no others, and as many may run as sessions: the run's own limits bound their usage.
            "subagents": { "maxConcurrent": gateway.max_concurrent_sessions, "maxSpawnDepth": 1, "maxChildrenPerAgent": 4 },
        },
        "entries": entries,
    })
}

/// Returns the entry of an agent that people made. It takes tools away, and gives none that the gateway's agents lack.
fn made_entry(gateway: &Gateway, agent: &NewGatewayAgent) -> Value {
    let settings = &agent.settings;
    let capabilities = &settings.capabilities;
    let groups = [
        ("group:runtime", capabilities.commands == CommandMode::Off),
        ("group:web", capabilities.web == Switch::Off),
        ("group:fs", capabilities.files == Switch::Off),
    ];
    let groups = groups.into_iter().chain([("sessions_spawn", capabilities.commands == CommandMode::Ask)]);
    // A sub-agent's requests name a session of no run, so no person could be asked.
    let denied: Vec<_> = groups.filter_map(|(group, is_off)| is_off.then_some(group)).collect();
    let mut tools = json!({ "deny": denied });
    if capabilities.commands == CommandMode::Ask {
        tools["exec"] = json!({ "security": "full", "ask": "always" });
    }
    let mut entry = json!({
        "name": settings.name,
        "identity": { "name": settings.name },
        "workspace": agent.workspace,
        "tools": tools,
    });
    if let Some(model) = &settings.model {
        entry["model"] = format!("{}/{model}", gateway.provider).into();
    }
    entry
}

fn plugins(gateway: &Gateway) -> Value {
    if gateway.attribution != Attribution::Plugin {
        return json!({ "enabled": false, "allow": [] });
    }
    json!({
        "enabled": true,
        "allow": [PLUGIN_ID],
        "load": { "paths": [PLUGIN_DIR] },
        "entries": { PLUGIN_ID: { "enabled": true, "config": { "provider": gateway.provider } } },
    })
}

#[cfg(test)]
pub(super) mod tests;
