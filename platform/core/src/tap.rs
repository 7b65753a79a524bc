//! Defines the events that a watcher of a run receives while the run's calls go on.

use serde::{Deserialize, Serialize};

use crate::{
    id::CallId,
    record::{Outcome, Tokens, TokensSource},
};

/// Event that a watcher of a run receives while its calls go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TapEvent {
    /// A piece of an answer's text.
    Text {
        /// The call that the answer belongs to.
        call: CallId,
        /// The piece.
        delta: String,
    },
    /// The model began to call a tool.
    Tool {
        /// The call that the answer belongs to.
        call: CallId,
        /// Name of the tool if it is plain, else its length and hash.
        name: String,
    },
    /// A call has ended.
    Ended {
        /// The call.
        call: CallId,
        /// Outcome of the call.
        outcome: Outcome,
        /// Tokens of the call.
        tokens: Tokens,
        /// Accuracy of the token counts.
        tokens_source: TokensSource,
    },
    /// Events that a slow reader missed.
    Missed {
        /// Number of events.
        count: u64,
    },
}

/// A line of a tap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TapLine {
    /// Number of the line, greater than that of every line before. A watcher that reconnects names the last line it
    /// received; if an earlier proxy sent that line, the watcher receives all lines that are kept. [`TapEvent::Missed`]
    /// has no number, which is written as 0.
    #[serde(default)]
    pub n: u64,
    /// Event on this line.
    #[serde(flatten)]
    pub event: TapEvent,
}
