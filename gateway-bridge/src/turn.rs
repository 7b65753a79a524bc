//! Describes one turn of one conversation, as a gateway is asked to run it.

use platform_core::{
    id::{GatewayProvider, ModelName, RunId},
    traceparent::Traceparent,
};
use tokio::time::Instant;

use crate::{boot_id::BootId, headers::OutboundHeaders, session::SessionKey};

/// Message to an agent, with the conditions of its answer.
#[derive(Debug, Clone)]
pub struct Turn {
    /// Id of the turn: the gateway's idempotency key, and its name for the turn in every event. Between two
    /// restarts a gateway runs one id at most once.
    pub run_id: RunId,
    /// Conversation of the turn. It has one turn at a time: a second one is refused, because a gateway may mix them.
    pub session: SessionKey,
    /// Message for the agent.
    pub message: String,
    /// Model that answers, by the upstream's name; without it the gateway chooses.
    pub model: Option<ModelName>,
    /// Directory of the conversation at the gateway, an absolute path that exists; that of the agent if absent, at gateways
    /// before 2026.9, and if the gateway refuses it.
    pub directory: Option<String>,
    /// Way in which the proxy recognizes the turn's model calls.
    pub attribution: Attribution,
    /// Time at which the turn is aborted, whatever the gateway reports.
    pub deadline: Instant,
}

/// Way in which a turn's model calls are distinguished from others'.
#[derive(Debug, Clone)]
pub enum Attribution {
    /// The trace that the calls are part of. Gateways pass it on from version 2026.8; for an older one the turn is
    /// an error before anything is sent.
    Trace(Traceparent),
    /// The provider of the gateway's configuration that the turn is bound to. Needs the turn's model.
    Slot {
        /// Provider that is leased for the turn.
        provider: GatewayProvider,
    },
    /// Headers in the frames themselves, as a gateway with that extension takes them. Others refuse the turn.
    Headers(OutboundHeaders),
    /// Headers that a plugin of the gateway puts on the calls of the session.
    Plugin(OutboundHeaders),
    /// The attribution that the turn was begun with: for [`crate::Gateway::resume`] of a turn that the gateway has.
    AsBegun,
}

/// State of a turn that another process has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Start of the gateway that the turn was sent to.
    pub at: BootId,
    /// Certainty of that process that the gateway has the turn.
    pub delivery: Delivery,
}

/// Certainty that a gateway has a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The gateway has confirmed it.
    Confirmed,
    /// There was no confirmation: the turn may never have been sent.
    Unconfirmed,
}
