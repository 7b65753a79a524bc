//! Why a gateway does not do what it was asked.

use std::{io, sync::Arc, time::Duration};

use crate::outcome::Code;

/// What goes wrong between this client and a gateway. Cheap to clone: every waiting caller is told the same.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The gateway speaks none of the protocols 3 and 4. Final.
    #[error("the gateway speaks protocol {}, this client 3 and 4: use another version of one of them", Shown(.expected))]
    ProtocolMismatch {
        /// What it expects, if it says so.
        expected: Option<u64>,
    },
    /// The gateway does not know the token. Final.
    #[error("the gateway refused the token ({code}): give it the one of the gateway's gateway.auth.token")]
    BadToken {
        /// The gateway's code.
        code: Code,
    },
    /// The gateway wants a token or a device, and was given neither. Final.
    #[error(
        "the gateway takes nobody without a token or a paired device: give the token, or pair this device"
    )]
    NotIdentified,
    /// The gateway does not know this device yet. Final: pairing takes a person.
    #[error(
        "this device is not paired with the gateway yet: approve the request with `openclaw devices approve {request}` where the gateway runs"
    )]
    PairingRequired {
        /// Id of the request that is to be approved.
        request: String,
    },
    /// The gateway gave fewer rights than were asked for. Final.
    #[error(
        "the gateway does not grant {}: off the loopback newer gateways give a token alone no rights, so pair this device", .missing.join(", ")
    )]
    MissingScopes {
        /// The rights that are missing.
        missing: Vec<&'static str>,
    },
    /// The gateway refused to be connected for another reason. Final.
    #[error("the gateway refused the connection ({code}): {message}")]
    Rejected {
        /// The gateway's code.
        code: Code,
        /// What it says, cut to 300 characters and escaped.
        message: String,
    },
    /// Something between us and the gateway answered HTTP instead. Final for 401 and 403.
    #[error(
        "the upgrade to WebSocket was answered with HTTP status {status}: is there a reverse proxy in front of the gateway?"
    )]
    NotUpgraded {
        /// The status.
        status: u16,
    },
    /// The gateway cannot be reached; it is tried again.
    #[error("cannot reach the gateway at {endpoint}")]
    Unreachable {
        /// Its address.
        endpoint: String,
        /// Why not.
        #[source]
        source: Arc<io::Error>,
    },
    /// The gateway did not finish the handshake in time; it is tried again.
    #[error("the gateway said no hello within {limit:?}")]
    HandshakeTimeout {
        /// The time it had.
        limit: Duration,
    },
    /// The gateway is starting or overloaded and asks to be asked later; it is.
    #[error("the gateway is not ready ({code})")]
    NotReady {
        /// The gateway's code.
        code: Code,
    },
    /// The connection broke. What was asked may have been done or not.
    #[error("the connection to the gateway broke: {why}")]
    Disconnected {
        /// What ended it.
        why: Broken,
    },
    /// The gateway did not answer in time. What was asked may have been done or not.
    #[error("the gateway did not answer {method} within {limit:?}")]
    NoAnswer {
        /// What was called.
        method: String,
        /// The time it had.
        limit: Duration,
    },
    /// The gateway answered with an error.
    #[error("the gateway refused {method} ({code}): {message}")]
    Refused {
        /// What was called.
        method: String,
        /// The most exact code of the answer.
        code: Code,
        /// What it says, cut to 300 characters and escaped: for a person, not for decisions.
        message: String,
        /// When it may be tried again, if the gateway says that it may.
        retry_after: Option<Duration>,
    },
    /// The gateway's answer is not what the protocol says.
    #[error("the gateway's answer to {method} is not one: {reason}")]
    Malformed {
        /// What was called.
        method: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The frame is larger than the gateway takes. Nothing was sent.
    #[error("{method} has {size} bytes, this gateway takes {limit}")]
    TooLarge {
        /// What was called.
        method: String,
        /// Size of the frame.
        size: usize,
        /// What the gateway takes.
        limit: usize,
    },
    /// This version of the gateway cannot do it. Nothing was sent.
    #[error("gateway version {version} cannot {what}")]
    Unsupported {
        /// What it cannot do.
        what: &'static str,
        /// Its version, as it says.
        version: String,
    },
    /// The turn contradicts itself. Nothing was sent.
    #[error("the turn cannot be run: {reason}")]
    InvalidTurn {
        /// Why not.
        reason: &'static str,
    },
    /// Another turn of this id or this session is running. Nothing was sent.
    #[error("session {session} has a turn already")]
    Busy {
        /// The session.
        session: String,
    },
    /// Too many calls wait for their answers. Nothing was sent.
    #[error("{limit} calls to the gateway wait for their answers")]
    TooMany {
        /// How many may wait.
        limit: usize,
    },
    /// The connection was closed by this side.
    #[error("the connection to the gateway was closed")]
    Closed,
}

impl Error {
    /// Whether trying again can only fail again: somebody must change something first.
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

/// What ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// The gateway closed it, with this code (RFC 6455, 7.4); 1006 if it said nothing.
    Closed(u16),
    /// The gateway missed two ticks.
    Silent,
    /// The gateway sent a frame larger than this side takes.
    Oversize,
    /// The gateway said something that is no WebSocket message, or closed in the middle of one.
    Protocol,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed(code) => write!(f, "closed with code {code}"),
            Self::Silent => f.write_str("two ticks were missed"),
            Self::Oversize => f.write_str("a frame was larger than this side takes"),
            Self::Protocol => f.write_str("what came is no WebSocket message"),
        }
    }
}

struct Shown<'a>(&'a Option<u64>);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(number) => write!(f, "{number}"),
            None => f.write_str("of an unknown number"),
        }
    }
}
