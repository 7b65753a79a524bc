//! Reads an entry of `[agents]`, key by key.

use platform_core::{
    grant::{CallTimes, UngrantedTools},
    id::GatewayAgentId,
    limit::{self, ByteSize, Millis},
    name::BRIDGE_PORT,
};

use super::{Agent, EntryDefaults, Kind, default_keep, environment, image, main_branch, template, volume};
use crate::{
    config::Section,
    settings::{budgets, gateways::MAIN, sandbox},
};

/// Most warm containers of an agent. More would only use a host's memory, because a container is created in a fraction
/// of a second.
const MAX_WARM: u32 = 64;

impl Agent {
    pub(super) fn section(section: &Section<'_>, defaults: &EntryDefaults) -> Self {
        let field = |name, doc| section.field(name, doc);
        let Kind { mode, workspace, protocol, stream } = Kind::section(section, defaults.stream);
        Self {
            name: field("name", "Name for people.").or(defaults.name.to_owned()),
            description: field("description", "Purpose of the agent, for people.")
                .or(defaults.description.to_owned()),
            mode,
            gateways: field("gateways", "With `gateway`: the gateways that its runs may be sessions of. The first that serves a run's account is taken.")
                .list_or(vec![]),
            gateway_agent: read_gateway_agent(section),
            image: image::read_or(section, defaults.image),
            argv: template::read(section),
            environment: environment::read(section),
            volumes: volume::read(section),
            workspace,
            prompt: field("prompt", "Instructions that come before each conversation, as a message of the system.").optional(),
            behaviour_dir: field("behaviour_dir", "Directory of its behaviour files: AGENTS.md, SOUL.md, USER.md, TOOLS.md, IDENTITY.md, MEMORY.md. Each request of a run copies them into its workspace.").optional(),
            disk: read_disk(section),
            repo: field("repo", "Repository that its runs work on: an address with https:// or http://. A run may name another.").optional(),
            base: field("base", "Branch of a repository from which its runs begin.").or(main_branch()),
            pull_request: field("pull_request", "Makes a pull request of the commits of its runs.").or(false),
            protocol,
            stream,
            model: field("model", "Model if the run does not say; `upstream.default_model` if absent.")
                .optional(),
            models: field("models", "Models its calls may name; any if empty.").list_or(vec![]),
            tools: field("tools", "Tools its calls may offer a model, by exact name; any if absent, none if empty.").list(),
            host_tools: field("host_tools", "Tools on the host that its runs may call, by exact name: `sluice tools ls` lists them. None if empty.").list_or(vec![]),
            capabilities: field(
                "capabilities",
                "Services that its calls may reach beyond the model: media_urls, stored_files, server_tools, mcp, web_search, stored_responses, stored_prompts, background, unlisted_content, premium_service.",
            )
            .list_or(vec![]),
            ungranted_tools: read_ungranted_tools(section),
            budget: budgets::budget(section, &limit::agent::BUDGET),
            output_tokens_per_call: field(
                "output_tokens_per_call",
                "Most tokens of one answer, reasoning included. It replaces a larger or missing limit of a call.",
            )
            .or(limit::data_plane::OUTPUT_TOKENS),
            times: read_times(section),
            run_timeout: field("run_timeout", "Wall-clock time of a run.")
                .or(defaults.run_timeout),
            memory: field("memory", "Memory, swap included.")
                .at_least(&limit::sandbox::LEAST_MEMORY)
                .or(defaults.memory),
            pids: field("pids", "Processes and threads.").or(limit::sandbox::PIDS),
            milli_cpu: field("milli_cpu", "Processor time, in thousandths of a core.")
                .at_least(&limit::sandbox::LEAST_MILLI_CPU)
                .or(limit::sandbox::MILLI_CPU),
            tmp_size: read_tmp_size(section),
            shm_size: read_shm_size(section),
            bridge_port: read_bridge_port(section),
            output_capture_limit: read_output_capture_limit(section),
            warm_pool_size: read_warm_pool_size(section),
            keep: read_keep(section),
        }
    }
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

/// Reads the size of its output that is kept.
fn read_output_capture_limit(section: &Section<'_>) -> ByteSize {
    let field = section.field(
        "output_capture_limit",
        "Bytes kept of each of stdout and stderr: the beginning and the end, without the middle.",
    );
    field.or(limit::sandbox::OUTPUT)
}

/// Reads the size of its temporary files.
fn read_tmp_size(section: &Section<'_>) -> ByteSize {
    let field =
        section.field("tmp_size", "Size of `/tmp`, and of `/var/tmp`. What is in them counts as `memory`.");
    field.at_least(&limit::sandbox::LEAST_SCRATCH).or(limit::sandbox::TMP)
}

/// Reads the size of its shared memory.
fn read_shm_size(section: &Section<'_>) -> ByteSize {
    let field = section.field("shm_size", "Size of `/dev/shm`. What is in it counts as `memory`.");
    field.at_least(&limit::sandbox::LEAST_SCRATCH).or(limit::sandbox::SHM)
}

/// Reads the port at which it finds the model API.
fn read_bridge_port(section: &Section<'_>) -> u16 {
    let field = section.field(
        "bridge_port",
        "Port of `localhost` at which the agent finds the model API. Move it if a program of the agent needs 8080 itself.",
    );
    field.at_least(&1_u16).or(BRIDGE_PORT)
}

/// Reads the number of its warm containers.
fn read_warm_pool_size(section: &Section<'_>) -> u32 {
    const NAME: &str = "warm_pool_size";
    let field = section.field(
        NAME,
        "Containers that `sluice up` keeps ready for its runs, each for one run: such a run begins several times as fast. The image's first process has to wait for a start file, as `sandbox-init` does, and say so on its label `sluicegate.entrypoint`.",
    );
    field.may_be_zero().at_most(&MAX_WARM).or(0)
}

/// Reads the time that workspaces of its runs stay.
fn read_keep(section: &Section<'_>) -> Millis {
    let doc = "Time that a workspace stays after its run, for `sluice runs diff` and the like: that of a run with `--workspace` or `--keep`. With `workspace = \"thread\"`, time that the workspace of a thread stays after its last run.";
    section.field("keep", doc).or(default_keep())
}

/// Reads the largest size of its workspace.
fn read_disk(section: &Section<'_>) -> Option<ByteSize> {
    const NAME: &str = "disk";
    let doc = "Size of its workspace; `sandbox.workspace_size` if absent.";
    section.field(NAME, doc).at_least(&sandbox::MIN_FILE_SYSTEM).optional()
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
