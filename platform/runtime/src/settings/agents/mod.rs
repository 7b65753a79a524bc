//! Reads the agents that runs can use. An entry in the configuration adds an agent.

mod builtin;
mod entry;
mod environment;
pub(super) mod image;
mod kind;
mod openclaw;
mod template;
mod volume;

use std::collections::BTreeMap;

use platform_core::id::AgentId;

use self::builtin::EntryDefaults;
pub(super) use self::entry::{read_times, read_ungranted_tools};
pub(super) use self::environment::literal_error;
pub(super) use self::volume::is_below;
pub use self::{
    builtin::{DEFAULT_AGENT, is_optional},
    entry::Agent,
    image::{Image, InvalidImage},
    kind::{Execution, Protocol, Stream, WorkspaceSetup},
    openclaw::{OpenclawAgent, OpenclawTool},
    template::{Filling, InvalidTemplate, Template},
    volume::Volume,
};
use super::SectionName;
use crate::config::Section;

pub(super) fn read(root: &Section<'_>) -> BTreeMap<AgentId, Agent> {
    let read = |id: &str, section: &Section<'_>| {
        let agent = Agent::read(section, &builtin::defaults_of(id));
        kind::refuse_ignored(section, agent.mode);
        openclaw::refuse_variable(section, &agent);
        if !builtin::BUILT_IN_AGENTS.contains(&id) {
            kind::refuse_missing(section, agent.mode);
        }
        let id = AgentId::parse(id).map_err(|error| section.reject_itself(error.to_string())).ok()?;
        Some((id, agent))
    };
    let mut agents: BTreeMap<_, _> = root
        .each(
            SectionName::Agents.name(),
            "Agents that can run in a sandbox, by agent id (`family:name`).",
            read,
        )
        .into_iter()
        .flatten()
        .collect();
    for (id, agent) in builtin::BUILT_IN_AGENTS.into_iter().filter_map(builtin::built_in) {
        agents.entry(id).or_insert(agent);
    }
    agents
}
