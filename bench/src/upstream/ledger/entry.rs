//! Describes a request as the upstream received it, and its end.

use std::time::Instant;

use bytes::Bytes;
use serde_json::Value;

/// A request: a copy of the ledger's entry at one moment. Only [`ending`](Self::ending),
/// [`reported`](Self::reported) and [`generated`](Self::generated) ever change.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Position among all requests, from 1, in the order in which their heads arrived. Never used twice.
    pub seq: u64,
    /// Time of arrival of the head.
    pub arrived: Instant,
    /// Time of arrival on the wall clock, in milliseconds since 1970.
    pub unix_ms: u64,
    /// The method.
    pub method: String,
    /// Path and query as they came.
    pub path: String,
    /// The headers as they came, not redacted: names in lower case, values that are not UTF-8 made readable. They have
    /// the order of the wire, except that all values of one name follow its first value.
    pub headers: Vec<(String, String)>,
    /// The whole body. Empty while it arrives; if the client left meanwhile, the part that arrived.
    pub body: Bytes,
    /// End of the request.
    pub ending: Ending,
    /// Usage that was reported, once the whole answer was handed to the connection.
    pub reported: Option<Reported>,
    /// Usage that LiteLLM would charge, once the request has ended: it goes on with an answer in one piece after its
    /// client has left, and ends a stream there. Only of scripts with a complete answer.
    pub generated: Option<Reported>,
}

/// Token counts that an answer reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reported {
    /// Tokens of the prompt, cached ones included.
    pub input: u64,
    /// Tokens of the answer, reasoning included.
    pub output: u64,
    /// Tokens of the prompt that were read from a cache.
    pub cached: u64,
}

/// Answer that is being generated, with the usage of all of it.
#[derive(Debug, Clone, Copy)]
pub(in crate::upstream) enum Generation {
    /// In one piece: it is generated to its end, whether or not its client waits.
    InOnePiece(Reported),
    /// Event by event: it is generated as far as it is sent.
    Streamed(Reported),
}

/// End of a request, and its time. Counts are of content events, as in [`Fate`](crate::upstream::Fate); a body that is
/// not streamed is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The request is still open: its body is arriving.
    Arriving,
    /// The request is still open: it is being answered.
    Open,
    /// The whole answer was handed to the connection. That does not prove that the client read it.
    Answered {
        /// Content events sent.
        events: usize,
        /// Time of the end.
        at: Instant,
    },
    /// The client closed the connection before the answer was complete.
    ClientGone {
        /// Content events sent until then.
        after_events: usize,
        /// Time at which the upstream noticed it.
        at: Instant,
    },
    /// The script reset the connection.
    CutByScript {
        /// Content events sent until then.
        after_events: usize,
        /// Time of the end.
        at: Instant,
    },
    /// This upstream was stopped before the answer was complete.
    UpstreamStopped {
        /// Content events sent until then.
        after_events: usize,
        /// Time of the end.
        at: Instant,
    },
}

impl Ending {
    /// Returns whether the request is still arriving or being answered.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.at().is_none()
    }

    /// Returns the time of its end.
    #[must_use]
    pub fn at(&self) -> Option<Instant> {
        match *self {
            Self::Arriving | Self::Open => None,
            Self::Answered { at, .. }
            | Self::ClientGone { at, .. }
            | Self::CutByScript { at, .. }
            | Self::UpstreamStopped { at, .. } => Some(at),
        }
    }

    /// Returns the number of content events sent until it ended; `None` while it is open.
    #[must_use]
    pub fn events(&self) -> Option<usize> {
        match *self {
            Self::Arriving | Self::Open => None,
            Self::Answered { events, .. } => Some(events),
            Self::ClientGone { after_events, .. }
            | Self::CutByScript { after_events, .. }
            | Self::UpstreamStopped { after_events, .. } => Some(after_events),
        }
    }
}

impl Entry {
    /// Returns all values of one header, in their order. The name may be in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str()).collect()
    }

    /// Returns the body as JSON. If a key occurs twice, the last value wins, as in most parsers.
    ///
    /// # Errors
    /// If the body is not JSON.
    pub fn json(&self) -> serde_json::Result<Value> {
        serde_json::from_slice(&self.body)
    }
}
