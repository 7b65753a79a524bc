//! Defines the events of a turn, and its endings.

use platform_core::id::{ModelName, ToolName};

/// Event of a running turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEvent {
    /// New text of the answer, never repeated. The text of [`Ending::Completed`] is the one that counts.
    Text(String),
    /// The agent uses a tool.
    Tool {
        /// Name of the tool; `None` if it is not spelled like one.
        name: Option<ToolName>,
        /// State of the tool.
        state: ToolState,
        /// Details of the call; `None` if the gateway names no call.
        call: Option<ToolCall>,
    },
    /// The turn has reached this phase.
    Status(TurnPhase),
    /// Tokens, if the gateway reports them while the turn runs.
    Usage(Usage),
    /// The reader was too slow, and text was dropped. It is in the text of [`Ending::Completed`].
    Missed {
        /// Number of dropped bytes.
        bytes: usize,
    },
}

/// Call of a tool, as a gateway describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Id of the call, in the words of the model.
    pub id: String,
    /// Arguments as JSON text when the tool starts, and the text of its result when it has returned. Both are cut.
    pub text: String,
    /// Number of bytes that were cut from the end of the text.
    pub cut_bytes: usize,
}

/// State of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolState {
    /// The agent called the tool.
    Started,
    /// The tool returned.
    Finished,
    /// The tool returned an error.
    Failed,
}

/// Phase of a turn. Phases that a later gateway invents are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnPhase {
    /// The gateway has accepted the turn.
    Accepted,
    /// The gateway prepares the turn: files, context.
    Preparing,
    /// The agent runs.
    Started,
    /// A model was chosen and is called.
    Model,
    /// An operator must approve a command.
    WaitingForApproval,
    /// The operator has decided.
    ApprovalResolved,
    /// The conversation is being shortened.
    Compacting,
    /// The conversation was shortened.
    Compacted,
    /// The answer is complete.
    Finishing,
    /// The connection broke; the turn continues, and its end will be fetched.
    Reconnecting,
    /// The connection is back.
    Reconnected,
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

/// Ending of a turn. There is exactly one for every turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The agent answered.
    Completed {
        /// Whole answer; it counts where it differs from the pieces that were reported.
        text: String,
        /// Tokens, if the gateway reports them.
        usage: Option<Usage>,
        /// The model that answered last, if the gateway reports it.
        model: Option<ModelName>,
    },
    /// The turn failed.
    Failed(TurnFailure),
}

/// Reason why a turn has no answer. Decided by the structure of frames, never by their prose.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TurnFailure {
    /// The turn was cancelled: by [`crate::Running::cancel`], because its reader has gone, or by another client.
    #[error("the turn was aborted")]
    Aborted,
    /// The turn's deadline passed.
    #[error("the turn's deadline passed")]
    Deadline,
    /// The gateway gave up the turn because it took too long.
    #[error("the gateway timed the turn out")]
    TimedOut,
    /// The gateway was restarted, or the connection did not come back, and the end of the turn is unknown.
    #[error("the connection to the gateway was lost, and it does not know the turn any more")]
    Lost,
    /// The gateway reports that the turn failed.
    #[error("the gateway reports that the turn failed ({code})")]
    Upstream {
        /// Most exact code of the frames: an error's kind, else its code.
        code: Code,
    },
    /// The turn ended as if all were well, but no model answered: how older gateways report that the upstream refused.
    #[error("the turn ended without an answer of a model")]
    NoAnswer,
    /// The gateway refused the turn; nothing was run.
    #[error("the gateway refused the turn ({code})")]
    Refused {
        /// Code of the error.
        code: Code,
    },
    /// The frame of the turn was larger than this gateway accepts; nothing was sent.
    #[error("the turn has {size} bytes, this gateway takes {limit}")]
    TooLarge {
        /// Size of the frame.
        size: usize,
        /// Largest frame that the gateway accepts.
        limit: usize,
    },
}

/// Code that a gateway sent: 1 to 64 letters, digits, `_`, `-` and `.`. Anything else is `unnamed`.
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

    /// Returns the code as text.
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
