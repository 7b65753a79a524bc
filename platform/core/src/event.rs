//! What a run tells the outside while it goes on.
//!
//! Two kinds of events. What is *stored* has a number in its run, from 1, and is told to whoever asks, as often as they ask:
//! `status`, `tool`, `log`, `log_cut`, `assistant_final`, `usage_report`, `done`, `error`. What is *live* has none, is held in
//! memory for a short while and then gone: `text_delta`, `progress`. It has no place among what is stored, cannot be asked for
//! from a point, and says of itself `"live": true` where both are written side by side (`sluice runs events --json`). `missed` may be either: what was left out is counted. `pruned`
//! stands, with the number of the last of them, for stored events that are kept no longer.

use serde::{Deserialize, Serialize};

use crate::record::Tokens;

/// One event of a run, in the order it happened. A run ends with exactly one [`AgentEvent::Done`] or
/// [`AgentEvent::Error`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentEvent {
    /// The run entered a phase.
    Status {
        /// The phase.
        phase: Phase,
    },
    /// A piece of the answer, as the model produces it; only of agents whose entry says that what models stream is the answer.
    TextDelta {
        /// The piece.
        delta: String,
    },
    /// Text that a model produces for an agent which makes its answer of it later, or of something else.
    Progress {
        /// The piece.
        text: String,
    },
    /// The model called a tool.
    Tool {
        /// The tool's name, as the model wrote it.
        name: String,
    },
    /// Something was written to stdout or stderr.
    Log {
        /// Which of them.
        stream: OutputStream,
        /// What was written; bytes that are not UTF-8 are replaced.
        text: String,
    },
    /// Here something was left out of what was written: what comes before is its beginning, what comes after its end.
    LogCut {
        /// Of which stream.
        stream: OutputStream,
        /// How much.
        bytes: u64,
    },
    /// Live pieces that a slow reader missed, or tool calls beyond those that are stored.
    Missed {
        /// How many.
        count: u64,
    },
    /// Here stored events are kept no longer: the run ended long ago.
    Pruned {
        /// How many.
        count: u64,
    },
    /// What the run used, once it has ended.
    UsageReport {
        /// Calls of the model API.
        calls: u64,
        /// Their tokens.
        tokens: Tokens,
    },
    /// The answer, authoritative: it replaces whatever was streamed.
    AssistantFinal {
        /// The text.
        content: String,
        /// How many bytes at its end were too many to be stored.
        #[serde(default, skip_serializing_if = "is_none")]
        cut_bytes: u64,
    },
    /// The run succeeded.
    Done,
    /// The run failed.
    Error {
        /// Why, as a code.
        code: RunErrorCode,
        /// Why, in words.
        message: String,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
const fn is_none(bytes: &u64) -> bool {
    *bytes == 0
}

impl AgentEvent {
    /// Its type, as it is written.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Status { .. } => "status",
            Self::TextDelta { .. } => "text_delta",
            Self::Progress { .. } => "progress",
            Self::Tool { .. } => "tool",
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
    /// It waits for somebody to work on it: it is to begin anew.
    Queued,
    /// Grant, listener and workspace are made.
    Preparing,
    /// The container is made.
    Starting,
    /// The agent runs.
    Running,
    /// The agent has ended; usage is read, everything is removed.
    Settling,
}

impl Phase {
    /// Its name, as it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Preparing => "preparing",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Settling => "settling",
        }
    }
}

/// One of a process's two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl OutputStream {
    /// Its name, as it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Why a run failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunErrorCode {
    /// It ran longer than it may.
    Timeout,
    /// It used more memory than it may.
    OomKilled,
    /// The agent's process failed, or said that it did.
    ContainerFailed,
    /// Somebody asked for it to stop.
    Cancelled,
    /// Its image is not on the host.
    ImageMissing,
    /// A volume of its entry is not on the host.
    VolumeMissing,
    /// There was no room for its workspace.
    NoRoom,
    /// Its workspace could not be made or kept.
    WorkspaceFailed,
    /// Somebody has removed the container while the agent ran.
    ContainerLost,
    /// Docker did not answer for longer than it is waited for.
    DockerAway,
    /// Docker refused to make the container or to start it: its image or its limits do not allow that.
    DockerFailed,
    /// The data plane did not answer for longer than it is waited for.
    DataPlaneAway,
    /// The data plane refused the run, or has another one under its id.
    DataPlaneFailed,
    /// What the run does could not be stored.
    StoreFailed,
    /// Its gateway did not answer for longer than it is waited for.
    GatewayAway,
    /// Its gateway cannot be used, or refused or gave up the turn.
    GatewayFailed,
    /// Its gateway was lost in the middle of the turn, and does not know it any more.
    SessionLost,
    /// The turn ended as if all were well, and no model had answered.
    NoAnswer,
    /// The model API, or the proxy before it, refused the last call for good.
    ModelRefused,
    /// The model API failed, or had too much to do.
    ModelBusy,
    /// The model API could not be reached, or broke off.
    ModelAway,
    /// The conversation is too long for the model.
    ContextOverflow,
    /// A limit of the run or its account is used up.
    LimitUsedUp,
    /// None of these. Only runs of earlier programs have it.
    Internal,
}

impl RunErrorCode {
    /// All of them.
    pub const ALL: [Self; 24] = [
        Self::Timeout,
        Self::OomKilled,
        Self::ContainerFailed,
        Self::Cancelled,
        Self::ImageMissing,
        Self::VolumeMissing,
        Self::NoRoom,
        Self::WorkspaceFailed,
        Self::ContainerLost,
        Self::DockerAway,
        Self::DockerFailed,
        Self::DataPlaneAway,
        Self::DataPlaneFailed,
        Self::StoreFailed,
        Self::GatewayAway,
        Self::GatewayFailed,
        Self::SessionLost,
        Self::NoAnswer,
        Self::ModelRefused,
        Self::ModelBusy,
        Self::ModelAway,
        Self::ContextOverflow,
        Self::LimitUsedUp,
        Self::Internal,
    ];

    /// The code as it is written; the first four as the specification spells them.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::OomKilled => "oom_killed",
            Self::ContainerFailed => "container_failed",
            Self::Cancelled => "cancelled",
            Self::ImageMissing => "image_missing",
            Self::VolumeMissing => "volume_missing",
            Self::NoRoom => "no_room",
            Self::WorkspaceFailed => "workspace_failed",
            Self::ContainerLost => "container_lost",
            Self::DockerAway => "docker_away",
            Self::DockerFailed => "docker_failed",
            Self::DataPlaneAway => "data_plane_away",
            Self::DataPlaneFailed => "data_plane_failed",
            Self::StoreFailed => "store_failed",
            Self::GatewayAway => "gateway_away",
            Self::GatewayFailed => "gateway_failed",
            Self::SessionLost => "session_lost",
            Self::NoAnswer => "no_answer",
            Self::ModelRefused => "model_refused",
            Self::ModelBusy => "model_busy",
            Self::ModelAway => "model_away",
            Self::ContextOverflow => "context_overflow",
            Self::LimitUsedUp => "limit_used_up",
            Self::Internal => "internal",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_says_of_itself_what_is_written_of_it() {
        let stream = OutputStream::Stderr;
        let text = || "t".to_owned();
        let events = [
            AgentEvent::Status { phase: Phase::Queued },
            AgentEvent::TextDelta { delta: text() },
            AgentEvent::Progress { text: text() },
            AgentEvent::Tool { name: text() },
            AgentEvent::Log { stream, text: text() },
            AgentEvent::LogCut { stream, bytes: 7 },
            AgentEvent::Missed { count: 7 },
            AgentEvent::Pruned { count: 7 },
            AgentEvent::UsageReport { calls: 1, tokens: Tokens::default() },
            AgentEvent::AssistantFinal { content: text(), cut_bytes: 0 },
            AgentEvent::Done,
            AgentEvent::Error { code: RunErrorCode::Timeout, message: text() },
        ];
        for event in events {
            let json = serde_json::to_value(&event).unwrap();
            assert_eq!(json["type"], event.kind());
            assert!(json.get("cut_bytes").is_none(), "what was not cut is not said to be: {json}");
            assert_eq!(serde_json::from_value::<AgentEvent>(json).unwrap(), event);
        }
        for phase in [Phase::Queued, Phase::Preparing, Phase::Starting, Phase::Running, Phase::Settling] {
            assert_eq!(serde_json::to_value(phase).unwrap(), phase.name());
        }
        for code in RunErrorCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.code());
        }
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            assert_eq!(serde_json::to_value(stream).unwrap(), stream.name());
        }
    }
}
