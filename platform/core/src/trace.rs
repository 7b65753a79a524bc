//! What is told of a run's calls, step by step, to whoever traces the run.
//!
//! Counts, names and times: never a word of what is asked or answered, so that no grant is needed. Times are from the call's
//! beginning.

use serde::{Deserialize, Serialize};

use crate::{
    id::CallId,
    money::NanoDollars,
    record::{CostSource, Identity, Outcome, Tokens, TokensSource},
    refusal::Refusal,
    route::Route,
    untrusted::JournalText,
};

/// A line of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TraceEvent {
    /// A call has come this far.
    Step {
        /// The call.
        call: CallId,
        /// Microseconds from its beginning.
        at_us: u64,
        /// How far.
        #[serde(flatten)]
        step: Step,
    },
    /// Events the reader was too slow for.
    Missed {
        /// How many.
        count: u64,
    },
}

/// A step of a call's life, in the order in which they come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// It is known whose call it is.
    Accepted {
        /// What that was read from.
        identity: Identity,
    },
    /// It has its place among the calls in flight.
    Admitted {
        /// The route it asks for.
        route: Route,
    },
    /// Its body was read whole and may pass.
    BodyRead {
        /// How much that is.
        bytes: u64,
        /// The model it asks for.
        model: JournalText,
        /// Whether the answer is to stream.
        stream: bool,
    },
    /// The most it can use is set aside, of the run's limits and the account's.
    Reserved {
        /// Tokens of its prompt.
        input_tokens: u64,
        /// Tokens of its answers.
        output_tokens: u64,
        /// What they cost at most, if the model has a price.
        cost_nanodollars: Option<NanoDollars>,
    },
    /// It goes to the upstream.
    Sent {
        /// On which connection.
        connection: Connection,
    },
    /// The head of the upstream's answer is there.
    FirstByte {
        /// Its status.
        status: u16,
    },
    /// The first of a stream was passed on.
    FirstEvent,
    /// So much of the answer was passed on by now. Told a few times a second at most.
    Progress {
        /// Bytes.
        bytes: u64,
        /// In so many pieces.
        pieces: u64,
    },
    /// It has ended.
    Ended {
        /// How.
        outcome: Outcome,
        /// HTTP status.
        status: u16,
        /// Why Sluicegate answered itself, if it did.
        refusal: Option<Refusal>,
        /// What decided that.
        rule: Option<JournalText>,
        /// Bytes of the answer that were passed on.
        bytes: u64,
    },
    /// Its record is written, and its limits are settled.
    Settled {
        /// Tokens used.
        tokens: Tokens,
        /// How well they are known.
        tokens_source: TokensSource,
        /// What it cost.
        cost_nanodollars: Option<NanoDollars>,
        /// Where that is from.
        cost_source: CostSource,
    },
}

/// The connection on which a call goes to the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Connection {
    /// Made for it.
    Fresh,
    /// Left by a call before.
    Pooled,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_flat_object() {
        let event = TraceEvent::Step {
            call: CallId::new(1, 2),
            at_us: 3,
            step: Step::Sent { connection: Connection::Pooled },
        };
        let json = serde_json::to_string(&event).unwrap();
        let expected = r#"{"type":"step","call":"00000000-0001-7000-8000-000000000002","at_us":3,"step":"sent","connection":"pooled"}"#;
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<TraceEvent>(&json).unwrap(), event);
    }
}
