//! Shows agents of gateways: what is wanted of each, what applies, and how far its gateway has it.

use std::collections::BTreeSet;

use platform_core::id::{AccountId, GatewayAgentId, GatewayId, ModelName};
use platform_runtime::settings::Gateway;
use runner_gateways::{Effective, EffectiveCapabilities, managed};
use runner_model::gateway_agent::{AgentName, AllowedCommand, AvatarSeed, Capabilities, CommandMode, Switch};
use runner_store::{GatewayAgent, GatewayAgentSettings};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{operation::schemas, rfc3339::rfc3339};

/// Agents of a gateway.
#[derive(Serialize, ToSchema)]
#[schema(as = GatewayAgentList)]
pub(super) struct GatewayAgentListView {
    pub(super) agents: Vec<GatewayAgentView>,
}

/// Agent of a gateway.
#[derive(Serialize, ToSchema)]
#[schema(as = GatewayAgent)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GatewayAgentView {
    gateway: String,
    /// Id of the agent in its gateway, as orders name it.
    id: String,
    /// The only account that the gateway serves; null if it is shared.
    #[schema(value_type = Option<schemas::AccountId>, required = true)]
    account: Option<AccountId>,
    /// `configuration`, if the configuration file describes it, and only that changes it; else `stored`.
    source: &'static str,
    name: String,
    /// Text from which its picture is drawn; its name if null.
    #[schema(required = true)]
    avatar: Option<String>,
    /// Model of its runs; that of the ordered agent if null.
    #[schema(required = true)]
    model: Option<String>,
    /// Directory of its files at its gateway; null before the gateway has the agent.
    #[schema(required = true)]
    workspace: Option<String>,
    /// `off`, `ask` or `auto`.
    commands: &'static str,
    /// `off` or `on`.
    web: &'static str,
    /// `off` or `on`.
    files: &'static str,
    /// Commands that run without asking while `commands` is `ask`.
    allowed_commands: Vec<String>,
    effective: EffectiveView,
    /// Number of its changes; 0 if the configuration describes it.
    revision: u64,
    /// `applied`, `applying`, `failed` or `removing`.
    state: &'static str,
    /// Step that is being taken, or that failed: `configuration`, `agent`, `approvals`, `tools` or `files`.
    #[schema(required = true)]
    step: Option<String>,
    /// Reason why the step failed; it is tried again.
    #[schema(required = true)]
    problem: Option<String>,
    #[schema(required = true, format = DateTime)]
    created_at: Option<String>,
    #[schema(required = true, format = DateTime)]
    changed_at: Option<String>,
}

/// Capabilities that apply. The gateway's policy may be stricter than what is wanted.
#[derive(Serialize, ToSchema)]
#[schema(as = GatewayAgentEffect)]
struct EffectiveView {
    commands: EffectView,
    web: EffectView,
    files: EffectView,
}

/// Value that applies.
#[derive(Serialize, ToSchema)]
#[schema(as = CapabilityEffect)]
struct EffectView {
    value: &'static str,
    /// Reason why it is stricter than what is wanted.
    #[schema(required = true)]
    reason: Option<String>,
}

/// Settings of an agent, as a client sends them.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = GatewayAgentSettings)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SettingsBody {
    /// Revision that the change was made from.
    #[schema(minimum = 1)]
    pub(super) revision: u64,
    /// Name for people. It does not change the id.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    name: AgentName,
    #[schema(value_type = Option<String>)]
    avatar: Option<AvatarSeed>,
    #[schema(value_type = Option<schemas::ModelName>)]
    model: Option<ModelName>,
    #[schema(value_type = schemas::CommandMode)]
    commands: CommandMode,
    #[schema(value_type = schemas::CapabilitySwitch)]
    web: Switch,
    #[schema(value_type = schemas::CapabilitySwitch)]
    files: Switch,
    #[schema(value_type = Vec<String>, max_items = 200)]
    allowed_commands: BTreeSet<AllowedCommand>,
}

impl SettingsBody {
    pub(super) fn settings(self) -> GatewayAgentSettings {
        let Self { name, avatar, model, commands, web, files, allowed_commands, .. } = self;
        let capabilities = Capabilities { commands, web, files, allowed_commands };
        GatewayAgentSettings { name, avatar, model, capabilities }
    }
}

impl EffectiveView {
    fn of(id: &GatewayId, gateway: &Gateway, wanted: &Capabilities) -> Self {
        let EffectiveCapabilities { commands, web, files } =
            EffectiveCapabilities::of(id.as_str(), gateway, wanted);
        let switch =
            |switch: Effective<Switch>| EffectView { value: switch.value.word(), reason: switch.reason };
        Self {
            commands: EffectView { value: commands.value.word(), reason: commands.reason },
            web: switch(web),
            files: switch(files),
        }
    }
}

impl GatewayAgentView {
    /// Shows an agent that people made.
    pub(super) fn of(stored: GatewayAgent, id: &GatewayId, gateway: &Gateway) -> Self {
        let state = stored.state_word();
        let agent = stored.agent;
        let GatewayAgentSettings { name, avatar, model, capabilities } = agent.settings;
        Self {
            gateway: agent.key.gateway.to_string(),
            id: agent.key.agent.to_string(),
            account: agent.account,
            source: "stored",
            name: name.to_string(),
            avatar: avatar.map(String::from),
            model: model.map(|model| model.to_string()),
            workspace: Some(agent.workspace).filter(|path| !path.is_empty()),
            commands: capabilities.commands.word(),
            web: capabilities.web.word(),
            files: capabilities.files.word(),
            effective: EffectiveView::of(id, gateway, &capabilities),
            allowed_commands: capabilities.allowed_commands.into_iter().map(String::from).collect(),
            revision: stored.revision,
            state,
            step: stored.step,
            problem: stored.problem,
            created_at: Some(rfc3339(stored.created)),
            changed_at: Some(rfc3339(stored.changed)),
        }
    }

    /// Shows an agent that the configuration describes.
    pub(super) fn of_configuration(agent: &GatewayAgentId, id: &GatewayId, gateway: &Gateway) -> Self {
        let capabilities = Capabilities::default();
        Self {
            gateway: id.to_string(),
            id: agent.to_string(),
            account: gateway.account.clone(),
            source: "configuration",
            name: agent.to_string(),
            avatar: None,
            model: None,
            workspace: gateway.is_managed().then(|| managed::agent_workspace(agent.as_str())),
            commands: capabilities.commands.word(),
            web: capabilities.web.word(),
            files: capabilities.files.word(),
            effective: EffectiveView::of(id, gateway, &capabilities),
            allowed_commands: Vec::new(),
            revision: 0,
            state: "applied",
            step: None,
            problem: None,
            created_at: None,
            changed_at: None,
        }
    }
}
