//! Answers about the gateway itself. Only its state, its agents and their models are told.

use std::time::Duration;

use platform_runtime::settings::Execution;
use runner_gateways::managed::{self, State};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::MethodCall;
use crate::gateways::socket::{
    clock::now,
    refusal::SocketRefusal,
    session_key::MAIN,
    tenant::{KnownAgent, SocketTenant},
};

/// Longest wait for the state of a gateway.
const STATE_TIMEOUT: Duration = Duration::from_secs(3);
/// Delay before a client asks a gateway again that is down.
const DOWN_DELAY: Duration = Duration::from_secs(15);

/// Folder that clients are shown of the gateway. It only has a name, which they ask for.
pub(super) const SHOWN_FOLDER: &str = "sluicegate";

impl SocketTenant {
    /// Returns the state of the gateway in a word.
    pub(super) async fn state_word(&self) -> Result<&'static str, SocketRefusal> {
        let settings = self.settings();
        let found = self.found(&settings)?;
        let asked = timeout(STATE_TIMEOUT, managed::state(&settings, found.id, found.gateway)).await;
        Ok(match asked {
            Ok(Ok(state)) => state.word(),
            Ok(Err(_)) | Err(_) => "unknown",
        })
    }

    /// Refuses an order while the gateway is down.
    pub(super) async fn require_up(&self) -> Result<(), SocketRefusal> {
        if self.state_word().await? != State::Down.word() {
            return Ok(());
        }
        let gateway = &self.gateway;
        Err(SocketRefusal::unavailable(
            "GATEWAY_DOWN",
            format!("gateway {gateway} is down: an operator starts it with `sluice gateway up {gateway}`"),
            DOWN_DELAY,
        ))
    }
}

impl MethodCall {
    pub(super) async fn read_status(&self) -> Result<Value, SocketRefusal> {
        let state = self.tenant.state_word().await?;
        let agents = self.tenant.agents().await?;
        let default = SocketTenant::default_agent(&agents).map_or(MAIN, |agent| agent.id.as_str());
        Ok(json!({
            "ok": state == State::Up.word(),
            "ts": now(),
            "gateway": { "id": self.tenant.gateway.as_str(), "state": state },
            "defaultAgentId": default,
            "runtimeVersion": concat!("sluicegate-", env!("CARGO_PKG_VERSION")),
            "sessions": { "count": 0, "recent": [] },
        }))
    }

    /// Answers with a configuration that has the account's agents, and nothing else.
    pub(super) async fn read_config(&self) -> Result<Value, SocketRefusal> {
        let agents = self.tenant.agents().await?;
        let list: Vec<_> = agents
            .iter()
            .map(|KnownAgent { id, name, .. }| json!({ "id": id.as_str(), "name": name }))
            .collect();
        // In other modes clients wait for a restart after each change, or change the mode first.
        let gateway = json!({ "reload": { "mode": "hot" } });
        let config =
            json!({ "agents": { "list": list }, "session": { "mainKey": MAIN }, "gateway": gateway });
        let hash = crate::runs::hash_of_value(&config);
        let raw = config.to_string();
        Ok(json!({
            "path": format!("{SHOWN_FOLDER}/openclaw.json"), "exists": true, "valid": true, "hash": hash,
            "raw": raw, "parsed": config, "config": config, "runtimeConfig": config, "issues": [], "warnings": [],
        }))
    }

    /// Answers with the models of the agents that exist for the account.
    pub(super) async fn list_models(&self) -> Result<Value, SocketRefusal> {
        let settings = self.tenant.settings();
        let mut models = Vec::new();
        let entries = settings.agents.values().filter(|entry| {
            entry.mode == Execution::Gateway && entry.gateways.contains(&self.tenant.gateway)
        });
        for entry in entries {
            models.extend(entry.models.iter().map(ToString::to_string));
            models.extend(entry.model.clone().or_else(|| settings.upstream.default_model.clone()));
        }
        models.extend(self.tenant.agents().await?.into_iter().filter_map(|agent| agent.model));
        models.sort_unstable();
        models.dedup();
        let models: Vec<_> =
            models.into_iter().map(|id| json!({ "id": id, "name": id, "provider": "sluicegate" })).collect();
        Ok(json!({ "models": models }))
    }
}

/// Answers which commands a message may be.
pub(super) fn commands() -> Value {
    json!({ "commands": [
        { "name": "stop", "textAliases": ["/stop"], "description": "End the running answer.", "source": "native",
          "scope": "both", "acceptsArgs": false },
    ] })
}

/// Answers that no agent waits for an answer of a person.
pub(super) fn questions() -> Value {
    json!({ "questions": [] })
}

/// Answers that the client is told of all sessions of its account, as each client is.
pub(super) fn subscription() -> Value {
    json!({ "subscribed": true })
}
