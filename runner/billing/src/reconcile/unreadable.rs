//! Keeps what a pass could not read of the ledger, for its report.

use std::collections::BTreeMap;

use platform_core::{spend::UnreadableRow, untrusted::JournalText};
use runner_store::UnixMillis;

use super::span::Span;

/// Most parts that are kept. More are only counted.
const MAX_KEPT: usize = 10_000;
/// Field of a second of the ledger with rows that are too many, too large, or never as many as the total.
const TOTAL: &str = "total";

/// Part of the ledger that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadablePart {
    /// Time of the call; that of the span in which the part was found if the row's own is unknown.
    pub began: UnixMillis,
    /// Field that cannot be read: one of the row, `row` for the row as a whole, or `total` for a whole second.
    pub field: JournalText,
    /// Id of the row, if that can be read.
    pub request_id: Option<JournalText>,
    /// SHA-256 of the row; absent for a second.
    pub sha256: Option<JournalText>,
}

/// Parts of the ledger that one pass could not read.
#[derive(Debug, Default)]
pub(super) struct UnreadableParts {
    /// Parts by what tells them apart: a span may be read several times.
    parts: BTreeMap<String, UnreadablePart>,
    more: u64,
}

impl UnreadableParts {
    /// Adds a row that was found in `span`.
    pub(super) fn add_row(&mut self, row: UnreadableRow, span: Span) {
        let UnreadableRow { request_id, began_ms, field, sha256 } = row;
        let began = began_ms.map_or(span.began(), UnixMillis);
        let id = sha256.to_string();
        self.add(id, UnreadablePart { began, field, request_id, sha256: Some(sha256) });
    }

    /// Adds a span that is left out.
    pub(super) fn add_span(&mut self, span: Span) {
        let field = JournalText::of(TOTAL);
        let part = UnreadablePart { began: span.began(), field, request_id: None, sha256: None };
        self.add(format!("{} to {}", span.from, span.until), part);
    }

    fn add(&mut self, id: String, part: UnreadablePart) {
        if self.parts.len() < MAX_KEPT || self.parts.contains_key(&id) {
            self.parts.insert(id, part);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// Returns the number of parts.
    pub(super) fn count(&self) -> u64 {
        self.more.saturating_add(self.parts.len() as u64)
    }

    /// Returns the first `max` parts in the order of time.
    pub(super) fn first(self, max: u32) -> Vec<UnreadablePart> {
        let mut parts: Vec<_> = self.parts.into_values().collect();
        parts.sort_by_key(|part| part.began);
        parts.truncate(usize::try_from(max).unwrap_or(usize::MAX));
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_read_again_counts_once() {
        let row = |began_ms, hash: &str| {
            let [field, sha256] = ["startTime", hash].map(JournalText::of);
            UnreadableRow { request_id: None, began_ms, field, sha256 }
        };
        let span = Span { from: 7, until: 8 };
        let mut parts = UnreadableParts::default();
        parts.add_row(row(None, "aa"), span);
        parts.add_row(row(None, "aa"), span);
        parts.add_row(row(Some(5), "bb"), span);
        parts.add_span(span);
        assert_eq!(parts.count(), 3);
        let fields: Vec<_> =
            parts.first(2).iter().map(|part| (part.began.0, part.field.to_string())).collect();
        assert_eq!(fields, [(5, "startTime".to_owned()), (7000, "total".to_owned())]);
    }

    #[test]
    fn parts_without_end_are_only_counted() {
        let mut parts = UnreadableParts::default();
        for from in 0..20_000 {
            parts.add_span(Span { from, until: from + 1 });
        }
        assert_eq!((parts.count(), parts.first(u32::MAX).len()), (20_000, MAX_KEPT));
    }
}
