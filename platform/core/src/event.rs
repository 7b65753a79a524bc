//! What a run tells the outside while it goes on.

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
    /// A piece of an answer, as the model produces it.
    TextDelta {
        /// The piece.
        delta: String,
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
    /// Pieces that a slow reader missed.
    Missed {
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
    /// The answer, complete and authoritative.
    AssistantFinal {
        /// The text.
        content: String,
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

/// Phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Grant, listener and workspace are made.
    Preparing,
    /// The container is made.
    Starting,
    /// The agent runs.
    Running,
    /// The agent has ended; usage is read, everything is removed.
    Settling,
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
    /// Sluicegate, Docker or the host failed; the agent is not to blame.
    Internal,
}

impl RunErrorCode {
    /// The code as the specification spells it.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::OomKilled => "oom_killed",
            Self::ContainerFailed => "container_failed",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
        }
    }
}
