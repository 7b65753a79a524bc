//! Reads the agents of OpenClaw that an entry describes. A run names one, and its container gets that agent's id and tools.
//! One variable has both, so an image of OpenClaw that does not know of tools refuses it. Other images ignore it.

use std::collections::BTreeMap;

use platform_core::{id::GatewayAgentId, name::env};
use serde::{Deserialize, Serialize};

use super::Agent;
use crate::config::{Section, settings, written_as_word};

/// Key of the agents in an entry.
const NAME: &str = "openclaw_agents";

settings! {
    /// `[agents."family:name".openclaw_agents.ID]`
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct OpenclawAgent read from section {
        /// Tools that it has: `exec`, `process`, `read`, `write`, `edit`, `apply_patch`. All if absent, none if empty.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub tools: Option<Vec<OpenclawTool>> => list(),
    }
}

/// Tool of OpenClaw that an agent in a sandbox may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpenclawTool {
    /// Runs commands.
    Exec,
    /// Watches and ends commands that go on.
    Process,
    /// Reads files.
    Read,
    /// Writes files.
    Write,
    /// Replaces text in files.
    Edit,
    /// Applies patches to files.
    ApplyPatch,
}

written_as_word!(OpenclawTool {
    Exec: "exec",
    Process: "process",
    Read: "read",
    Write: "write",
    Edit: "edit",
    ApplyPatch: "apply_patch",
});

impl OpenclawTool {
    const ALL: [Self; 6] = [Self::Exec, Self::Process, Self::Read, Self::Write, Self::Edit, Self::ApplyPatch];

    /// Returns the name under which OpenClaw knows it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Process => "process",
            Self::Read => "read",
            Self::Write => "write",
            Self::Edit => "edit",
            Self::ApplyPatch => "apply_patch",
        }
    }
}

/// Reads the agents of OpenClaw of an agent's entry.
pub(super) fn read(section: &Section<'_>) -> BTreeMap<GatewayAgentId, OpenclawAgent> {
    let doc = "With the image of OpenClaw: agents that its runs may name, by id, each with its `tools`. A run that names none is `main`, which has all of them unless it is described here.";
    let read = |id: &str, section: &Section<'_>| {
        let agent = OpenclawAgent::read(section);
        let id = GatewayAgentId::parse(id).map_err(|error| section.reject_itself(error.to_string())).ok()?;
        Some((id, agent))
    };
    section.each(NAME, doc, read).into_iter().flatten().collect()
}

/// Reports a variable of an entry that names an agent of OpenClaw, too. One of both would be ignored.
pub(super) fn refuse_variable(section: &Section<'_>, agent: &Agent) {
    let name = env::SANDBOX_OPENCLAW_AGENT;
    if !agent.openclaw_agents.is_empty() && agent.environment.contains_key(name) {
        let problem =
            format!("{name} is set for each run, from `{NAME}`: leave it out here, and say it there");
        section.reject("environment", problem);
    }
}

impl Agent {
    /// Returns the agents of OpenClaw that a run may name, the one of a run that names none first; empty if the entry
    /// describes none.
    #[must_use]
    pub fn openclaw_agent_ids(&self) -> Vec<String> {
        if self.openclaw_agents.is_empty() {
            return Vec::new();
        }
        let others = self.openclaw_agents.keys().map(GatewayAgentId::as_str);
        let others = others.filter(|id| *id != self.gateway_agent);
        [self.gateway_agent.as_str()].into_iter().chain(others).map(str::to_owned).collect()
    }

    /// Returns the variable that tells a container which agent of OpenClaw runs, and which tools it has: `ID:TOOL,TOOL`.
    /// `None` if the entry describes no agents of OpenClaw.
    #[must_use]
    pub fn openclaw_variable(&self) -> Option<(&'static str, String)> {
        if self.openclaw_agents.is_empty() {
            return None;
        }
        let described = self.openclaw_agents.iter().find(|(id, _)| id.as_str() == self.gateway_agent);
        let tools = described.and_then(|(_, agent)| agent.tools.as_deref()).unwrap_or(&OpenclawTool::ALL);
        let tools: Vec<_> = tools.iter().map(|tool| tool.word()).collect();
        Some((env::SANDBOX_OPENCLAW_AGENT, format!("{}:{}", self.gateway_agent, tools.join(","))))
    }
}
