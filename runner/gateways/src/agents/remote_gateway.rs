//! Applies agents to a gateway elsewhere, through its own API.
//!
//! Each change names the state that it was made from. If another client was faster, the state is read again.

use std::time::Duration;

use gateway_bridge::{Code, Error as BridgeError, Gateway, Generation, Hello};
use platform_core::{id::GatewayId, json::Raw};
use platform_runtime::{report, settings};
use runner_model::gateway_agent::CommandMode;
use runner_store::{Error as StoreError, GatewayAgent, NewGatewayAgent};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{
    AgentApplier, AgentStep, ApplyError,
    remote_config::{self, ConfigChange},
};
use crate::{EffectiveCapabilities, GatewayPool};

/// Number of tries of a change, while other clients change the same.
const TRIES: usize = 5;
/// Longest wait until a gateway acts by its changed configuration, or knows an agent that it has created. OpenClaw 2026.9.6
/// takes less than a second.
const TAKE_TIMEOUT: Duration = Duration::from_secs(15);
/// Interval between questions whether it does.
const TAKE_INTERVAL: Duration = Duration::from_millis(300);

/// Agents of a gateway elsewhere.
pub(super) struct RemoteAgents<'a> {
    pub(super) applier: &'a AgentApplier<'a>,
    pub(super) pool: &'a GatewayPool,
    pub(super) id: &'a GatewayId,
    pub(super) gateway: &'a settings::Gateway,
    pub(super) stored: &'a [GatewayAgent],
}

/// Connection to a gateway elsewhere.
struct Connected<'a> {
    gateway: Gateway,
    hello: Hello,
    /// Provider through which it calls models.
    provider: &'a str,
}

/// Answer to `config.get`, as far as changes need it.
#[derive(Deserialize)]
struct ConfigAnswer<'a> {
    #[serde(borrow)]
    config: Option<Raw<'a>>,
    hash: Option<String>,
    /// Path of the file, at the gateway.
    path: Option<String>,
    #[serde(default, rename = "configRevisionHash")]
    revision_hash: Option<String>,
    #[serde(default, rename = "appliedConfigHash")]
    applied_hash: Option<String>,
}

/// Configuration of a gateway, as it was read.
struct ReadConfig {
    config: Value,
    /// Hash that a change names.
    hash: String,
    path: Option<String>,
    /// False if the gateway acts by another configuration. An older one does not say.
    is_applied: bool,
}

/// Answer to `exec.approvals.get`.
#[derive(Deserialize)]
struct ApprovalsAnswer<'a> {
    #[serde(borrow)]
    file: Option<Raw<'a>>,
    hash: Option<String>,
}

/// Answer to `agents.create`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreateAnswer {
    agent_id: String,
}

impl RemoteAgents<'_> {
    /// Applies all changes, one agent after the other. Fails only if the store does.
    pub(super) async fn apply(&self) -> Result<(), StoreError> {
        let changed: Vec<_> = self.stored.iter().filter(|agent| !agent.is_applied()).collect();
        for agent in &changed {
            self.applier.begin(agent, AgentStep::Agent).await?;
        }
        let connected = match self.connect().await {
            Ok(connected) => connected,
            Err(error) => {
                for agent in &changed {
                    self.applier.fail(agent, AgentStep::Agent, &error).await?;
                }
                return Ok(());
            }
        };
        for agent in changed {
            self.apply_one(&connected, agent).await?;
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Connected<'_>, ApplyError> {
        let (gateway, hello) = self.pool.named(self.id.as_str())?.connected().await?;
        Ok(Connected { gateway, hello, provider: &self.gateway.provider })
    }

    /// Gives agents in OpenClaw's own containers all their tools, where their list is empty by mistake.
    pub(super) async fn repair(&self) -> Result<(), ApplyError> {
        let connected = self.connect().await?;
        // An older version restarts when its configuration changes, under everybody's turns.
        if connected.hello.generation != Generation::Four {
            return Ok(());
        }
        let repaired = connected.repair().await?;
        if !repaired.is_empty() {
            let agents = repaired.join(", ");
            tracing::warn!(gateway = %self.id, agents, "empty tools of containers repaired: they are [\"*\"] now");
        }
        Ok(())
    }

    async fn apply_one(&self, connected: &Connected<'_>, stored: &GatewayAgent) -> Result<(), StoreError> {
        let mut agent = self.allowed(stored);
        let cannot_ask = connected.cannot_ask(&agent).await;
        if cannot_ask.is_some() {
            agent.settings.capabilities.commands = CommandMode::Off;
        }
        let agent = &agent;
        if stored.removed.is_some() {
            return match connected.delete(agent).await {
                Ok(()) => self.applier.finish(stored).await,
                Err(error) => self.applier.fail(stored, AgentStep::Agent, &error).await,
            };
        }
        for step in [AgentStep::Agent, AgentStep::Approvals, AgentStep::Tools] {
            self.applier.begin(stored, step).await?;
            let taken = match step {
                AgentStep::Approvals => connected.set_approvals(agent).await,
                AgentStep::Tools => connected.set_tools(agent).await,
                _ => connected.create_or_rename(agent).await,
            };
            if let Err(error) = taken {
                return self.applier.fail(stored, step, &error).await;
            }
            if let (AgentStep::Agent, Ok(Some(workspace))) = (step, connected.workspace(agent).await) {
                self.applier.store.store_gateway_agent_workspace(&agent.key, &workspace).await?;
            }
        }
        if let Some(error) = cannot_ask {
            return self.applier.fail(stored, AgentStep::Approvals, &error).await;
        }
        self.applier.begin(stored, AgentStep::Files).await?;
        match self.applier.write_files(&connected.gateway, stored).await? {
            Ok(()) => self.applier.finish(stored).await,
            Err(error) => self.applier.fail(stored, AgentStep::Files, &error).await,
        }
    }
}

impl RemoteAgents<'_> {
    /// Returns the agent with what the policy of its gateway allows.
    fn allowed(&self, stored: &GatewayAgent) -> NewGatewayAgent {
        let mut agent = stored.agent.clone();
        let wanted = &mut agent.settings.capabilities;
        let effective = EffectiveCapabilities::of(self.id.as_str(), self.gateway, wanted);
        wanted.commands = effective.commands.value;
        wanted.web = effective.web.value;
        wanted.files = effective.files.value;
        agent
    }
}

impl Connected<'_> {
    /// Returns why no person can be asked about the agent's commands there; `None` if one can, or need not be. The agent then
    /// runs none.
    async fn cannot_ask(&self, agent: &NewGatewayAgent) -> Option<ApplyError> {
        if agent.settings.capabilities.commands != CommandMode::Ask {
            return None;
        }
        if self.hello.generation != Generation::Four {
            return Some(ApplyError::CannotAsk("OpenClaw before 2026.8 runs commands without asking"));
        }
        let ReadConfig { config, .. } = self.config().await.ok()?;
        remote_config::is_sandboxed(&config, &agent.key.agent)
            .then_some(ApplyError::CannotAsk("commands in OpenClaw's own containers ask no person"))
    }

    /// Returns the configuration.
    async fn config(&self) -> Result<ReadConfig, ApplyError> {
        let method = "config.get";
        let answer = self.gateway.call(method, json!({})).await?;
        let read: ConfigAnswer<'_> = answer.read().map_err(|_error| ApplyError::Answer { method })?;
        let config = read.config.and_then(|config| config.read().ok());
        match (config, read.hash) {
            (Some(config), Some(hash)) => {
                let is_applied = read.applied_hash.is_none() || read.applied_hash == read.revision_hash;
                Ok(ReadConfig { config, hash, path: read.path, is_applied })
            }
            _ => Err(ApplyError::Answer { method }),
        }
    }

    /// Changes the configuration as `find` says, again while another client is faster.
    async fn change_config(&self, find: impl Fn(&Value) -> Option<ConfigChange>) -> Result<(), ApplyError> {
        for _ in 0..TRIES {
            let ReadConfig { config, hash, .. } = self.config().await?;
            let Some(change) = find(&config) else { return Ok(()) };
            if remote_config::writes_redacted(&change) {
                return Err(ApplyError::Hidden);
            }
            let mut params = json!({ "raw": change.merge.to_string(), "baseHash": hash });
            if self.hello.generation == Generation::Four {
                params["replacePaths"] = change.replaced.into();
            }
            match self.gateway.call("config.patch", params).await {
                Err(error) if is_conflict(&error) => {}
                answer => return Ok(answer.map(drop)?),
            }
        }
        Err(ApplyError::Contended)
    }

    /// Repairs empty lists of containers' tools; returns the agents.
    async fn repair(&self) -> Result<Vec<String>, ApplyError> {
        let ReadConfig { config, .. } = self.config().await?;
        let Some((names, _change)) = remote_config::sandbox_repair(&config) else { return Ok(Vec::new()) };
        self.change_config(|config| remote_config::sandbox_repair(config).map(|(_, change)| change)).await?;
        Ok(names)
    }

    async fn create_or_rename(&self, agent: &NewGatewayAgent) -> Result<(), ApplyError> {
        let ReadConfig { config, path, .. } = self.config().await?;
        let id = &agent.key.agent;
        let workspace = path.as_deref().and_then(|path| remote_config::workspace(path, id));
        let workspace = workspace.ok_or(ApplyError::Answer { method: "config.get" })?;
        let has_create = self.hello.has("agents.create");
        match remote_config::workspace_of(&config, id) {
            // An older version creates none and changes none: its operator has described the agent.
            Some(_) if !has_create => Ok(()),
            // An earlier try has created it.
            Some(own) if own == Some(&workspace) => self.update(agent).await,
            Some(_) => Err(ApplyError::Foreign(id.clone())),
            None if has_create => {
                self.create(agent, &workspace).await?;
                // It knows the agent a moment later.
                let updated = timeout(TAKE_TIMEOUT, async {
                    while self.update(agent).await.is_err() {
                        sleep(TAKE_INTERVAL).await;
                    }
                });
                drop(updated.await);
                self.update(agent).await
            }
            None => {
                let version = self.hello.version.as_str().to_owned();
                Err(ApplyError::CreatesNone { version, agent: id.clone() })
            }
        }
    }

    async fn update(&self, agent: &NewGatewayAgent) -> Result<(), ApplyError> {
        let model = self.model(agent);
        let params = json!({ "agentId": agent.key.agent, "name": agent.settings.name, "model": model });
        self.gateway.call("agents.update", params).await?;
        Ok(())
    }

    /// Returns the agent's model, as the gateway names it.
    fn model(&self, agent: &NewGatewayAgent) -> Option<String> {
        agent.settings.model.as_ref().map(|model| format!("{}/{model}", self.provider))
    }

    /// Returns the directory of the agent's files, if the configuration names one.
    async fn workspace(&self, agent: &NewGatewayAgent) -> Result<Option<String>, ApplyError> {
        let ReadConfig { config, .. } = self.config().await?;
        Ok(remote_config::workspace_of(&config, &agent.key.agent).flatten().map(str::to_owned))
    }

    async fn create(&self, agent: &NewGatewayAgent, workspace: &str) -> Result<(), ApplyError> {
        let method = "agents.create";
        // The gateway makes the id of the name, which may have changed since.
        let params = json!({ "name": agent.key.agent, "workspace": workspace });
        let answer = self.gateway.call(method, params).await?;
        let created: CreateAnswer = answer.read().map_err(|_error| ApplyError::Answer { method })?;
        if created.agent_id == agent.key.agent.as_str() {
            return Ok(());
        }
        let stray = json!({ "agentId": created.agent_id, "deleteFiles": false });
        if let Err(error) = self.gateway.call("agents.delete", stray).await {
            tracing::warn!(
                agent = created.agent_id,
                error = report::chain(&error),
                "stray agent not deleted"
            );
        }
        Err(ApplyError::OtherId { given: created.agent_id, wanted: agent.key.agent.clone() })
    }

    /// Deletes an agent that was made here, with its approvals. Its files stay: they may be all that is left of its work.
    async fn delete(&self, agent: &NewGatewayAgent) -> Result<(), ApplyError> {
        let ReadConfig { config, path, .. } = self.config().await?;
        let id = &agent.key.agent;
        let workspace = path.as_deref().and_then(|path| remote_config::workspace(path, id));
        let is_own =
            workspace.is_some() && remote_config::workspace_of(&config, id) == Some(workspace.as_deref());
        if is_own && self.hello.has("agents.delete") {
            let params = json!({ "agentId": id, "deleteFiles": false });
            self.gateway.call("agents.delete", params).await?;
        }
        self.change_approvals(|file| remote_config::approvals_without(file, id)).await
    }

    async fn set_approvals(&self, agent: &NewGatewayAgent) -> Result<(), ApplyError> {
        let capabilities = &agent.settings.capabilities;
        self.change_approvals(|file| remote_config::approvals_with(file, &agent.key.agent, capabilities))
            .await
    }

    /// Changes the approvals as `find` says, again while another client is faster.
    async fn change_approvals(&self, find: impl Fn(&Value) -> Option<Value>) -> Result<(), ApplyError> {
        let method = "exec.approvals.get";
        for _ in 0..TRIES {
            let answer = self.gateway.call(method, json!({})).await?;
            let unreadable = ApplyError::Answer { method };
            let read: ApprovalsAnswer<'_> = answer.read().map_err(|_error| ApplyError::Answer { method })?;
            let file: Value = read.file.and_then(|file| file.read().ok()).ok_or(unreadable)?;
            let Some(changed) = find(&file) else { return Ok(()) };
            let params = json!({ "file": changed, "baseHash": read.hash });
            match self.gateway.call("exec.approvals.set", params).await {
                Err(error) if is_conflict(&error) => {}
                answer => return Ok(answer.map(drop)?),
            }
        }
        Err(ApplyError::Contended)
    }

    /// Sets the tools, and waits until the gateway acts by them.
    async fn set_tools(&self, agent: &NewGatewayAgent) -> Result<(), ApplyError> {
        self.change_config(|config| remote_config::tool_change(config, agent)).await?;
        let taken = timeout(TAKE_TIMEOUT, async {
            while !self.config().await?.is_applied {
                sleep(TAKE_INTERVAL).await;
            }
            Ok(())
        });
        let late = |_elapsed| Err(ApplyError::NotTaken { seconds: TAKE_TIMEOUT.as_secs(), issue: None });
        taken.await.unwrap_or_else(late)
    }
}

/// Returns whether another client has changed the state since it was read. OpenClaw has no code for it: the request is
/// invalid, and the message says that something `changed since last load`.
fn is_conflict(error: &BridgeError) -> bool {
    match error {
        BridgeError::Refused { code, message, .. } => {
            *code == Code::new("INVALID_REQUEST") && message.contains("changed since last load")
        }
        _ => false,
    }
}
