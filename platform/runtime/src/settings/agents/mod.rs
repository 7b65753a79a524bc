//! Reads the agents that runs can use. An entry in the configuration adds an agent.

mod builtin;
mod entry;
mod environment;
pub(super) mod image;
mod kind;
mod template;
mod volume;

use std::{collections::BTreeMap, path::PathBuf};

use platform_core::{
    budget::Budget,
    capability::Capability,
    grant::{CallTimes, UngrantedTools},
    id::{AgentId, GatewayId, ModelName, ToolName},
    limit::{self, ByteSize, Millis},
    name::BRIDGE_PORT,
};
use serde::{Deserialize, Serialize};

pub(super) use self::entry::{read_times, read_ungranted_tools};
pub(super) use self::environment::literal_error;
pub(super) use self::volume::is_below;
use self::{builtin::EntryDefaults, kind::Kind};
pub use self::{
    builtin::{DEFAULT_AGENT, is_optional},
    image::{Image, InvalidImage},
    kind::{Execution, Protocol, Stream, WorkspaceSetup},
    template::{Filling, InvalidTemplate, Template},
    volume::Volume,
};
use super::{SectionName, gateways::MAIN};
use crate::config::Section;

/// `[agents."family:name"]`
///
/// An entry is also stored with each run that uses it, so that any worker executes the run with the settings of its
/// request. A field that was added later has the default that earlier rows implied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Name for people.
    pub name: String,
    /// Description for people.
    pub description: String,
    /// Way in which the agent is run.
    #[serde(default)]
    pub mode: Execution,
    /// Gateways in which its runs can be sessions; the first that serves a run's account is used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<GatewayId>,
    /// Agent of the gateway that its runs use.
    #[serde(default = "main_agent", skip_serializing_if = "is_main_agent")]
    pub gateway_agent: String,
    /// Image of the container.
    pub image: Image,
    /// Program and arguments; no shell is involved.
    pub argv: Vec<Template>,
    /// Variables in addition to the run's own.
    #[serde(default)]
    pub environment: BTreeMap<String, Template>,
    /// Volumes in addition to the workspace.
    #[serde(default)]
    pub volumes: Vec<Volume>,
    /// Workspace of its runs.
    #[serde(default)]
    pub workspace: WorkspaceSetup,
    /// Instructions that come before each conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Directory of the files that say how it behaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behaviour_dir: Option<PathBuf>,
    /// Size of its workspace; `sandbox.workspace_size` if absent.
    #[serde(default)]
    pub disk: Option<ByteSize>,
    /// Address of the repository that its runs work on, unless they name another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// Branch of a repository from which its runs begin, unless they name another.
    #[serde(default = "main_branch", skip_serializing_if = "is_main_branch")]
    pub base: String,
    /// True if a pull request is made of its commits.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pull_request: bool,
    /// Format of what the program prints on stdout.
    pub protocol: Protocol,
    /// Meaning of the text that models stream to it.
    #[serde(default)]
    pub stream: Stream,
    /// Model of a run that names none; `upstream.default_model` if absent.
    pub model: Option<String>,
    /// Models its calls may name; any if empty.
    pub models: Vec<ModelName>,
    /// Tools that its calls may offer a model; any if absent, none if empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ToolName>>,
    /// Tools on the host that its runs may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_tools: Vec<ToolName>,
    /// Permissions of its calls to reach beyond the model.
    pub capabilities: Vec<Capability>,
    /// Treatment of hosted tools that need another capability.
    #[serde(default, skip_serializing_if = "UngrantedTools::is_default")]
    pub ungranted_tools: UngrantedTools,
    /// Limits of all calls of a run together.
    pub budget: Budget,
    /// Most output tokens of one call.
    pub output_tokens_per_call: u64,
    /// Timeouts of a call.
    pub times: CallTimes,
    /// Wall-clock time of a run.
    #[serde(rename = "runtime")]
    pub run_timeout: Millis,
    /// Memory, swap included.
    pub memory: ByteSize,
    /// Processes and threads.
    pub pids: u32,
    /// Processor time, in thousandths of a core.
    pub milli_cpu: u32,
    /// Size of `/tmp`, and of `/var/tmp`.
    #[serde(default = "default_tmp_size")]
    pub tmp_size: ByteSize,
    /// Size of `/dev/shm`.
    #[serde(default = "default_shm_size")]
    pub shm_size: ByteSize,
    /// Port of `localhost` at which the agent finds the model API.
    #[serde(default = "default_bridge_port")]
    pub bridge_port: u16,
    /// Size of stdout and of stderr that is kept, each.
    #[serde(rename = "output")]
    pub output_capture_limit: ByteSize,
    /// Warm containers for its runs. A setting of the host, so it is not stored with a run.
    #[serde(skip)]
    pub warm_pool_size: u32,
    /// Time that workspaces of its runs stay, if they are kept for people or for a thread. A setting of the host as well.
    #[serde(skip, default = "default_keep")]
    pub keep: Millis,
}

const fn default_tmp_size() -> ByteSize {
    limit::sandbox::TMP
}

const fn default_shm_size() -> ByteSize {
    limit::sandbox::SHM
}

const fn default_bridge_port() -> u16 {
    BRIDGE_PORT
}

const fn default_keep() -> Millis {
    limit::sandbox::KEEP
}

/// Branch that most repositories begin with.
const MAIN_BRANCH: &str = "main";

fn main_branch() -> String {
    MAIN_BRANCH.to_owned()
}

fn is_main_branch(branch: &str) -> bool {
    branch == MAIN_BRANCH
}

const fn is_false(value: &bool) -> bool {
    !*value
}

fn main_agent() -> String {
    MAIN.to_owned()
}

fn is_main_agent(agent: &str) -> bool {
    agent == MAIN
}

pub(super) fn read(root: &Section<'_>) -> BTreeMap<AgentId, Agent> {
    let read = |id: &str, section: &Section<'_>| {
        let agent = Agent::section(section, &builtin::defaults_of(id));
        kind::refuse_ignored(section, agent.mode);
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
