//! Finds the layer that decides about a tool. Pure.

use platform_runtime::settings::Gateway;
use serde_json::Value;

use super::{Layer, Sandbox, ToolAccess, ToolExplanation, WorkspaceAccess};
use crate::{managed, tool_groups};

/// Tools that OpenClaw's own containers lack by default.
const DENIED_IN_CONTAINERS: [&str; 4] = ["browser", "canvas", "cron", "gateway"];

/// Configuration of a gateway, as it applies to one agent.
pub(super) struct AgentConfig<'c> {
    pub(super) gateway_id: &'c str,
    pub(super) gateway: &'c Gateway,
    pub(super) config: &'c Value,
    /// Approvals of commands beside the configuration; null if unknown.
    pub(super) approvals: &'c Value,
    pub(super) agent: &'c str,
    /// Entry of the agent.
    pub(super) entry: &'c Value,
}

impl AgentConfig<'_> {
    /// Returns a setting of the agent, or the one of all agents.
    pub(super) fn setting(&self, path: &[&str]) -> Option<&Value> {
        let own = path.iter().try_fold(self.entry, |value, name| value.get(name));
        let defaults = self.config.pointer("/agents/defaults");
        own.or_else(|| path.iter().try_fold(defaults?, |value, name| value.get(name)))
    }

    pub(super) fn sandbox(&self) -> Sandbox {
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

    pub(super) fn explain(&self, tool: &'static str, sandbox: &Sandbox) -> ToolExplanation {
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
        let by_lists = lists.into_iter().find_map(|(place, tools)| {
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
        });
        by_lists.or_else(|| {
            let (place, profile) = self.profile()?;
            let is_added = [self.entry, self.config]
                .iter()
                .any(|of| listed(of.get("tools"), "alsoAllow", tool).is_some());
            let leaves_out = !is_added && !tool_groups::profile(profile)?.contains(&tool);
            leaves_out.then(|| denied(format!("the profile `{profile}` leaves it out"), place))
        })
    }

    /// Returns the profile of tools that applies to the agent, with the path of its setting.
    fn profile(&self) -> Option<(String, &str)> {
        let own = self.entry.pointer("/tools/profile").and_then(Value::as_str);
        let of_all = self.config.pointer("/tools/profile").and_then(Value::as_str);
        let own = own.map(|name| (format!("{}.tools.profile", self.place()), name));
        own.or_else(|| of_all.map(|name| ("tools.profile".to_owned(), name)))
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
    listed.find(|name| names.contains(name) || tool_groups::matches(name, tool))
}
