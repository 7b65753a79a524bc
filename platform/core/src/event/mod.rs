//! Defines the events that a run reports while it executes.
//!
//! Two kinds exist. A *stored* event has a number in its run, from 1, and any follower can read it again. These are
//! `status`, `activity`, `tool`, `tool_call`, `tool_result`, `host_tool`, `agent_usage`, `log`, `log_cut`, `assistant_final`,
//! `usage_report`, `done` and `error`. A *live* event has no number, is held in memory for a short while and is then
//! lost. It is not ordered among stored events and cannot be requested from a given point. Where both kinds are written
//! side by side (`sluice runs events --json`), a live event says `"live": true`. `text_delta` and `progress` are live if
//! the data plane observed them, and stored if the agent or its gateway reported them. `missed` may be of either kind
//! and counts events that were left out. `pruned` replaces stored events that are no longer kept, and has the number of
//! the last of them.

use serde::{Deserialize, Serialize};

use crate::{host_tools::ToolCallState, limit::events, record::Tokens};

/// Event of a run, in the order in which events happened. A run ends with exactly one [`AgentEvent::Done`] or
/// [`AgentEvent::Error`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentEvent {
    /// The run entered a phase.
    Status {
        /// Phase of the run.
        phase: Phase,
    },
    /// The gateway of the run reports what its agent does now.
    Activity {
        /// Kind of the activity.
        kind: ActivityKind,
        /// Object of the activity, such as the tool that is used: made by [`AgentEvent::activity`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
    /// A piece of the answer, as the model produces it or as a gateway reports it. A model's text only if the agent's
    /// entry says that streamed text is the answer.
    TextDelta {
        /// Text of the piece.
        delta: String,
    },
    /// Text that a model produces for an agent that builds its answer later, or that uses the text for something else.
    Progress {
        /// Text of the piece.
        text: String,
    },
    /// The model called a tool.
    Tool {
        /// Name of the tool, as the model wrote it.
        name: String,
    },
    /// The agent reports that it calls a tool.
    ToolCall {
        /// Id of the call, in the agent's words.
        id: String,
        /// Name of the tool.
        name: String,
        /// Arguments of the call, as JSON text. If bytes were cut, the text is the beginning.
        arguments: String,
        /// Bytes cut from the end of the arguments.
        #[serde(default, skip_serializing_if = "is_zero")]
        cut_bytes: u64,
    },
    /// The agent reports the result of a tool call.
    ToolResult {
        /// Id of the call, in the agent's words.
        id: String,
        /// Text of the result.
        result: String,
        /// True if the tool failed.
        #[serde(default)]
        is_error: bool,
        /// Bytes cut from the end of the result.
        #[serde(default, skip_serializing_if = "is_zero")]
        cut_bytes: u64,
    },
    /// A call of a host tool entered a state. The control plane says so, which executes the tool, and not the agent.
    HostTool {
        /// Id of the call, as the journal has it.
        id: String,
        /// Name of the tool.
        name: String,
        /// State of the call from now on.
        state: ToolCallState,
        /// Arguments as JSON, without secrets and with long texts shortened; in the first event of a call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<String>,
        /// Code of the reason why the call has no result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// Length of the result, in bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result_bytes: Option<u64>,
        /// Milliseconds that the tool took, without a wait for an approval.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
    /// The agent reports tokens that it counted itself. Only the journal proves usage.
    AgentUsage {
        /// Tokens of prompts.
        input_tokens: u64,
        /// Tokens of answers.
        output_tokens: u64,
        /// Tokens of prompts that a cache held.
        cached_tokens: u64,
    },
    /// The agent's commits were collected: what became of them by the end of the run.
    Commits {
        /// Stage of the relay.
        stage: String,
        /// Branch of the repository.
        branch: String,
        /// Last commit, if the commits were accepted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
        /// Address of the pull request, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pull_request: Option<String>,
    },
    /// The agent wrote to stdout or stderr.
    Log {
        /// Output it wrote to.
        stream: OutputStream,
        /// Text it wrote; bytes that are not UTF-8 are replaced.
        text: String,
    },
    /// A part of an output was left out here: the beginning comes before this event, the end after it.
    LogCut {
        /// Output that was cut.
        stream: OutputStream,
        /// Number of bytes left out.
        bytes: u64,
    },
    /// Live pieces that a slow reader missed, events beyond those that are stored, or one that cannot be read.
    Missed {
        /// Number of events.
        count: u64,
    },
    /// Stored events are no longer kept here: the run ended long ago.
    Pruned {
        /// Number of events.
        count: u64,
    },
    /// Usage of the run, once it has ended.
    UsageReport {
        /// Calls of the model API.
        calls: u64,
        /// Tokens of these calls.
        tokens: Tokens,
    },
    /// The authoritative answer, which replaces all text that was streamed.
    AssistantFinal {
        /// Text of the answer.
        content: String,
        /// Bytes cut from its end because it was too long to store.
        #[serde(default, skip_serializing_if = "is_zero")]
        cut_bytes: u64,
    },
    /// The run succeeded.
    Done,
    /// The run failed.
    Error {
        /// Code of the error.
        code: RunErrorCode,
        /// Message for people.
        message: String,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

impl AgentEvent {
    /// Returns the event of an activity. Control characters are left out of its label, and its end beyond
    /// [`events::ACTIVITY_LABEL`].
    #[must_use]
    pub fn activity(kind: ActivityKind, label: Option<&str>) -> Self {
        let is_printable = |letter: &char| !letter.is_control();
        let clean = |text: &str| text.chars().filter(is_printable).take(events::ACTIVITY_LABEL).collect();
        Self::Activity { kind, label: label.map(clean).filter(|text: &String| !text.is_empty()) }
    }

    /// Returns the type of the event, as it is written.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Status { .. } => "status",
            Self::Activity { .. } => "activity",
            Self::TextDelta { .. } => "text_delta",
            Self::Progress { .. } => "progress",
            Self::Tool { .. } => "tool",
            Self::ToolCall { .. } => "tool_call",
            Self::ToolResult { .. } => "tool_result",
            Self::HostTool { .. } => "host_tool",
            Self::AgentUsage { .. } => "agent_usage",
            Self::Commits { .. } => "commits",
            Self::Log { .. } => "log",
            Self::LogCut { .. } => "log_cut",
            Self::Missed { .. } => "missed",
            Self::Pruned { .. } => "pruned",
            Self::UsageReport { .. } => "usage_report",
            Self::AssistantFinal { .. } => "assistant_final",
            Self::Done => "done",
            Self::Error { .. } => "error",
        }
    }
}

/// Phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The run waits for a worker and starts from the beginning.
    Queued,
    /// Grant, listener and workspace are created.
    Preparing,
    /// The container is created.
    Starting,
    /// The agent runs.
    Running,
    /// The agent has ended; its commits are taken out of its workspace, judged and pushed.
    Collecting,
    /// The agent has ended; usage is read and every resource is removed.
    Settling,
}

impl Phase {
    /// All phases, in the order in which a run enters them.
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Preparing, Self::Starting, Self::Running, Self::Collecting, Self::Settling];

    /// Returns the name of the phase, as it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Preparing => "preparing",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Collecting => "collecting",
            Self::Settling => "settling",
        }
    }
}

/// Kind of what an agent does at its gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivityKind {
    /// A model is called, or writes.
    Thinking,
    /// A tool is used.
    ToolUse,
    /// The conversation is being shortened.
    Compacting,
    /// Nothing happens before an approval, or before the gateway is reached again.
    Waiting,
}

impl ActivityKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Thinking, Self::ToolUse, Self::Compacting, Self::Waiting];

    /// Returns the name of the activity, as it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Thinking => "thinking",
            Self::ToolUse => "tool_use",
            Self::Compacting => "compacting",
            Self::Waiting => "waiting",
        }
    }
}

/// Standard output or standard error of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl OutputStream {
    /// Both outputs.
    pub const ALL: [Self; 2] = [Self::Stdout, Self::Stderr];

    /// Returns the name of the output, as it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Reason why a run failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunErrorCode {
    /// The run exceeded its time limit.
    Timeout,
    /// The run exceeded its memory limit.
    OomKilled,
    /// The agent's process failed or reported a failure.
    ContainerFailed,
    /// A client or operator cancelled the run.
    Cancelled,
    /// The image of its entry is not on the host.
    ImageMissing,
    /// A volume of its entry is not on the host.
    VolumeMissing,
    /// The disk had too little space for its workspace.
    InsufficientDisk,
    /// The workspace could not be created or kept.
    WorkspaceFailed,
    /// Its repository could not be cloned, or its branch is another account's.
    RepositoryFailed,
    /// Another process removed the container while the agent ran.
    ContainerLost,
    /// Docker was unavailable for longer than the worker waits.
    DockerUnavailable,
    /// Docker refused to create or start the container: its image or its limits do not allow it.
    DockerFailed,
    /// The data plane was unavailable for longer than the worker waits.
    DataPlaneUnavailable,
    /// The data plane refused the run, or has another run under its id.
    DataPlaneFailed,
    /// A transition or event of the run could not be stored.
    StoreFailed,
    /// The gateway was unavailable for longer than the worker waits.
    GatewayUnavailable,
    /// The gateway cannot be used, or refused or abandoned the turn.
    GatewayFailed,
    /// The gateway was lost during the turn, and no longer knows the turn.
    SessionLost,
    /// The turn ended without an error, but no model had answered.
    NoAnswer,
    /// The model API or the proxy refused the last call, and would refuse it again.
    ModelRefused,
    /// The model API failed or was overloaded.
    ModelBusy,
    /// The model API could not be reached, or broke off.
    ModelUnavailable,
    /// The conversation is too long for the model.
    ContextOverflow,
    /// A limit of the run or its account is exhausted.
    QuotaExhausted,
    /// The model has no price, which a limit of cost needs.
    ModelUnpriced,
    /// None of the other reasons. Only runs of earlier versions have it.
    Internal,
}

impl RunErrorCode {
    /// All codes.
    pub const ALL: [Self; 26] = [
        Self::Timeout,
        Self::OomKilled,
        Self::ContainerFailed,
        Self::Cancelled,
        Self::ImageMissing,
        Self::VolumeMissing,
        Self::InsufficientDisk,
        Self::WorkspaceFailed,
        Self::RepositoryFailed,
        Self::ContainerLost,
        Self::DockerUnavailable,
        Self::DockerFailed,
        Self::DataPlaneUnavailable,
        Self::DataPlaneFailed,
        Self::StoreFailed,
        Self::GatewayUnavailable,
        Self::GatewayFailed,
        Self::SessionLost,
        Self::NoAnswer,
        Self::ModelRefused,
        Self::ModelBusy,
        Self::ModelUnavailable,
        Self::ContextOverflow,
        Self::QuotaExhausted,
        Self::ModelUnpriced,
        Self::Internal,
    ];

    /// Returns the code as it is written; the first four are spelled as the specification has them.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::OomKilled => "oom_killed",
            Self::ContainerFailed => "container_failed",
            Self::Cancelled => "cancelled",
            Self::ImageMissing => "image_missing",
            Self::VolumeMissing => "volume_missing",
            Self::InsufficientDisk => "insufficient_disk",
            Self::WorkspaceFailed => "workspace_failed",
            Self::RepositoryFailed => "repository_failed",
            Self::ContainerLost => "container_lost",
            Self::DockerUnavailable => "docker_unavailable",
            Self::DockerFailed => "docker_failed",
            Self::DataPlaneUnavailable => "data_plane_unavailable",
            Self::DataPlaneFailed => "data_plane_failed",
            Self::StoreFailed => "store_failed",
            Self::GatewayUnavailable => "gateway_unavailable",
            Self::GatewayFailed => "gateway_failed",
            Self::SessionLost => "session_lost",
            Self::NoAnswer => "no_answer",
            Self::ModelRefused => "model_refused",
            Self::ModelBusy => "model_busy",
            Self::ModelUnavailable => "model_unavailable",
            Self::ContextOverflow => "context_overflow",
            Self::QuotaExhausted => "quota_exhausted",
            Self::ModelUnpriced => "model_unpriced",
            Self::Internal => "internal",
        }
    }
}

#[cfg(test)]
mod tests;
