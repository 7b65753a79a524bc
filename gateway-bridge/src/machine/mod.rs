//! Defines the states of one connection, and the legal transitions between them.
//!
//! Pure: input is parsed already, and the connection's task executes what comes out.

use std::time::Duration;

use crate::{
    error::{DisconnectReason, Error},
    hello::Hello,
    outcome::Code,
    wire::gateway_error::GatewayError,
};

/// Close codes of a gateway that speaks another protocol, and of one that is not ready.
const CLOSE_PROTOCOL: u16 = 1002;
const CLOSE_TRY_LATER: u16 = 1013;

/// State of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The socket is open; the gateway speaks first.
    AwaitingChallenge,
    /// `connect` was sent.
    AwaitingHello,
    /// Calls are sent and events are received.
    Serving,
    /// The gateway has announced that it stops; events that it still sends count.
    Stopping {
        /// Time until the gateway expects to be back.
        back_in: Option<Duration>,
    },
    /// The connection has ended.
    Over,
}

/// Input from a connection.
#[derive(Debug)]
pub(crate) enum Input {
    Challenge,
    /// The answer to `connect`, and whether it grants what is needed.
    Hello(Result<Hello, Error>),
    /// `connect` was refused.
    Refusal(GatewayError),
    Shutdown {
        back_in: Option<Duration>,
    },
    /// An event or an answer of any other kind.
    Frame,
    Broken(DisconnectReason),
    /// The gateway did not send its hello within this time.
    Late(Duration),
}

/// Action for the connection's task.
#[derive(Debug)]
pub(crate) enum Next {
    /// Nothing.
    Stay,
    /// Send `connect`.
    Connect,
    /// Publish that there is a connection.
    Serve(Box<Hello>),
    /// Handle the frame.
    Handle,
    /// Give the connection up and open a new one.
    Reconnect {
        why: Error,
        /// Shortest delay that the gateway requested.
        min_delay: Option<Duration>,
    },
    /// Give up for good.
    Fail(Error),
}

impl State {
    /// Returns the state after `input`, and the action that it needs.
    pub(crate) fn step(self, input: Input) -> (Self, Next) {
        let reconnect = |why, min_delay| (Self::Over, Next::Reconnect { why, min_delay });
        match (self, input) {
            (Self::AwaitingChallenge, Input::Challenge) => (Self::AwaitingHello, Next::Connect),
            (Self::AwaitingHello, Input::Hello(Ok(hello))) => (Self::Serving, Next::Serve(Box::new(hello))),
            (Self::AwaitingHello, Input::Hello(Err(error))) => (Self::Over, Next::Fail(error)),
            (Self::AwaitingHello, Input::Refusal(error)) => (Self::Over, refused(error)),
            // Gateways send presence events to every connection, also before the hello.
            (Self::AwaitingChallenge | Self::AwaitingHello, Input::Frame) => (self, Next::Stay),
            (Self::AwaitingChallenge | Self::AwaitingHello, Input::Late(limit)) => {
                reconnect(Error::HandshakeTimeout { limit }, None)
            }
            (Self::AwaitingChallenge | Self::AwaitingHello, Input::Shutdown { back_in }) => {
                reconnect(Error::NotReady { code: Code::new("shutdown") }, back_in)
            }
            (
                Self::AwaitingChallenge | Self::AwaitingHello,
                Input::Broken(DisconnectReason::Closed(CLOSE_PROTOCOL)),
            ) => (Self::Over, Next::Fail(Error::ProtocolMismatch { expected: None })),
            (
                Self::AwaitingChallenge | Self::AwaitingHello,
                Input::Broken(DisconnectReason::Closed(CLOSE_TRY_LATER)),
            ) => reconnect(Error::NotReady { code: Code::new("1013") }, None),
            (Self::Serving | Self::Stopping { .. }, Input::Frame) => (self, Next::Handle),
            (Self::Serving | Self::Stopping { .. }, Input::Shutdown { back_in }) => {
                (Self::Stopping { back_in }, Next::Handle)
            }
            (Self::Stopping { back_in }, Input::Broken(why)) => {
                reconnect(Error::Disconnected { why }, back_in)
            }
            (Self::AwaitingChallenge | Self::AwaitingHello | Self::Serving, Input::Broken(why)) => {
                reconnect(Error::Disconnected { why }, None)
            }
            // The handshake timeout has passed, but the hello came first.
            (Self::Serving | Self::Stopping { .. }, Input::Late(_)) => (self, Next::Stay),
            (Self::Over, _) => (self, Next::Stay),
            // A second challenge, a second hello, or a hello without a request.
            (_, Input::Challenge | Input::Hello(_) | Input::Refusal(_)) => {
                reconnect(Error::Disconnected { why: DisconnectReason::Protocol }, None)
            }
        }
    }
}

/// Maps a refused `connect` to the next action. The parameters of this client are valid. So an `INVALID_REQUEST`
/// without a code, which older gateways send, is about the token.
fn refused(error: GatewayError) -> Next {
    let detail = error.detail.as_ref().map(Code::as_str).unwrap_or_default();
    let code = error.code.as_ref().map(Code::as_str).unwrap_or_default();
    if error.expected_protocol.is_some() || detail == "PROTOCOL_MISMATCH" {
        return Next::Fail(Error::ProtocolMismatch { expected: error.expected_protocol });
    }
    if code == "UNAVAILABLE" || error.retry_after.is_some() {
        return Next::Reconnect {
            why: Error::NotReady { code: error.exact() },
            min_delay: error.retry_after,
        };
    }
    if let Some(request) = error.pairing {
        return Next::Fail(Error::PairingRequired { request });
    }
    if code == "NOT_PAIRED" {
        return Next::Fail(Error::NotIdentified);
    }
    if detail.starts_with("AUTH_") || (code == "INVALID_REQUEST" && detail.is_empty()) {
        return Next::Fail(Error::BadToken { code: error.exact() });
    }
    Next::Fail(Error::Rejected { code: error.exact(), message: error.message })
}

#[cfg(test)]
mod tests;
