//! One request as the upstream saw it, and how it ended.

use std::time::Instant;

use bytes::Bytes;
use serde_json::Value;

/// One request. A copy of what the ledger held when it was asked; only [`ending`](Self::ending) and [`reported`](Self::reported) ever change.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Position among all requests, from 1, in the order in which their heads arrived. Never used twice.
    pub seq: u64,
    /// When the head was there.
    pub arrived: Instant,
    /// The same moment on the wall clock, in milliseconds since 1970.
    pub unix_ms: u64,
    /// The method.
    pub method: String,
    /// Path and query as they came.
    pub path: String,
    /// The headers as they came, not redacted: names in lower case, values that are not UTF-8 made readable.
    /// The order is the wire's, except that all values of one name stand where its first one stood.
    pub headers: Vec<(String, String)>,
    /// The body, all of it. Empty while it arrives; if the client left meanwhile, what there was of it.
    pub body: Bytes,
    /// How the request ended.
    pub ending: Ending,
    /// The usage that was reported, once the whole answer was handed to the connection.
    pub reported: Option<Reported>,
}

/// Token counts that an answer reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reported {
    /// Tokens of the prompt, cached ones included.
    pub input: u64,
    /// Tokens of the answer, reasoning included.
    pub output: u64,
    /// Those of the prompt that were read from a cache.
    pub cached: u64,
}

/// How a request ended, and when. Counts are of content events, as in [`Fate`](crate::upstream::Fate); a body
/// that is not streamed is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Not yet: its body is still coming.
    Arriving,
    /// Not yet: it is being answered.
    Open,
    /// The whole answer was handed to the connection. That does not prove that the client read it.
    Answered {
        /// Content events sent.
        events: usize,
        /// When.
        at: Instant,
    },
    /// The client closed the connection before the answer was complete.
    ClientGone {
        /// Content events sent until then.
        after_events: usize,
        /// When it was noticed.
        at: Instant,
    },
    /// The script asked for a reset.
    CutByScript {
        /// Content events sent until then.
        after_events: usize,
        /// When.
        at: Instant,
    },
    /// This upstream was stopped before the answer was complete.
    UpstreamStopped {
        /// Content events sent until then.
        after_events: usize,
        /// When.
        at: Instant,
    },
}

impl Ending {
    /// Whether the request is still arriving or being answered.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.at().is_none()
    }

    /// When it ended.
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

    /// Content events sent until it ended; `None` while it is open.
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
    /// All values of one header, in their order. The name in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str()).collect()
    }

    /// The body as JSON. Of a key that is there twice the last value is seen, as by most parsers.
    ///
    /// # Errors
    /// If it is not JSON.
    pub fn json(&self) -> serde_json::Result<Value> {
        serde_json::from_slice(&self.body)
    }
}
