//! tap is what a watcher of a run is told while its calls go on.

use serde::{Deserialize, Serialize};

use crate::{
    id::CallId,
    record::{Outcome, Tokens, TokensSource},
};

/// What is told of a run's calls while they go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TapEvent {
    /// Text.
    Text {
        /// The call whose answer it is of.
        call: CallId,
        /// The piece.
        delta: String,
    },
    /// The model began to call a tool.
    Tool {
        /// The call whose answer says so.
        call: CallId,
        /// Its name, if it is plain; else its length and hash.
        name: String,
    },
    /// A call has ended.
    Ended {
        /// The call.
        call: CallId,
        /// How.
        outcome: Outcome,
        /// Its tokens.
        tokens: Tokens,
        /// How well they are known.
        tokens_source: TokensSource,
    },
    /// Events the reader was too slow for.
    Missed {
        /// How many.
        count: u64,
    },
}

/// A line of a tap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TapLine {
    /// Its number: greater than that of every line before. Whoever comes back names the last one they had; if that was told
    /// by a proxy before, they are told all there is. None, which is 0, has what tells of other lines.
    #[serde(default)]
    pub n: u64,
    /// What is told.
    #[serde(flatten)]
    pub event: TapEvent,
}
