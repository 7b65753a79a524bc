//! What is asked of a gateway: one turn of one conversation.

use platform_core::{
    id::{GatewayProvider, ModelName, RunId},
    traceparent::Traceparent,
};
use tokio::time::Instant;

use crate::{boot::Boot, headers::OutboundHeaders, session::SessionKey};

/// One message to an agent, and under which conditions it answers.
#[derive(Debug, Clone)]
pub struct Turn {
    /// The turn's own id: the gateway's key of idempotency, and its name for the turn in every event. No start of a gateway runs
    /// one id twice.
    pub id: RunId,
    /// The conversation. One turn at a time: a second one is refused, because a gateway may mix them.
    pub session: SessionKey,
    /// What the agent is told.
    pub message: String,
    /// The model that answers, by the upstream's name; the gateway's own choice without it.
    pub model: Option<ModelName>,
    /// How the proxy is to know the turn's model calls.
    pub attribution: Attribution,
    /// When the turn is aborted, whatever the gateway thinks of it.
    pub deadline: Instant,
}

/// How a turn's model calls are told from others'.
#[derive(Debug, Clone)]
pub enum Attribution {
    /// By the trace they are part of. Gateways pass it on from 2026.8; for others it is an error before anything is
    /// sent.
    Trace(Traceparent),
    /// By the provider of the gateway's configuration that the turn is bound to. Needs the turn's model.
    Slot {
        /// The leased provider.
        provider: GatewayProvider,
    },
    /// By headers in the frames themselves, as a gateway with that extension takes them. Others refuse the turn.
    Headers(OutboundHeaders),
    /// By headers that a plugin of the gateway puts on the calls of the session.
    Plugin(OutboundHeaders),
    /// By what was said when the turn was begun: for [`crate::Gateway::take_up`] of one that was taken.
    AsBegun,
}

/// What is known of a turn that somebody else has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// The start of the gateway that it was told to.
    pub at: Boot,
    /// Whether the gateway has it.
    pub taken: Taken,
}

/// Whether a gateway has a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It has said so.
    Yes,
    /// Nobody has heard: it may never have been sent.
    Maybe,
}
