//! Provides a client of OpenClaw gateways: it runs turns of conversations, and attributes their model calls.
//!
//! One task owns one connection; [`Gateway`] is the handle of it, cheap to clone. The client speaks protocols 3 and 4,
//! over TCP, TLS or a unix socket. It reconnects, and keeps turns apart: an event reaches a turn only if run id and
//! session key are both the turn's.
//!
//! [`client_frame`] reads what clients of gateways send, for a program that serves them in a gateway's place.
//!
//! The client does not start gateways, write their configuration, register a turn's identity with the proxy, or keep
//! conversations. It decides nothing by the prose of an answer. The costs of a turn are in the journal alone.

mod backoff;
mod boot_id;
pub mod client_frame;
mod connection_phase;
mod connection_task;
mod counts;
mod delta;
mod device;
mod duplex;
mod endpoint;
mod error;
#[cfg(feature = "internals")]
pub mod fuzzing;
mod gateway;
mod handle;
mod headers;
mod hello;
mod history;
mod machine;
mod outcome;
mod routes;
mod running;
mod session;
mod settings;
mod subscription;
mod transport;
mod turn;
mod turn_state;
mod turn_task;
mod verdict;
mod wire;

#[cfg(test)]
mod tests;

pub use self::{
    boot_id::BootId,
    counts::ConnectionCounts,
    device::{DeviceError, DeviceKey},
    endpoint::{Endpoint, InvalidEndpoint},
    error::{DisconnectReason, Error},
    gateway::Gateway,
    headers::{InvalidHeaders, MAX_HEADERS_SIZE, OutboundHeaders},
    hello::{GatewayVersion, Generation, Hello},
    history::{Message, MessageRole, Waited},
    outcome::{Code, Ending, ToolCall, ToolState, TurnEvent, TurnFailure, TurnPhase, Usage},
    running::Running,
    session::{InvalidSession, SessionKey},
    settings::{GatewayLimits, Scope, Scopes, Settings},
    subscription::{Decision, Notice, Subscription, SubscriptionItem},
    turn::{Attribution, Begun, Delivery, Turn},
};
