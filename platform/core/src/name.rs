//! Lists every name that two parties must spell the same way: environment variables, headers, paths, labels.
//!
//! The names marked *specified* are public and do not change: applications and images rely on them.

/// Names of environment variables.
pub mod env {
    /// Base URL of the model API inside a sandbox (*specified*).
    pub const OPENAI_API_BASE: &str = "OPENAI_API_BASE";
    /// The same for OpenAI's SDKs, which expect the path `/v1`.
    pub const OPENAI_BASE_URL: &str = "OPENAI_BASE_URL";
    /// The same for Anthropic's SDKs, which add the path themselves.
    pub const ANTHROPIC_BASE_URL: &str = "ANTHROPIC_BASE_URL";
    /// Key of Anthropic's SDKs; in a sandbox it is [`super::PLACEHOLDER_KEY`].
    pub const ANTHROPIC_API_KEY: &str = "ANTHROPIC_API_KEY";
    /// Base URL of host tools inside a sandbox (*specified*).
    pub const COGNI_GATEWAY_URL: &str = "COGNI_GATEWAY_URL";
    /// Names of the host tools that the run may call, with a comma between two; absent if there are none.
    pub const COGNI_HOST_TOOLS: &str = "COGNI_HOST_TOOLS";
    /// Model a sandboxed agent should request (*specified*).
    pub const COGNI_MODEL: &str = "COGNI_MODEL";
    /// Tokens that this model takes, prompt and answer together.
    pub const COGNI_CONTEXT_WINDOW: &str = "COGNI_CONTEXT_WINDOW";
    /// Tokens that this model gives in one answer.
    pub const COGNI_MAX_TOKENS: &str = "COGNI_MAX_TOKENS";
    /// Id of the run a sandboxed agent is part of (*specified*).
    pub const RUN_ID: &str = "RUN_ID";
    /// Path of the run's socket inside a sandbox (*specified*).
    pub const LLM_PROXY_SOCKET: &str = "LLM_PROXY_SOCKET";
    /// Port of `localhost` that is bridged to the run's socket inside a sandbox.
    pub const LLM_PROXY_PORT: &str = "LLM_PROXY_PORT";
    /// Path of the socket that leads into a sandbox, if there is one.
    pub const SANDBOX_ENTRY_SOCKET: &str = "SANDBOX_ENTRY_SOCKET";
    /// Port of `localhost` inside the sandbox that this socket leads to.
    pub const SANDBOX_ENTRY_PORT: &str = "SANDBOX_ENTRY_PORT";
    /// Path of the start file that a sandbox without a command waits for.
    pub const SANDBOX_START_FILE: &str = "SANDBOX_START_FILE";
    /// Id of the agent of OpenClaw that a sandbox runs, and its tools: `ID`, which has all, or `ID:TOOL,TOOL`; `main` if absent.
    pub const SANDBOX_OPENCLAW_AGENT: &str = "SANDBOX_OPENCLAW_AGENT";
    /// Base URL of the upstream, read by `sluice-proxy` and `sluice` (*specified*).
    pub const LITELLM_BASE_URL: &str = "LITELLM_BASE_URL";
    /// The upstream's key, read by `sluice-proxy` alone (*specified*).
    pub const LITELLM_MASTER_KEY: &str = "LITELLM_MASTER_KEY";
    /// Secret that signs run tokens, if no file holds several; read by `sluice-proxy` and by all programs that mint
    /// tokens (*specified*).
    pub const PROXY_SHARED_SECRET: &str = "PROXY_SHARED_SECRET";
    /// Key of OpenAI's SDKs; in a sandbox it is [`super::PLACEHOLDER_KEY`], never the host's (*specified*).
    pub const OPENAI_API_KEY: &str = "OPENAI_API_KEY";
    /// Path of the configuration file.
    pub const SLUICE_CONFIG: &str = "SLUICE_CONFIG";
    /// Log filter, in the syntax of `tracing_subscriber::EnvFilter`.
    pub const SLUICE_LOG: &str = "SLUICE_LOG";
    /// Password of the store's database, if no file has it; read by `sluice` alone.
    pub const SLUICE_STORE_PASSWORD: &str = "SLUICE_STORE_PASSWORD";
    /// Token of LiteLLM's generic callback, if no file has it; read by `sluice up` alone (*specified*).
    pub const BILLING_INGEST_TOKEN: &str = "BILLING_INGEST_TOKEN";
    /// Token for repositories and pull requests at GitHub, if no file has it; read by `sluice up` alone (*specified*).
    pub const GITHUB_TOKEN: &str = "GITHUB_TOKEN";
    /// Directory of the credentials that systemd gives a unit.
    pub const CREDENTIALS_DIRECTORY: &str = "CREDENTIALS_DIRECTORY";
    /// Failpoint at which a debug build of `sluice` dies or stops: `POINT:kill` or `POINT:stop`.
    pub const SLUICE_FAILPOINT: &str = "SLUICE_FAILPOINT";
    /// Endpoint to which traces are sent, as OpenTelemetry spells it.
    pub const OTEL_EXPORTER_OTLP_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
    /// W3C trace context of the process that starts `sluice run`.
    pub const TRACEPARENT: &str = "TRACEPARENT";
    /// If set and not empty, `sluice` uses no colours: <https://no-color.org>.
    pub const NO_COLOR: &str = "NO_COLOR";
    /// Prefix of all overrides: `SLUICE_<SECTION>_<KEY>`.
    pub const OVERRIDE_PREFIX: &str = "SLUICE_";
}

/// Names of HTTP headers, in lower case as HTTP/2 and the `http` crate spell them.
pub mod header {
    /// Billing identity at LiteLLM.
    pub const LITELLM_END_USER: &str = "x-litellm-end-user-id";
    /// Billing identity at LiteLLM; wins over [`LITELLM_END_USER`], so both are set to the same value.
    pub const LITELLM_CUSTOMER: &str = "x-litellm-customer-id";
    /// JSON object that LiteLLM keeps with its spend row.
    pub const LITELLM_METADATA: &str = "x-litellm-spend-logs-metadata";
    /// Call id that LiteLLM adopts from the request.
    pub const LITELLM_CALL_ID: &str = "x-litellm-call-id";
    /// Session id of LiteLLM's spend row.
    pub const LITELLM_SESSION: &str = "x-litellm-session-id";
    /// Seconds after which LiteLLM gives up on the provider.
    pub const LITELLM_TIMEOUT: &str = "x-litellm-timeout";
    /// The provider's `retry-after`, as LiteLLM passes it on.
    pub const LITELLM_PROVIDER_RETRY_AFTER: &str = "llm_provider-retry-after";
    /// Cost of the call in dollars, on answers that are not streamed.
    pub const LITELLM_COST: &str = "x-litellm-response-cost";
    /// Run id, for readers of the upstream's access log (*specified*).
    pub const COGNI_RUN_ID: &str = "x-cogni-run-id";
    /// Key of the thread that a chat continues, on its answer.
    pub const STATE_KEY: &str = "x-state-key";
    /// Signed run token (*specified*).
    pub const RUN_TOKEN: &str = "x-run-token";
    /// Instructs official SDKs not to repeat a request that can only fail again.
    pub const SHOULD_RETRY: &str = "x-should-retry";
    /// Most tokens of each answer, on answers to model calls that asked for more.
    pub const OUTPUT_LIMIT: &str = "x-sluice-output-limit";
    /// Version of the control protocol, on every request over the control socket.
    pub const CONTROL_PROTOCOL: &str = "x-sluice-protocol";
}

/// Keys of the JSON object in [`header::LITELLM_METADATA`].
pub mod metadata {
    /// Run id.
    pub const RUN_ID: &str = "run_id";
    /// Attempt of the run.
    pub const ATTEMPT: &str = "attempt";
    /// Agent id.
    pub const GRAPH_ID: &str = "graph_id";
    /// Call id, repeated here because old LiteLLM versions keep it nowhere else.
    pub const CALL_ID: &str = "call_id";
    /// User that the run was started for.
    pub const USER_ID: &str = "user_id";
    /// Session the run belongs to.
    pub const SESSION_ID: &str = "session_id";
    /// Trace the application already opened.
    pub const EXISTING_TRACE_ID: &str = "existing_trace_id";
    /// User as the tracing system knows them.
    pub const TRACE_USER_ID: &str = "trace_user_id";
}

/// Words that a sandbox's first process prints for its host.
pub mod init {
    /// Its last line on stderr, if the kernel killed a process of the sandbox for lack of memory.
    pub const OUT_OF_MEMORY: &str = "sandbox-init: the kernel killed a process for lack of memory";
}

/// Paths inside a sandbox.
pub mod path {
    /// Directory where the run's socket directory is mounted (*specified*).
    pub const SOCKET_DIR: &str = "/llm-sock";
    /// File name of the run's socket.
    pub const SOCKET_FILE: &str = "llm.sock";
    /// The run's socket (*specified*).
    pub const SOCKET: &str = "/llm-sock/llm.sock";
    /// The run's workspace (*specified*).
    pub const WORKSPACE: &str = "/workspace";
    /// Directory of the files that host and agent exchange, relative to the workspace (*specified*).
    pub const COGNI_DIR: &str = ".cogni";
    /// The conversation, relative to [`COGNI_DIR`] (*specified*).
    pub const MESSAGES_FILE: &str = "messages.json";
    /// The same conversation for readers of Markdown, relative to [`COGNI_DIR`].
    pub const CONVERSATION_FILE: &str = "conversation.md";
    /// Its last message as plain text, relative to [`COGNI_DIR`] (*specified*).
    pub const PROMPT_FILE: &str = "prompt.txt";
    /// Description of the agent's commits, which it may leave for their pull request, relative to [`COGNI_DIR`].
    pub const DESCRIPTION_FILE: &str = "pr.md";
    /// Directory of the files that a user gave the run, relative to [`WORKSPACE`].
    pub const REPO_DIR: &str = "repo";
    /// Directory of the files that a run began with, in [`WORKSPACE`] (*specified*). The agent starts in it.
    pub const REPO: &str = "/workspace/repo";
    /// Directory in which the start file of a warm container appears.
    pub const START_DIR: &str = "/sluice";
    /// Name of the start file, relative to [`START_DIR`].
    pub const START_FILE: &str = "start.json";
    /// Value of [`super::env::OPENAI_API_BASE`], [`super::env::ANTHROPIC_BASE_URL`] and [`super::env::COGNI_GATEWAY_URL`]
    /// (*specified*).
    pub const API_BASE: &str = "http://localhost:8080";
}

/// Labels on containers.
pub mod label {
    /// Installation of Sluicegate that created the container.
    pub const INSTALLATION: &str = "sluicegate.installation";
    /// Run that the container belongs to.
    pub const RUN_ID: &str = "sluicegate.run";
    /// Agent that runs in the container.
    pub const AGENT: &str = "sluicegate.agent";
    /// Epoch of the run in which the container was created.
    pub const EPOCH: &str = "sluicegate.epoch";
    /// Workspace that is mounted into the container.
    pub const WORKSPACE: &str = "sluicegate.workspace";
    /// Template that a warm container was created from; such a container has no label of a run.
    pub const TEMPLATE: &str = "sluicegate.template";
    /// Gateway that runs in the container; such a container has no label of a run.
    pub const GATEWAY: &str = "sluicegate.gateway";
    /// Mirrored repository that the container fetches, or that the volume holds; such a container has no label of a run.
    pub const REPOSITORY: &str = "sluicegate.repository";
    /// Third-party server of host tools that runs in the container; such a container has no label of a run.
    pub const TOOL_SERVER: &str = "sluicegate.tool-server";
    /// Process that created the container of a server of host tools, and ends it. It holds the lock of that name.
    pub const OWNER: &str = "sluicegate.owner";
    /// Name of the setup and configuration that a gateway's container was created from.
    pub const SETUP: &str = "sluicegate.setup";
    /// Label on an image: path of its first process, its whole entrypoint, which waits for a start file if it has no
    /// command.
    pub const ENTRYPOINT: &str = "sluicegate.entrypoint";
}

/// Names of `git-sync`, which mirrors a repository. Where Kubernetes' program of this name has the same setting, so is
/// the variable called.
pub mod git_sync {
    /// Variable with the address of the repository.
    pub const REPO: &str = "GITSYNC_REPO";
    /// Variable with the branch.
    pub const REF: &str = "GITSYNC_REF";
    /// Variable with the depth of history of the mirrored tree.
    pub const DEPTH: &str = "GITSYNC_DEPTH";
    /// Variable with the time between two syncs.
    pub const PERIOD: &str = "GITSYNC_PERIOD";
    /// Variable with the longest time for one command of git.
    pub const SYNC_TIMEOUT: &str = "GITSYNC_SYNC_TIMEOUT";
    /// Variable with the time for which a replaced tree stays.
    pub const STALE_WORKTREE_TIMEOUT: &str = "GITSYNC_STALE_WORKTREE_TIMEOUT";
    /// Variable with the user of the credential.
    pub const USERNAME: &str = "GITSYNC_USERNAME";
    /// Variable with the path of the file that has the token.
    pub const PASSWORD_FILE: &str = "GITSYNC_PASSWORD_FILE";
    /// Variable with the directory that readers mount.
    pub const ROOT: &str = "GITSYNC_ROOT";
    /// Variable with the directory of the program's own files, which no reader mounts.
    pub const STATE: &str = "GITSYNC_STATE";
    /// Variable with a directory in memory for the credential while git runs.
    pub const ASKPASS: &str = "GITSYNC_ASKPASS";
    /// Link in the mirrored directory that leads to the present tree (*specified*).
    pub const LINK: &str = "current";
    /// Directory in the mirrored directory that has a tree for each commit.
    pub const WORKTREES: &str = ".worktrees";
    /// Default of [`ROOT`], and the place where readers mount the mirror (*specified*).
    pub const ROOT_DIR: &str = "/repo";
    /// Default of [`STATE`].
    pub const STATE_DIR: &str = "/git";
    /// Default of [`ASKPASS`].
    pub const ASKPASS_DIR: &str = "/askpass";
    /// Directory in the container of `git-sync` where that of the token's file is mounted.
    pub const CREDENTIAL_DIR: &str = "/credential";
    /// Part of the name of a volume between the installation and the repository: `sluice-default-repo-web`.
    pub const VOLUME_INFIX: &str = "-repo-";
    /// File with the last report, in [`STATE`].
    pub const STATUS_FILE: &str = "status.json";
}

/// Key inside a sandbox, for clients that refuse to start without one. The proxy accepts any key there.
pub const PLACEHOLDER_KEY: &str = "sluicegate";

/// Port of `localhost` inside a sandbox that leads to the run's socket: that of [`path::API_BASE`].
pub const BRIDGE_PORT: u16 = 8080;

/// Uid and gid of every sandboxed process. `1001` alone would leave group 0.
pub const SANDBOX_UID: u32 = 1001;

/// Group that may speak to the control socket.
pub const CONTROL_GROUP: &str = "sluicegate";

/// Version of the control protocol that this build speaks.
pub const CONTROL_PROTOCOL: u32 = 1;
