//! Defines the errors between this client and a gateway.

use std::{io, sync::Arc, time::Duration};

use platform_core::code::{self, Coded};

use crate::outcome::Code;

/// Failure between this client and a gateway. Cheap to clone: every waiting caller receives the same error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The gateway speaks none of the protocols 3 and 4. Final.
    #[error("the gateway speaks protocol {}, this client 3 and 4: use another version of one of them", ProtocolNumber(.expected))]
    ProtocolMismatch {
        /// Protocol that the gateway expects, if it reports one.
        expected: Option<u64>,
    },
    /// The gateway does not know the token. Final.
    #[error("the gateway refused the token ({code}): give it the one of the gateway's gateway.auth.token")]
    BadToken {
        /// Code that the gateway gave.
        code: Code,
    },
    /// The gateway requires a token or a device, and received neither. Final.
    #[error("the gateway requires a token or a paired device: give the token, or pair this device")]
    NotIdentified,
    /// The gateway does not know this device yet. Final: a person must approve the pairing.
    #[error(
        "this device is not paired with the gateway yet: approve the request with `openclaw devices approve {request}` where the gateway runs"
    )]
    PairingRequired {
        /// Id of the pairing request that must be approved.
        request: String,
    },
    /// The gateway granted fewer rights than were requested. Final.
    #[error(
        "the gateway does not grant {}: off the loopback newer gateways give a token alone no rights, so pair this device", .missing.join(", ")
    )]
    MissingScopes {
        /// Rights that are missing.
        missing: Vec<&'static str>,
    },
    /// The gateway refused the connection for another reason. Final.
    #[error("the gateway refused the connection ({code}): {message}")]
    Rejected {
        /// Code that the gateway gave.
        code: Code,
        /// Message of the gateway, cut to 300 characters and escaped.
        message: String,
    },
    /// An intermediary answered with HTTP instead. Final for 401 and 403.
    #[error(
        "the upgrade to WebSocket was answered with HTTP status {status}: is there a reverse proxy in front of the gateway?"
    )]
    NotUpgraded {
        /// Status of that answer.
        status: u16,
    },
    /// The gateway cannot be reached; the client tries again.
    #[error("cannot reach the gateway at {endpoint}")]
    Unreachable {
        /// Address of the gateway.
        endpoint: String,
        /// Cause of the failure.
        #[source]
        source: Arc<io::Error>,
    },
    /// The gateway did not finish the handshake in time; the client tries again.
    #[error("the handshake with the gateway timed out after {limit:?}")]
    HandshakeTimeout {
        /// Timeout of the handshake.
        limit: Duration,
    },
    /// The gateway is starting or overloaded and asks for a later attempt; the client makes one.
    #[error("the gateway is not ready ({code})")]
    NotReady {
        /// Code that the gateway gave.
        code: Code,
    },
    /// The connection broke. The request may have been executed or not.
    #[error("the connection to the gateway broke: {why}")]
    Disconnected {
        /// Reason of the end.
        why: DisconnectReason,
    },
    /// The gateway did not answer in time. The request may have been executed or not.
    #[error("the gateway did not answer {method} within {limit:?}")]
    NoAnswer {
        /// Method that was called.
        method: String,
        /// Timeout of the call.
        limit: Duration,
    },
    /// The gateway answered with an error.
    #[error("the gateway refused {method} ({code}): {message}")]
    Refused {
        /// Method that was called.
        method: String,
        /// Most exact code of the answer.
        code: Code,
        /// Message of the gateway, cut to 300 characters and escaped: for a person, not for decisions.
        message: String,
        /// Time after which the call may be repeated, if the gateway allows that.
        retry_after: Option<Duration>,
    },
    /// The gateway's answer does not follow the protocol.
    #[error("invalid answer of the gateway to {method}: {reason}")]
    Malformed {
        /// Method that was called.
        method: String,
        /// Reason why the answer is invalid.
        reason: &'static str,
    },
    /// The frame is larger than the gateway accepts. Nothing was sent.
    #[error("{method} has {size} bytes, this gateway takes {limit}")]
    TooLarge {
        /// Method that was called.
        method: String,
        /// Size of the frame.
        size: usize,
        /// Largest frame that the gateway accepts.
        limit: usize,
    },
    /// This version of the gateway lacks a feature that the turn needs. Nothing was sent.
    #[error("gateway version {version} cannot {what}")]
    Unsupported {
        /// Feature that is missing.
        what: &'static str,
        /// Version of the gateway, as it reports it.
        version: String,
    },
    /// The turn contradicts itself. Nothing was sent.
    #[error("the turn cannot be run: {reason}")]
    InvalidTurn {
        /// Reason why the turn cannot be run.
        reason: &'static str,
    },
    /// Another turn with this id or in this session is running. Nothing was sent.
    #[error("session {session} has a turn already")]
    Busy {
        /// The session.
        session: String,
    },
    /// Too many calls wait for their answers. Nothing was sent.
    #[error("{limit} calls to the gateway wait for their answers")]
    TooMany {
        /// Most calls that may wait.
        limit: usize,
    },
    /// The connection was closed by this side.
    #[error("the connection to the gateway was closed")]
    Closed,
}

impl Coded for Error {
    fn code(&self) -> code::Code {
        code::Code::GatewayFailed
    }
}

impl Error {
    /// Returns whether a retry can only fail again, because an operator must change something first.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(
            self,
            Self::ProtocolMismatch { .. }
                | Self::BadToken { .. }
                | Self::NotIdentified
                | Self::PairingRequired { .. }
                | Self::MissingScopes { .. }
                | Self::Rejected { .. }
                | Self::NotUpgraded { status: 401 | 403 }
                | Self::Closed
        )
    }
}

/// Reason why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisconnectReason {
    /// The gateway closed the connection, with this code (RFC 6455, 7.4); 1006 if it gave none.
    Closed(u16),
    /// The gateway missed two ticks.
    Silent,
    /// The gateway sent a frame larger than this side accepts.
    Oversize,
    /// The gateway sent data that is not a WebSocket message, or closed in the middle of one.
    Protocol,
}

impl std::fmt::Display for DisconnectReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed(code) => write!(f, "closed with code {code}"),
            Self::Silent => f.write_str("two ticks were missed"),
            Self::Oversize => f.write_str("a frame was larger than this side takes"),
            Self::Protocol => f.write_str("the gateway sent data that is not a WebSocket message"),
        }
    }
}

struct ProtocolNumber<'a>(&'a Option<u64>);

impl std::fmt::Display for ProtocolNumber<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(number) => write!(f, "{number}"),
            None => f.write_str("of an unknown number"),
        }
    }
}
