//! Divides the time that a reconciliation covers into spans with few enough rows. Pure.

use runner_store::UnixMillis;

/// Shortest and longest span, and the first one, in seconds.
const MIN_SECONDS: u64 = 1;
const MAX_SECONDS: u64 = 24 * 60 * 60;
const FIRST_SECONDS: u64 = 60 * 60;
/// Most rows of a span that is longer than the shortest: a span is read again if it changes meanwhile.
const MAX_ROWS: u64 = 5_000;
/// Most rows of the shortest span. One with more is left out: its calls are reported as missing.
const MAX_ROWS_OF_SHORTEST: u64 = 20_000;
/// Number of rows below which the next span is longer.
const FEW_ROWS: u64 = MAX_ROWS / 4;

/// Seconds of the ledger that are read together, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: u64,
    pub(super) until: u64,
}

/// Division of a time into spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spans {
    position: u64,
    end: u64,
    length: u64,
}

impl Span {
    /// Returns the time at which it begins.
    pub(super) fn began(self) -> UnixMillis {
        millis(self.from)
    }

    /// Returns the time up to which it is.
    pub(super) fn ended(self) -> UnixMillis {
        millis(self.until)
    }

    /// Returns whether `total` rows are more than a span may have.
    pub(super) const fn is_too_large(self, total: u64) -> bool {
        total > if self.can_be_divided() { MAX_ROWS } else { MAX_ROWS_OF_SHORTEST }
    }

    /// Returns whether a shorter span exists.
    pub(super) const fn can_be_divided(self) -> bool {
        self.until - self.from > MIN_SECONDS
    }
}

/// Returns the time at which a second begins.
fn millis(second: u64) -> UnixMillis {
    UnixMillis(i64::try_from(second.saturating_mul(1000)).unwrap_or(i64::MAX))
}

impl Spans {
    /// Returns the spans from the second `from` to the second `end`.
    pub(super) const fn new(from: u64, end: u64) -> Self {
        Self { position: from, end, length: FIRST_SECONDS }
    }

    /// Returns the next span; `None` at the end.
    pub(super) fn next(&self) -> Option<Span> {
        let until = self.position.saturating_add(self.length).min(self.end);
        (until > self.position).then_some(Span { from: self.position, until })
    }

    /// Returns the time up to which the spans were read.
    pub(super) fn position(&self) -> UnixMillis {
        millis(self.position)
    }

    /// Divides `span`, which is not read yet.
    pub(super) fn divide(&mut self, span: Span) {
        self.length = ((span.until - span.from) / 2).max(MIN_SECONDS);
    }

    /// Goes on after `span`, which had `rows` rows.
    pub(super) fn advance(&mut self, span: Span, rows: u64) {
        self.position = span.until;
        if rows < FEW_ROWS {
            self.length = (self.length * 2).min(MAX_SECONDS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the spans of a ledger with `rate` rows in each second.
    fn spans(end: u64, rate: u64) -> Vec<Span> {
        let mut spans = Spans::new(0, end);
        let mut read = Vec::new();
        while let Some(span) = spans.next() {
            let rows = (span.until - span.from) * rate;
            if span.is_too_large(rows) {
                spans.divide(span);
                continue;
            }
            read.push(span);
            spans.advance(span, rows);
        }
        read
    }

    #[test]
    fn spans_cover_all_time_without_a_gap() {
        for (end, rate) in [(1, 0), (7_200, 0), (100_000, 1), (10_000, 80), (50, MAX_ROWS_OF_SHORTEST)] {
            let read = spans(end, rate);
            assert_eq!((read[0].from, read[read.len() - 1].until), (0, end));
            assert!(read.is_sorted_by(|one, next| one.until == next.from), "{read:?}");
            let rows = |span: &Span| (span.until - span.from) * rate;
            assert!(read.iter().all(|span| rows(span) <= MAX_ROWS || !span.can_be_divided()), "{read:?}");
        }
    }

    #[test]
    fn quiet_time_is_read_in_long_spans() {
        let read = spans(30 * MAX_SECONDS, 0);
        assert!(read.len() < 40, "{}", read.len());
    }
}
