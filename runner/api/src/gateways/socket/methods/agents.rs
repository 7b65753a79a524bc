//! Lists, makes, changes and removes agents. Changes are stored, and `sluice up` gives them to the gateway.

use platform_core::id::ModelName;
use runner_model::gateway_agent::{AgentName, AvatarSeed};
use runner_store::{GatewayAgentAdded, GatewayAgentChanged, MAX_GATEWAY_AGENTS};
use serde_json::{Value, json};

use super::{MethodCall, service::SHOWN_FOLDER};
use crate::{
    error::Error,
    gateways::{
        agents::check_model,
        socket::{
            refusal::{RETRY_DELAY, SocketRefusal},
            session_key::MAIN,
            tenant::{KnownAgent, SocketTenant},
        },
    },
};

impl MethodCall {
    pub(super) async fn list_agents(&self) -> Result<Value, SocketRefusal> {
        let agents = self.tenant.agents().await?;
        let default = SocketTenant::default_agent(&agents).map_or(MAIN, |agent| agent.id.as_str());
        let list: Vec<_> = agents
            .iter()
            .map(|KnownAgent { id, name, .. }| json!({ "id": id.as_str(), "name": name, "identity": { "name": name } }))
            .collect();
        Ok(json!({ "defaultId": default, "mainKey": MAIN, "scope": "per-sender", "agents": list }))
    }

    pub(super) async fn identify_agent(&self) -> Result<Value, SocketRefusal> {
        let agent = match self.params.part("sessionKey") {
            Some(_) => self.named_session("sessionKey").await?.agent.to_string(),
            None => {
                let named: Option<String> = self.params.optional("agentId")?;
                self.tenant.agent(named.as_deref()).await?.id.to_string()
            }
        };
        let KnownAgent { id, name, .. } = self.tenant.agent(Some(&agent)).await?;
        Ok(json!({ "agentId": id.as_str(), "name": name }))
    }

    pub(super) async fn create_agent(&self) -> Result<Value, SocketRefusal> {
        let name: AgentName = self.params.required("name")?;
        let avatar: Option<AvatarSeed> = self.params.optional("avatar")?;
        self.refuse_foreign_workspace()?;
        let settings = self.tenant.settings();
        let found = self.tenant.found(&settings)?;
        let key = found.key_to_change(&self.tenant.caller, name.id().as_str())?;
        let new = runner_gateways::new_agent(found.gateway, key, name.clone(), avatar);
        match self.tenant.store().add_gateway_agent(&new).await? {
            GatewayAgentAdded::New(_) => {
                tracing::info!(agent = %new.key, by = self.tenant.caller.name(), "agent of a gateway made");
                let agent = new.key.agent.as_str();
                let workspace = format!("{SHOWN_FOLDER}/{agent}");
                Ok(json!({ "ok": true, "agentId": agent, "name": name.to_string(), "workspace": workspace }))
            }
            GatewayAgentAdded::Exists(_) => {
                let message = format!("agent \"{}\" already exists: choose another name", new.key.agent);
                Err(SocketRefusal::invalid("AGENT_EXISTS", message))
            }
            GatewayAgentAdded::TooMany => Err(Error::GatewayAgentsExhausted(MAX_GATEWAY_AGENTS).into()),
        }
    }

    /// Refuses a workspace but one below the folder that `config.get` shows. Clients name one there, and the gateway chooses
    /// the place.
    fn refuse_foreign_workspace(&self) -> Result<(), SocketRefusal> {
        let Some(workspace) = self.params.optional::<String>("workspace")? else { return Ok(()) };
        let is_shown = workspace
            .split_once('/')
            .is_some_and(|(folder, name)| folder == SHOWN_FOLDER && !name.contains(['/', '\\']));
        if is_shown {
            return Ok(());
        }
        let why =
            format!("at /workspace: must be `{SHOWN_FOLDER}/NAME`, or absent: the gateway chooses the place");
        Err(self.refuse(&why))
    }

    pub(super) async fn update_agent(&self) -> Result<Value, SocketRefusal> {
        let name: Option<AgentName> = self.params.optional("name")?;
        let avatar: Option<AvatarSeed> = self.params.optional("avatar")?;
        let model: Option<String> = self.params.optional("model")?;
        let model = model.as_deref().map(ModelName::parse).transpose();
        let model = model.map_err(|error| self.refuse(&format!("at /model: {error}")))?;
        let settings = self.tenant.settings();
        if let Some(model) = &model {
            check_model(&self.tenant.context, &settings, model).await?;
        }
        let found = self.tenant.found(&settings)?;
        let agent = self.params.text("agentId")?;
        let key = found.key_to_change(&self.tenant.caller, &agent)?;
        let stored = found.stored(self.tenant.store(), &self.tenant.caller, &key).await?;
        let mut wanted = stored.agent.settings;
        wanted.name = name.unwrap_or(wanted.name);
        wanted.avatar = avatar.or(wanted.avatar);
        wanted.model = model.or(wanted.model);
        match self.tenant.store().change_gateway_agent(&key, stored.revision, &wanted).await? {
            GatewayAgentChanged::Changed(_) => Ok(json!({ "ok": true, "agentId": key.agent.as_str() })),
            GatewayAgentChanged::Conflict(_) => Err(SocketRefusal::unavailable(
                "AGENT_CHANGED",
                "the agent was changed at the same moment: look at it, and change it again",
                RETRY_DELAY,
            )),
            GatewayAgentChanged::Unknown => Err(Error::Route.into()),
        }
    }

    pub(super) async fn delete_agent(&self) -> Result<Value, SocketRefusal> {
        if self.params.optional("deleteFiles")?.unwrap_or(false) {
            return Err(
                self.refuse("at /deleteFiles: must be false: the files of an agent stay at its gateway")
            );
        }
        let settings = self.tenant.settings();
        let found = self.tenant.found(&settings)?;
        let agent = self.params.text("agentId")?;
        let key = found.key_to_change(&self.tenant.caller, &agent)?;
        found.stored(self.tenant.store(), &self.tenant.caller, &key).await?;
        self.tenant.store().remove_gateway_agent(&key).await?.ok_or(Error::Route)?;
        tracing::info!(agent = %key, by = self.tenant.caller.name(), "agent of a gateway removed");
        Ok(json!({ "ok": true, "agentId": key.agent.as_str(), "removedBindings": 0 }))
    }
}
