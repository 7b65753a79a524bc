//! Explains what an agent of a gateway may do: for each tool, the layer that allows or denies it, and the setting to change.
//! Pure.
//!
//! A tool passes four layers: the policy of this host, the tools of gateway and agent, those of its sandbox, and the
//! approvals of commands. The first that denies it is named.

use platform_core::id::GatewayAgentId;
use platform_runtime::settings::Gateway;
use serde_json::Value;

use crate::{
    managed::{self, ReadConfig},
    tool_groups,
};

/// Tools that OpenClaw's own containers lack by default.
const DENIED_IN_CONTAINERS: [&str; 4] = ["browser", "canvas", "cron", "gateway"];

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

/// Configuration of a gateway, as it applies to one agent.
struct AgentConfig<'c> {
    gateway_id: &'c str,
    gateway: &'c Gateway,
    config: &'c Value,
    /// Approvals of commands beside the configuration; null if unknown.
    approvals: &'c Value,
    agent: &'c str,
    /// Entry of the agent.
    entry: &'c Value,
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

impl AgentConfig<'_> {
    /// Returns a setting of the agent, or the one of all agents.
    fn setting(&self, path: &[&str]) -> Option<&Value> {
        let own = path.iter().try_fold(self.entry, |value, name| value.get(name));
        let defaults = self.config.pointer("/agents/defaults");
        own.or_else(|| path.iter().try_fold(defaults?, |value, name| value.get(name)))
    }

    fn sandbox(&self) -> Sandbox {
        let access = match self.setting(&["sandbox", "workspaceAccess"]).and_then(Value::as_str) {
            Some("rw") => WorkspaceAccess::Whole,
            Some("ro") => WorkspaceAccess::ReadOnly,
            _ => WorkspaceAccess::Absent,
        };
        match self.setting(&["sandbox", "mode"]).and_then(Value::as_str) {
            Some("all") => Sandbox::All(access),
            Some("non-main") => Sandbox::NonMain(access),
            _ => Sandbox::Off,
        }
    }

    fn explain(&self, tool: &'static str, sandbox: &Sandbox) -> ToolExplanation {
        let explained = self.first_layer(tool, sandbox);
        let setting = explained.setting.map(|path| self.settable(path));
        ToolExplanation { setting, ..explained }
    }

    /// Returns what a person can change where the file says `path`: of a managed gateway, only Sluicegate writes it.
    fn settable(&self, path: String) -> String {
        if !self.gateway.is_managed() || path.starts_with("gateways.") {
            return path;
        }
        match path.strip_prefix("tools.") {
            Some(_) => format!("gateways.{}.tools", self.gateway_id),
            None => format!("sluice gateway agents set {} {}", self.gateway_id, self.agent),
        }
    }

    fn first_layer(&self, tool: &'static str, sandbox: &Sandbox) -> ToolExplanation {
        let layers = [
            self.host_policy(tool),
            self.gateway_tools(tool),
            self.sandbox_tools(tool, sandbox),
            self.approvals(tool),
        ];
        layers.into_iter().flatten().next().unwrap_or_else(|| ToolExplanation {
            tool,
            verdict: ToolAccess::Allowed,
            layer: Layer::GatewayTools,
            reason: "no list leaves it out".to_owned(),
            setting: Some(format!("{}.tools.deny", self.place())),
        })
    }

    /// Denies what agents of a managed gateway never have.
    fn host_policy(&self, tool: &'static str) -> Option<ToolExplanation> {
        let names = tool_groups::names_of(tool);
        let is_denied = self.gateway.is_managed()
            && managed::never_allowed(self.gateway).any(|denied| names.contains(&denied));
        let reason = match self.gateway.account {
            None => "accounts share this gateway, so its agents run no commands and read no files",
            Some(_) => "a gateway that runs here has no network, and its agents reach no other session",
        };
        let own = self.gateway.account.is_none().then(|| format!("gateways.{}.account", self.gateway_id));
        is_denied.then(|| ToolExplanation {
            tool,
            verdict: ToolAccess::Denied,
            layer: Layer::HostPolicy,
            reason: reason.to_owned(),
            setting: own,
        })
    }

    /// Denies what a list of the agent or of the gateway denies, or leaves out.
    fn gateway_tools(&self, tool: &'static str) -> Option<ToolExplanation> {
        let lists = [(self.place(), self.entry.get("tools")), (String::new(), self.config.get("tools"))];
        let denied = |reason: String, setting: String| ToolExplanation {
            tool,
            verdict: ToolAccess::Denied,
            layer: Layer::GatewayTools,
            reason,
            setting: Some(setting),
        };
        lists.into_iter().find_map(|(place, tools)| {
            let setting = |list: &str| {
                let path = if place.is_empty() { String::new() } else { format!("{place}.") };
                format!("{path}tools.{list}")
            };
            if let Some(name) = listed(tools, "deny", tool) {
                return Some(denied(format!("`{name}` is denied"), setting("deny")));
            }
            let allows = tools.and_then(|tools| tools.get("allow")).and_then(Value::as_array);
            let leaves_out = allows.is_some_and(|allowed| !allowed.is_empty())
                && listed(tools, "allow", tool).is_none()
                && listed(tools, "alsoAllow", tool).is_none();
            leaves_out.then(|| denied("the list of allowed tools leaves it out".to_owned(), setting("allow")))
        })
    }

    /// Denies what OpenClaw's own containers lack.
    fn sandbox_tools(&self, tool: &'static str, sandbox: &Sandbox) -> Option<ToolExplanation> {
        let access = sandbox.access()?;
        let denied = |reason: &str, setting: String| ToolExplanation {
            tool,
            verdict: ToolAccess::Denied,
            layer: Layer::SandboxTools,
            reason: reason.to_owned(),
            setting: Some(setting),
        };
        let writes = ["write", "edit", "apply_patch"];
        if access == WorkspaceAccess::ReadOnly && writes.contains(&tool) {
            let setting = format!("{}.sandbox.workspaceAccess", self.place());
            return Some(denied(
                "its containers read the agent's directory, and write nothing there",
                setting,
            ));
        }
        let own = self.entry.pointer("/tools/sandbox/tools");
        let tools = own.or_else(|| self.config.pointer("/tools/sandbox/tools"));
        let setting = |list: &str| format!("{}.tools.sandbox.tools.{list}", self.place());
        if listed(tools, "deny", tool).is_some() {
            return Some(denied("its containers' list denies it", setting("deny")));
        }
        let lists = tools.is_some_and(|tools| tools.get("allow").is_some() || tools.get("deny").is_some());
        if !lists && DENIED_IN_CONTAINERS.contains(&tool) {
            return Some(denied(
                "OpenClaw's containers lack it unless a list says otherwise",
                setting("allow"),
            ));
        }
        let allowed = tools.and_then(|tools| tools.get("allow")).and_then(Value::as_array)?;
        let reason = match allowed.is_empty() {
            true => "its containers' list is empty, which leaves `image` alone",
            false => "its containers' list leaves it out",
        };
        listed(tools, "allow", tool).is_none().then(|| denied(reason, setting("allow")))
    }

    /// Says that a person decides about each command.
    fn approvals(&self, tool: &'static str) -> Option<ToolExplanation> {
        let path = ["tools", "exec"];
        let of = |root: &Value, name: &str| -> Option<String> {
            let exec = path.iter().try_fold(root, |value, name| value.get(name))?;
            exec.get(name).and_then(Value::as_str).map(str::to_owned)
        };
        let value = |name: &str| of(self.entry, name).or_else(|| of(self.config, name));
        if tool != "exec" {
            return None;
        }
        let explained = |verdict, reason: String, name: &str| {
            let setting = Some(format!("{}.tools.exec.{name}", self.place()));
            Some(ToolExplanation { tool, verdict, layer: Layer::Approvals, reason, setting })
        };
        let stored = &self.approvals["agents"][self.agent];
        match (stored["security"].as_str(), stored["ask"].as_str()) {
            (Some("deny"), _) => return self.by_approvals(tool, ToolAccess::Denied),
            (_, Some("always")) => return self.by_approvals(tool, ToolAccess::Asks),
            _ => {}
        }
        match (value("security").as_deref(), value("ask").as_deref()) {
            (Some("deny"), _) => explained(ToolAccess::Denied, "commands are refused".to_owned(), "security"),
            // Every command is on the list of all, so none is missed.
            (Some("full"), Some("on-miss")) => None,
            (_, Some(ask @ ("always" | "on-miss"))) => {
                explained(ToolAccess::Asks, format!("a person decides about commands ({ask})"), "ask")
            }
            _ => None,
        }
    }

    /// Explains what the gateway's approvals, beside its configuration, say about commands.
    fn by_approvals(&self, tool: &'static str, verdict: ToolAccess) -> Option<ToolExplanation> {
        let reason = match verdict {
            ToolAccess::Denied => "the gateway's approvals refuse its commands",
            _ => "the gateway's approvals have a person decide about its commands",
        };
        let setting = format!("exec.approvals of agent {}, at the gateway", self.agent);
        let reason = reason.to_owned();
        Some(ToolExplanation { tool, verdict, layer: Layer::Approvals, reason, setting: Some(setting) })
    }

    /// Returns the path of the agent's entry in the configuration.
    fn place(&self) -> String {
        let is_list = self.config.pointer("/agents/entries").is_none();
        if is_list {
            format!("agents.list[{}]", self.agent)
        } else {
            format!("agents.entries.{}", self.agent)
        }
    }
}

/// Returns the name by which the list `list` has `tool`, if it does.
fn listed<'c>(tools: Option<&'c Value>, list: &str, tool: &str) -> Option<&'c str> {
    let names = tool_groups::names_of(tool);
    let mut listed = tools?.get(list)?.as_array()?.iter().filter_map(Value::as_str);
    listed.find(|name| names.contains(name))
}

#[cfg(test)]
mod tests;
