//! Guards one request from its head to its end, so that the ledger is always correct about it.
//!
//! When a client departs, hyper drops the future that it polls: the answer's or the body's. So a drop is an ending like
//! any other.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use http::request::Parts;

use super::{End, Ending, Entry, Generation, Ledger, Outcome, Reported};

/// A request in the ledger. The last call of [`answered`](Self::answered) or [`cut`](Self::cut), or else the drop, is
/// its end.
pub(in crate::upstream) struct Call {
    ledger: Ledger,
    seq: u64,
    unix_seconds: u64,
    reports: Option<Reported>,
    generates: Option<Generation>,
    stage: Stage,
}

enum Stage {
    Arriving { body: BytesMut },
    Answering { events: usize },
    Ended,
}

impl Call {
    /// Enters a request once its head has arrived.
    pub(in crate::upstream) fn arriving(head: &Parts, ledger: Ledger) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let headers = head.headers.iter().map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        let seq = ledger.begin(Entry {
            seq: 0,
            arrived: Instant::now(),
            unix_ms: u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX),
            method: head.method.to_string(),
            path: head.uri.to_string(),
            headers: headers.collect(),
            body: Bytes::new(),
            ending: Ending::Arriving,
            reported: None,
            generated: None,
        });
        let stage = Stage::Arriving { body: BytesMut::new() };
        Self { ledger, seq, unix_seconds: since_1970.as_secs(), reports: None, generates: None, stage }
    }

    /// Returns the request's number in the ledger.
    pub(in crate::upstream) fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the time of its arrival, in seconds since 1970.
    pub(in crate::upstream) fn unix_seconds(&self) -> u64 {
        self.unix_seconds
    }

    /// Appends a piece of its body and returns the body's length so far.
    pub(in crate::upstream) fn push(&mut self, piece: &[u8]) -> usize {
        match &mut self.stage {
            Stage::Arriving { body } => {
                body.extend_from_slice(piece);
                body.len()
            }
            Stage::Answering { .. } | Stage::Ended => 0,
        }
    }

    /// Marks the body as complete and returns it. Waiters of the ledger see the request from now on.
    pub(in crate::upstream) fn received(&mut self) -> Bytes {
        match std::mem::replace(&mut self.stage, Stage::Answering { events: 0 }) {
            Stage::Arriving { body } => {
                let body = body.freeze();
                self.ledger.received(self.seq, body.clone());
                body
            }
            Stage::Answering { .. } | Stage::Ended => Bytes::new(),
        }
    }

    /// Sets the usage that the answer reports.
    pub(in crate::upstream) fn reports(&mut self, usage: Option<Reported>) {
        self.reports = usage;
    }

    /// Sets what is being generated.
    pub(in crate::upstream) fn generates(&mut self, generation: Option<Generation>) {
        self.generates = generation;
    }

    /// Counts a content event that was handed to the connection.
    pub(in crate::upstream) fn sent_content(&mut self) {
        if let Stage::Answering { events } = &mut self.stage {
            *events += 1;
        }
    }

    /// Records that the whole answer was handed to the connection.
    pub(in crate::upstream) fn answered(&mut self) {
        self.end(Outcome::Answered);
    }

    /// Records that the script resets the connection.
    pub(in crate::upstream) fn cut(&mut self) {
        self.end(Outcome::Cut);
    }

    fn end(&mut self, outcome: Outcome) {
        if matches!(self.stage, Stage::Arriving { .. }) {
            self.received();
        }
        if let Stage::Answering { events } = std::mem::replace(&mut self.stage, Stage::Ended) {
            let Self { reports, generates, .. } = *self;
            self.ledger.end(self.seq, End { outcome, events, reports, generates });
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.end(Outcome::Dropped);
    }
}
