//! Single steps of a call, for micro-benchmarks and fuzzers to reach (feature `parts`). Not an interface to build on.

use std::path::Path;

use bytes::Bytes;
use platform_core::{record::ExchangeRecord, record::Tokens, route::Route};

use crate::{
    exchange,
    journal::{self, Journal},
    usage::{Format, Meter},
};

/// Whether `body` is one that may pass.
#[must_use]
pub fn body_is_good(body: &[u8]) -> bool {
    exchange::body_is_good(body)
}

/// The tokens that an answer of `route` reports which comes in `pieces`.
#[must_use]
pub fn metered(route: Route, content_type: &str, pieces: &[Bytes]) -> Option<Tokens> {
    let mut meter = Meter::new(route, Format::of(Some(content_type)));
    pieces.iter().for_each(|piece| meter.feed(piece, None));
    meter.finish(None).tokens()
}

/// A journal to append to.
#[derive(Debug)]
pub struct Records(Journal);

impl Records {
    /// A journal in `dir`.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(dir: &Path) -> Result<Self, journal::Error> {
        Journal::open(dir).map(Self)
    }

    /// Appends one line, and returns its number.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn append(&self, record: &ExchangeRecord) -> Result<u64, journal::Error> {
        self.0.append(record)
    }
}
