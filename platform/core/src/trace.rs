//! Defines the events that report a run's calls, step by step, to the trace of the run.
//!
//! Events hold counts, names and times, and never a word of a request or an answer. So no grant is needed to read them.
//! Times are counted from the beginning of the call.

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
    /// A call has reached a step.
    Step {
        /// The call.
        call: CallId,
        /// Microseconds from the beginning of the call.
        at_us: u64,
        /// The step it has reached.
        #[serde(flatten)]
        step: Step,
    },
    /// Events that a slow reader missed.
    Missed {
        /// Number of events.
        count: u64,
    },
}

/// A step of a call's life, in the order in which they come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// The call was attributed to a run.
    Accepted {
        /// Source of the identity.
        identity: Identity,
    },
    /// The call holds a permit among the calls in flight.
    Admitted {
        /// Route that the call requests.
        route: Route,
    },
    /// The whole body was read, and it may pass.
    BodyRead {
        /// Size of the body in bytes.
        bytes: u64,
        /// Model that the call requests.
        model: JournalText,
        /// True if a stream was requested.
        stream: bool,
    },
    /// The call's highest possible use is reserved under the limits of the run and of the account.
    Reserved {
        /// Tokens of the prompt.
        input_tokens: u64,
        /// Tokens of the answers.
        output_tokens: u64,
        /// Highest cost of these tokens, if the model has a price.
        cost_nanodollars: Option<NanoDollars>,
    },
    /// The call is being sent to the upstream.
    Sent {
        /// Kind of connection it is sent on.
        connection: Connection,
    },
    /// The head of the upstream's answer has arrived.
    FirstByte {
        /// HTTP status of the answer.
        status: u16,
    },
    /// The first event of a stream was passed on.
    FirstEvent,
    /// A part of the answer has been passed on. Reported a few times a second at most.
    Progress {
        /// Bytes passed on by now.
        bytes: u64,
        /// Pieces passed on by now.
        pieces: u64,
    },
    /// The call has ended.
    Ended {
        /// Outcome of the call.
        outcome: Outcome,
        /// HTTP status.
        status: u16,
        /// Reason why Sluicegate answered itself, if it did.
        refusal: Option<Refusal>,
        /// Rule that decided the refusal.
        rule: Option<JournalText>,
        /// Bytes of the answer that were passed on.
        bytes: u64,
    },
    /// The record of the call is written, and its limits are settled.
    Settled {
        /// Tokens used.
        tokens: Tokens,
        /// Accuracy of the token counts.
        tokens_source: TokensSource,
        /// Cost of the call.
        cost_nanodollars: Option<NanoDollars>,
        /// Source of the cost.
        cost_source: CostSource,
    },
}

/// Kind of connection on which a call is sent to the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Connection {
    /// A connection opened for this call.
    Fresh,
    /// A connection kept from an earlier call.
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
