//! Reads an entry of `[agents]`, key by key.

use std::{collections::BTreeMap, path::PathBuf};

use platform_core::{
    budget::Budget,
    capability::Capability,
    grant::{CallTimes, UngrantedTools},
    id::{GatewayAgentId, GatewayId, ModelName, ToolName},
    limit::{self, ByteSize, Millis},
    name::BRIDGE_PORT,
};
use serde::{Deserialize, Serialize};

use super::{
    EntryDefaults, Execution, Image, OpenclawAgent, Protocol, Stream, Template, Volume, WorkspaceSetup,
    environment, image, openclaw, template, volume,
};
use crate::{
    config::{Section, settings},
    settings::{budgets, gateways::MAIN, sandbox},
};

/// Most warm containers of an agent. More would only use a host's memory, because a container is created in a fraction
/// of a second.
const MAX_WARM: u32 = 64;

settings! {
    /// `[agents."family:name"]`
    ///
    /// An entry is also stored with each run that uses it, so that any worker executes the run with the settings of its
    /// request. A field that was added later has the default that earlier rows implied.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Agent read from section with defaults: &EntryDefaults {
        /// Name for people.
        pub name: String => or(defaults.name.to_owned()),
        /// Purpose of the agent, for people.
        pub description: String => or(defaults.description.to_owned()),
        /// Way in which the agent is run.
        #[serde(default)]
        pub mode: Execution = section
            .field(
                "mode",
                "Execution: `ephemeral`, in a container of its own for each run; `gateway`, as a session of one of its `gateways`.",
            )
            .or(Execution::Ephemeral),
        /// With `gateway`: the gateways that its runs may be sessions of. The first that serves a run's account is
        /// taken.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub gateways: Vec<GatewayId> => list_or(vec![]),
        /// Agent of the gateway that its runs use. In the request of a run with a container: its agent of OpenClaw.
        #[serde(default = "main_agent", skip_serializing_if = "is_main_agent")]
        pub gateway_agent: String = read_gateway_agent(section),
        /// Agents of OpenClaw that its runs may name, with a container for each run.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub openclaw_agents: BTreeMap<GatewayAgentId, OpenclawAgent> = openclaw::read(section),
        /// Image of the container.
        pub image: Image = image::read_or(section, defaults.image),
        /// Program and arguments; no shell is involved.
        pub argv: Vec<Template> = template::read(section),
        /// Variables in addition to the run's own.
        #[serde(default)]
        pub environment: BTreeMap<String, Template> = environment::read(section),
        /// Volumes in addition to the workspace.
        #[serde(default)]
        pub volumes: Vec<Volume> = volume::read(section),
        /// Workspace of its runs: `conversation`, a new one for each, with the messages before its turn in `.cogni`;
        /// `thread`, the same for all runs of a thread, which finds there what it left.
        #[serde(default)]
        pub workspace: WorkspaceSetup => or(WorkspaceSetup::Conversation),
        /// Instructions that come before each conversation, as a message of the system.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub prompt: Option<String> => optional(),
        /// Directory of its behaviour files: AGENTS.md, SOUL.md, USER.md, TOOLS.md, IDENTITY.md, MEMORY.md. Each
        /// request of a run copies them into its workspace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub behaviour_dir: Option<PathBuf> => optional(),
        /// Size of its workspace; `sandbox.workspace_size` if absent.
        #[serde(default)]
        pub disk: Option<ByteSize> => at_least(&sandbox::MIN_FILE_SYSTEM).optional(),
        /// Repository that its runs work on: an address with https:// or http://. A run may name another.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub repo: Option<String> => optional(),
        /// Branch of a repository from which its runs begin.
        #[serde(default = "main_branch", skip_serializing_if = "is_main_branch")]
        pub base: String => or(main_branch()),
        /// Makes a pull request of the commits of its runs.
        #[serde(default, skip_serializing_if = "is_false")]
        pub pull_request: bool => or(false),
        /// Format of the program's stdout: `envelope`, one line of JSON at the end; `events`, a line of JSON for each
        /// event; `text`, the answer.
        pub protocol: Protocol => or(Protocol::Envelope),
        /// Meaning of the text that models stream to it, or that it reports as events: `answer`, pieces of its answer;
        /// `progress`, only a sign that it works. `answer` for `sandbox:agent` if absent.
        #[serde(default)]
        pub stream: Stream => or(defaults.stream),
        /// Model if the run does not say; `upstream.default_model` if absent.
        pub model: Option<String> => optional(),
        /// Models its calls may name; any if empty.
        pub models: Vec<ModelName> => list_or(vec![]),
        /// Tools its calls may offer a model, by exact name; any if absent, none if empty.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub tools: Option<Vec<ToolName>> => list(),
        /// Tools on the host that its runs may call, by exact name: `sluice tools ls` lists them. None if empty.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub host_tools: Vec<ToolName> => list_or(vec![]),
        /// Services that its calls may reach beyond the model: media_urls, stored_files, server_tools, mcp, web_search,
        /// stored_responses, stored_prompts, background, unlisted_content, premium_service.
        pub capabilities: Vec<Capability> => list_or(vec![]),
        /// Treatment of hosted tools that need another capability.
        #[serde(default, skip_serializing_if = "UngrantedTools::is_default")]
        pub ungranted_tools: UngrantedTools = read_ungranted_tools(section),
        /// Limits of all calls of a run together.
        pub budget: Budget = budgets::budget(section, &limit::agent::BUDGET),
        /// Most tokens of one answer, reasoning included. It replaces a larger or missing limit of a call.
        pub output_tokens_per_call: u64 => or(limit::data_plane::OUTPUT_TOKENS),
        /// Timeouts of a call.
        pub times: CallTimes = read_times(section),
        /// Wall-clock time of a run.
        #[serde(rename = "runtime")]
        pub run_timeout: Millis => or(defaults.run_timeout),
        /// Memory, swap included.
        pub memory: ByteSize => at_least(&limit::sandbox::LEAST_MEMORY).or(defaults.memory),
        /// Processes and threads.
        pub pids: u32 => or(limit::sandbox::PIDS),
        /// Processor time, in thousandths of a core.
        pub milli_cpu: u32 => at_least(&limit::sandbox::LEAST_MILLI_CPU).or(limit::sandbox::MILLI_CPU),
        /// Size of `/tmp`, and of `/var/tmp`. What is in them counts as `memory`.
        #[serde(default = "default_tmp_size")]
        pub tmp_size: ByteSize => at_least(&limit::sandbox::LEAST_SCRATCH).or(limit::sandbox::TMP),
        /// Size of `/dev/shm`. What is in it counts as `memory`.
        #[serde(default = "default_shm_size")]
        pub shm_size: ByteSize => at_least(&limit::sandbox::LEAST_SCRATCH).or(limit::sandbox::SHM),
        /// Port of `localhost` at which the agent finds the model API. Move it if a program of the agent needs 8080
        /// itself.
        #[serde(default = "default_bridge_port")]
        pub bridge_port: u16 => at_least(&1_u16).or(BRIDGE_PORT),
        /// Bytes kept of each of stdout and stderr: the beginning and the end, without the middle.
        #[serde(rename = "output")]
        pub output_capture_limit: ByteSize => or(limit::sandbox::OUTPUT),
        /// Containers that `sluice up` keeps ready for its runs, each for one run: such a run begins several times as
        /// fast. The image's first process has to wait for a start file, as `sandbox-init` does, and say so on its
        /// label `sluicegate.entrypoint`.
        // A setting of the host, so it is not stored with a run.
        #[serde(skip)]
        pub warm_pool_size: u32 => may_be_zero().at_most(&MAX_WARM).or(0),
        /// Time that a workspace stays after its run, for `sluice runs diff` and the like: that of a run with
        /// `--workspace` or `--keep`. With `workspace = "thread"`, time that the workspace of a thread stays after its
        /// last run.
        // A setting of the host as well.
        #[serde(skip, default = "default_keep")]
        pub keep: Millis => or(default_keep()),
    }
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

/// Reads the agent of the gateway that its runs use.
fn read_gateway_agent(section: &Section<'_>) -> String {
    const NAME: &str = "gateway_agent";
    let agent =
        section.field(NAME, "With `gateway`: which of the gateway's agents it is.").or(MAIN.to_owned());
    if let Err(error) = GatewayAgentId::parse(&agent) {
        section.reject(NAME, error.to_string());
    }
    agent
}

/// Reads the treatment of hosted tools that need a capability it was not granted.
pub(in crate::settings) fn read_ungranted_tools(section: &Section<'_>) -> UngrantedTools {
    let doc = "Calls that offer a model hosted tools, such as `web_search`, without the capability: `refuse` refuses them, `drop` leaves the tools out.";
    section.field("ungranted_tools", doc).or(UngrantedTools::Refuse)
}

/// Reads the timeouts of its calls.
pub(in crate::settings) fn read_times(section: &Section<'_>) -> CallTimes {
    let field = |name, doc| section.field(name, doc);
    let defaults = CallTimes::default();
    CallTimes {
        body_ms: field("request_body_timeout", "Longest time in which a request's body may come more slowly than `min_request_body_rate`.")
            .or(defaults.body_ms),
        body_rate: field("min_request_body_rate", "Bytes a second below which a request's body comes too slowly.")
            .or(defaults.body_rate),
        first_byte_ms: field(
            "first_byte_timeout",
            "Longest wait for an answer to begin; one that is not streamed begins when it is complete. The upstream gets the same timeout.",
        )
        .or(defaults.first_byte_ms),
        between_bytes_ms: field(
            "stream_idle_timeout",
            "Longest silence of the upstream in the middle of an answer; models may think that long.",
        )
        .or(defaults.between_bytes_ms),
        client_ms: field("client_write_timeout", "Longest time in which an agent takes nothing of an answer that is ready for it.")
            .or(defaults.client_ms),
        call_ms: field("call_timeout", "Longest time of one call, from its head to the end of its answer.")
            .or(defaults.call_ms),
    }
}
