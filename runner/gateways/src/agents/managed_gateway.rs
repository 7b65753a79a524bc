//! Applies agents to a managed gateway: through the file that only this host writes.

use std::time::Duration;

use gateway_bridge::Gateway;
use platform_core::{id::GatewayId, json::Raw};
use platform_runtime::poll::poll;
use runner_store::{Error as StoreError, GatewayAgent};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::{AgentApplier, AgentStep, ApplyError};
use crate::{GatewayPool, managed::ManagedGateway};

/// Longest wait until a running gateway has taken a new file. OpenClaw 2026.9.6 takes 0.8 s.
const TAKE_TIMEOUT: Duration = Duration::from_secs(15);
/// Interval between questions whether it has.
const TAKE_INTERVAL: Duration = Duration::from_millis(200);

/// Agents of a managed gateway.
pub(super) struct ManagedAgents<'a> {
    pub(super) applier: &'a AgentApplier<'a>,
    pub(super) pool: &'a GatewayPool,
    pub(super) id: &'a GatewayId,
    pub(super) stored: &'a [GatewayAgent],
}

/// Answer to `config.get`: the configuration that the gateway has read, whether that is the one it acts by, and the faults
/// of its file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfigState<'a> {
    #[serde(borrow)]
    runtime_config: Option<Raw<'a>>,
    config_revision_hash: Option<String>,
    applied_config_hash: Option<String>,
    #[serde(default)]
    issues: Vec<ConfigIssue>,
}

/// Fault that the gateway found in its file.
#[derive(Deserialize)]
struct ConfigIssue {
    #[serde(default)]
    path: String,
    #[serde(default)]
    message: String,
}

impl ManagedAgents<'_> {
    /// Applies all changes, which one write of the file does. Fails only if the store does.
    pub(super) async fn apply(&self) -> Result<(), StoreError> {
        let changed: Vec<_> = self.stored.iter().filter(|agent| !agent.is_applied()).collect();
        for agent in &changed {
            self.applier.begin(agent, AgentStep::Configuration).await?;
        }
        let configured = self.configure().await;
        for agent in changed {
            match &configured {
                Err(error) => self.applier.fail(agent, AgentStep::Configuration, error).await?,
                Ok(_) if agent.removed.is_some() => self.applier.finish(agent).await?,
                Ok(gateway) => self.write_files(gateway, agent).await?,
            }
        }
        Ok(())
    }

    async fn write_files(&self, gateway: &Gateway, agent: &GatewayAgent) -> Result<(), StoreError> {
        self.applier.begin(agent, AgentStep::Files).await?;
        match self.applier.write_files(gateway, agent).await? {
            Ok(()) => self.applier.finish(agent).await,
            Err(error) => self.applier.fail(agent, AgentStep::Files, &error).await,
        }
    }

    /// Writes the file, waits until the gateway has taken it, and returns the connection.
    async fn configure(&self) -> Result<Gateway, ApplyError> {
        let managed = ManagedGateway::open(&self.applier.settings, self.id).await?;
        let mut written = managed.reload(self.applier.store).await?;
        let written = written["agents"]["entries"].take();
        let (gateway, _hello) = self.pool.named(self.id.as_str())?.connected().await?;
        let mut last = None;
        let taken = timeout(TAKE_TIMEOUT, async {
            let mut ask = async || -> Result<Option<()>, gateway_bridge::Error> {
                let answer = gateway.call("config.get", json!({})).await?;
                let Ok(state) = answer.read::<ConfigState<'_>>() else { return Ok(None) };
                last = first_issue(&state);
                let has = state.runtime_config.and_then(|config| config.read::<Value>().ok());
                let has = has.unwrap_or_default()["agents"]["entries"].take();
                let acts_by_it = state.config_revision_hash == state.applied_config_hash;
                Ok((has_agents(&has, &written) && acts_by_it).then_some(()))
            };
            poll(TAKE_INTERVAL, async || ask().await.transpose()).await
        })
        .await;
        match taken {
            Ok(taken) => taken?,
            Err(_late) => {
                return Err(ApplyError::NotTaken { seconds: TAKE_TIMEOUT.as_secs(), issue: last });
            }
        }
        Ok(gateway)
    }
}

/// Returns whether a gateway that has the agents `has` has all of `written` and no others. It may say more of each.
fn has_agents(has: &Value, written: &Value) -> bool {
    let count = |agents: &Value| agents.as_object().map(Map::len);
    count(has) == count(written) && includes(has, written)
}

/// Returns whether `whole` has every member of `part`, with its value.
fn includes(whole: &Value, part: &Value) -> bool {
    match part {
        Value::Object(members) => {
            members.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| includes(whole, part)))
        }
        part => whole == part,
    }
}

fn first_issue(state: &ConfigState<'_>) -> Option<String> {
    let issue = state.issues.first()?;
    Some(format!("{}: {}", issue.path, issue.message))
}

impl AgentApplier<'_> {
    /// Writes the behaviour files of `agent` that its gateway has not got yet. All others stay: the agent may have changed
    /// them since.
    pub(super) async fn write_files(
        &self,
        gateway: &Gateway,
        agent: &GatewayAgent,
    ) -> Result<Result<(), ApplyError>, StoreError> {
        let key = &agent.agent.key;
        let stored = self.store.behaviour_files(key).await?;
        for file in stored.into_iter().filter(|file| file.revision > agent.applied) {
            let params = json!({ "agentId": key.agent, "name": file.file.name(), "content": file.content });
            if let Err(error) = gateway.call("agents.files.set", params).await {
                return Ok(Err(error.into()));
            }
        }
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_has_what_was_written() {
        let written = json!({ "bot": { "tools": { "deny": ["group:web"] } }, "main": {} });
        let said =
            json!({ "bot": { "tools": { "deny": ["group:web"], "profile": "full" } }, "main": { "id": 1 } });
        assert!(has_agents(&said, &written));
        for other in [
            json!({ "bot": { "tools": { "deny": [] } }, "main": {} }),
            json!({ "bot": { "tools": { "deny": ["group:web"] } } }),
            json!({ "bot": { "tools": { "deny": ["group:web"] } }, "main": {}, "removed": {} }),
            Value::Null,
        ] {
            assert!(!has_agents(&other, &written), "{other}");
        }
    }
}
