//! Defines the built-in agents, which exist without configuration.

use platform_core::{
    id::AgentId,
    limit::{self, ByteSize, Millis},
};

use super::{Agent, Stream};
use crate::config;

/// The built-in agent that a run uses if it names none. Its image ships.
pub const DEFAULT_AGENT: &str = "sandbox:agent";
/// The built-in agent that is the real OpenClaw. An operator has to build its image.
const OPENCLAW_AGENT: &str = "sandbox:openclaw";

/// Ids of the built-in agents.
pub(super) const BUILT_IN_AGENTS: [&str; 2] = [DEFAULT_AGENT, OPENCLAW_AGENT];

/// Defaults of an entry that are not the same for all agents.
pub(super) struct EntryDefaults {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) image: &'static str,
    pub(super) stream: Stream,
    pub(super) run_timeout: Millis,
    pub(super) memory: ByteSize,
}

/// Defaults of an operator's own entry.
const OWN_ENTRY: EntryDefaults = EntryDefaults {
    name: "Sandbox Agent",
    description: "LLM agent in an isolated container",
    image: "sluicegate/sandbox-runtime:latest",
    stream: Stream::Progress,
    run_timeout: limit::sandbox::RUNTIME,
    memory: limit::sandbox::MEMORY,
};

/// Returns the defaults of the entry called `id`.
pub(super) const fn defaults_of(id: &str) -> EntryDefaults {
    match id.as_bytes() {
        // It makes one call and passes its answer on.
        b"sandbox:agent" => EntryDefaults { stream: Stream::Answer, ..OWN_ENTRY },
        // A run was seen with 1.2 GiB, and its tools need some.
        b"sandbox:openclaw" => EntryDefaults {
            name: "OpenClaw",
            description: "OpenClaw in an isolated container, with tools for commands and files",
            image: "sluicegate/sandbox-openclaw:latest",
            run_timeout: Millis::seconds(1800),
            memory: ByteSize::mib(2048),
            ..OWN_ENTRY
        },
        _ => OWN_ENTRY,
    }
}

/// Returns the built-in agent called `id`, as it is without configuration.
pub(super) fn built_in(id: &str) -> Option<(AgentId, Agent)> {
    let id = AgentId::parse(id).ok().filter(|id| BUILT_IN_AGENTS.contains(&id.as_str()))?;
    let agent = config::defaults(|section| Agent::read(section, &defaults_of(id.as_str())));
    Some((id, agent))
}

/// Returns whether `agent` is built in, unchanged, and an installation may do without it.
#[must_use]
pub fn is_optional(id: &AgentId, agent: &Agent) -> bool {
    id.as_str() != DEFAULT_AGENT && built_in(id.as_str()).is_some_and(|(_, shipped)| shipped == *agent)
}
