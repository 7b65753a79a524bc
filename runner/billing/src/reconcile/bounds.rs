//! Bounds what is read of the upstream's ledger, so that no ledger can hold up billing.

use std::time::Duration;

use platform_core::spend::SpendPage;
use tokio::time::Instant;

/// Bounds of one span. Beyond them it is read in shorter spans, and the shortest one is left out.
pub(super) const SPAN: ReadBounds =
    ReadBounds { rows: 100_000, bytes: 1 << 30, time: Duration::from_secs(2 * 60) };
/// Bounds of a pass. They are looked at after each span, so that each pass gets further than the one before.
pub(super) const PASS: ReadBounds =
    ReadBounds { rows: 500_000, bytes: 8 << 30, time: Duration::from_secs(10 * 60) };
/// Most spans that one pass leaves out.
pub(super) const MAX_LEFT_OUT: u32 = 10;

/// Most that is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadBounds {
    pub(super) rows: u64,
    /// Bytes of pages, as the upstream sent them.
    pub(super) bytes: u64,
    pub(super) time: Duration,
}

/// Bound at which a reconciliation stopped before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassBound {
    /// Rows that were read.
    Rows,
    /// Bytes that were read.
    Bytes,
    /// Time that it took.
    Time,
    /// Spans that were left out.
    LeftOut,
}

impl PassBound {
    /// Returns the bound in words, for a sentence: "stopped at its bound of …".
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Bytes => "bytes",
            Self::Time => "time",
            Self::LeftOut => "seconds that cannot be read",
        }
    }
}

/// Amount that was read so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadMeter {
    began: Instant,
    rows: u64,
    bytes: u64,
}

impl ReadMeter {
    pub(super) fn start() -> Self {
        Self { began: Instant::now(), rows: 0, bytes: 0 }
    }

    /// Adds a page.
    pub(super) fn add(&mut self, page: &SpendPage) {
        self.rows = self.rows.saturating_add((page.rows.len() + page.unreadable.len()) as u64);
        self.bytes = self.bytes.saturating_add(page.bytes);
    }

    /// Returns the bound that is reached, if one is.
    pub(super) fn reached(&self, bounds: ReadBounds) -> Option<PassBound> {
        let reached = [
            (self.rows >= bounds.rows, PassBound::Rows),
            (self.bytes >= bounds.bytes, PassBound::Bytes),
            (self.began.elapsed() >= bounds.time, PassBound::Time),
        ];
        reached.into_iter().find_map(|(is_reached, bound)| is_reached.then_some(bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: SpendPage =
        SpendPage { total: 0, capped: false, rows: Vec::new(), unreadable: Vec::new(), bytes: 512 << 20 };

    #[test]
    fn each_bound_is_reached() {
        let mut meter = ReadMeter::start();
        meter.add(&PAGE);
        assert_eq!(meter.reached(SPAN), None);
        meter.add(&PAGE);
        assert_eq!((meter.reached(SPAN), meter.reached(PASS)), (Some(PassBound::Bytes), None));
        let no_time = ReadBounds { time: Duration::ZERO, ..PASS };
        assert_eq!(meter.reached(no_time), Some(PassBound::Time));
        let rows = ReadMeter { rows: PASS.rows, ..ReadMeter::start() };
        assert_eq!(rows.reached(PASS), Some(PassBound::Rows));
    }
}
