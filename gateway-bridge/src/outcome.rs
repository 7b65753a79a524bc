//! What a turn tells while it runs, and how it ended.

use platform_core::id::{ModelName, ToolName};

/// Something that happened in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// More of the answer: what was not told before. The text at the end is what counts.
    Text(String),
    /// A tool of the agent's.
    Tool {
        /// Its name; none if it is not spelled like one.
        name: Option<ToolName>,
        /// What became of it.
        state: ToolState,
    },
    /// How far the turn is.
    Status(Phase),
    /// Tokens, as far as the gateway says while the turn runs.
    Usage(Usage),
    /// The reader was too slow for so many bytes of text, which are in the text at the end.
    Missed {
        /// Bytes of text that were not kept.
        bytes: usize,
    },
}

/// What became of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolState {
    /// It was called.
    Started,
    /// It returned.
    Finished,
    /// It returned an error.
    Failed,
}

/// How far a turn is. Phases that a later gateway invents are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The gateway has taken the turn.
    Accepted,
    /// The gateway prepares: files, context.
    Preparing,
    /// The agent runs.
    Started,
    /// A model was chosen and is asked.
    Model,
    /// Somebody must approve a command.
    WaitingForApproval,
    /// Somebody has decided.
    ApprovalResolved,
    /// The conversation is being shortened.
    Compacting,
    /// The answer is complete.
    Finishing,
    /// The connection broke; the turn goes on, and its end will be fetched.
    Reconnecting,
}

/// Tokens as a gateway counts them; the journal's figures are the ones to bill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens that were read.
    pub input: u64,
    /// Tokens that were written.
    pub output: u64,
    /// Tokens of the input that were cached.
    pub cache_read: u64,
}

/// How a turn ended. There is exactly one for every turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The agent answered.
    Completed {
        /// The whole answer; where it differs from what was told in pieces, this counts.
        text: String,
        /// Tokens, if the gateway says.
        usage: Option<Usage>,
        /// The model that answered last, if the gateway says.
        model: Option<ModelName>,
    },
    /// It did not.
    Failed(Failure),
}

/// Why a turn has no answer. Decided by the structure of frames, never by their prose.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It was cancelled: by [`crate::Running::cancel`], because nobody listens any more, or by another client.
    #[error("the turn was aborted")]
    Aborted,
    /// Its deadline passed.
    #[error("the turn's deadline passed")]
    Deadline,
    /// The gateway gave it up for taking too long.
    #[error("the gateway gave the turn up for taking too long")]
    TimedOut,
    /// The gateway was restarted, or the connection did not come back, and what became of the turn is not known.
    #[error("the connection to the gateway was lost, and it does not know the turn any more")]
    Lost,
    /// The gateway says that the turn failed.
    #[error("the gateway reports that the turn failed ({code})")]
    Upstream {
        /// The most exact code of the frames: an error's kind, else its code.
        code: Code,
    },
    /// The turn ended as if all were well, but no model answered: how older gateways report that the upstream refused.
    #[error("the turn ended without an answer of a model")]
    NoAnswer,
    /// The gateway refused the turn; nothing was run.
    #[error("the gateway refused the turn ({code})")]
    Refused {
        /// The error's code.
        code: Code,
    },
    /// The frame of the turn was larger than this gateway takes; nothing was sent.
    #[error("the turn has {size} bytes, this gateway takes {limit}")]
    TooLarge {
        /// Size of the frame.
        size: usize,
        /// What the gateway takes.
        limit: usize,
    },
}

/// A code of a gateway's: 1 to 64 letters, digits, `_`, `-` and `.`. Anything else is `unnamed`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Code(String);

impl Code {
    /// Keeps `text` if it is spelled like a code.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let fits = (1..=64).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
        Self(if fits { text.to_owned() } else { "unnamed".to_owned() })
    }

    /// The code.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}
