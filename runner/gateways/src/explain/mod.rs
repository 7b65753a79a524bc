//! Explains what an agent of a gateway may do: for each tool, the layer that allows or denies it, and the setting to change.
//! Pure.
//!
//! A tool passes four layers: the policy of this host, the tools of gateway and agent, those of its sandbox, and the
//! approvals of commands. The first that denies it is named.

mod layers;

use platform_core::id::GatewayAgentId;
use platform_runtime::settings::Gateway;
use serde_json::Value;

use self::layers::AgentConfig;
use crate::{managed::ReadConfig, tool_groups};

/// Directories and tools of an agent, with the reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// OpenClaw's own containers for the agent's sessions.
    pub sandbox: Sandbox,
    /// Directory of the agent's files.
    pub workspace: String,
    /// Tools about which people ask.
    pub tools: Vec<ToolExplanation>,
}

/// OpenClaw's own containers for an agent's sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sandbox {
    /// Sessions run beside the gateway.
    Off,
    /// All but its main session run in containers.
    NonMain(WorkspaceAccess),
    /// All sessions run in containers.
    All(WorkspaceAccess),
}

/// Access of OpenClaw's containers to the agent's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceAccess {
    /// Tools work in the agent's directory.
    Whole,
    /// Tools work elsewhere; commands read the agent's directory at `/agent`.
    ReadOnly,
    /// Tools work elsewhere.
    Absent,
}

/// Verdict about one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolExplanation {
    /// Name of the tool.
    pub tool: &'static str,
    /// The verdict.
    pub verdict: ToolAccess,
    /// Layer that decides.
    pub layer: Layer,
    /// Reason, in words.
    pub reason: String,
    /// Setting that changes it; absent where none does.
    pub setting: Option<String>,
}

/// Verdict about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolAccess {
    /// The agent may use the tool.
    Allowed,
    /// A person decides about each use.
    Asks,
    /// The agent may not use the tool.
    Denied,
}

/// Layer that decides about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// Policy of Sluicegate on this host.
    HostPolicy,
    /// Tools of the gateway and of its agent.
    GatewayTools,
    /// Tools of OpenClaw's own containers.
    SandboxTools,
    /// Approvals of commands.
    Approvals,
}

impl Sandbox {
    /// Returns the state in words.
    #[must_use]
    pub const fn words(&self) -> &'static str {
        match self {
            Self::Off => "off: its sessions run beside the gateway",
            Self::NonMain(_) => "non-main: all sessions but the main one run in containers of OpenClaw",
            Self::All(_) => "all: each session runs in a container of OpenClaw",
        }
    }

    /// Returns whether all of the agent's sessions that runs use are in containers of OpenClaw.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        !matches!(self, Self::Off)
    }

    const fn access(&self) -> Option<WorkspaceAccess> {
        match self {
            Self::Off => None,
            Self::NonMain(access) | Self::All(access) => Some(*access),
        }
    }
}

impl ToolAccess {
    /// Returns the verdict as a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Asks => "asks",
            Self::Denied => "denied",
        }
    }
}

impl Layer {
    /// Returns the layer's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HostPolicy => "host policy",
            Self::GatewayTools => "gateway tools",
            Self::SandboxTools => "sandbox tools",
            Self::Approvals => "approvals",
        }
    }
}

/// Explains what `agent` may do in a gateway with the configuration in `read`; `None` if the gateway has no such agent.
#[must_use]
pub fn explain(
    gateway_id: &str,
    gateway: &Gateway,
    read: &ReadConfig,
    agent: &GatewayAgentId,
) -> Option<Explanation> {
    let config = &read.config;
    let entry = entry_of(config, agent.as_str())?;
    let approvals = read.approvals.as_ref().unwrap_or(&Value::Null);
    let agent = AgentConfig { gateway_id, gateway, config, approvals, agent: agent.as_str(), entry };
    let sandbox = agent.sandbox();
    let workspace = agent.setting(&["workspace"]).and_then(Value::as_str).unwrap_or("its default").to_owned();
    let tools = tool_groups::tools().map(|tool| agent.explain(tool, &sandbox)).collect();
    Some(Explanation { sandbox, workspace, tools })
}

/// Returns the entry of an agent: newer versions have `agents.entries`, older ones `agents.list`.
fn entry_of<'c>(config: &'c Value, agent: &str) -> Option<&'c Value> {
    let named = config.pointer("/agents/entries").and_then(|entries| entries.get(agent));
    let is_it = |entry: &&Value| entry.get("id").and_then(Value::as_str) == Some(agent);
    let listed = config.pointer("/agents/list").and_then(Value::as_array);
    named.or_else(|| listed?.iter().find(is_it))
}

#[cfg(test)]
mod tests;
