//! Reads spans of the upstream's ledger, page by page. At most one page is in memory.
//!
//! LiteLLM counts and lists rows in two queries, and each page is another one. So a row that comes meanwhile may move
//! others from one page to the next. A span counts as read only if all its pages had the same total, and as many
//! different rows. Otherwise it is read again, and after some attempts in shorter spans: a span of one page cannot change
//! between its pages.

use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
};

use platform_core::spend::{SpendPage, SpendRow};
use runner_control_client::{self as control, DataPlane};

use super::span::Span;

/// Most attempts to read a span, before it is divided or given up.
const MAX_ATTEMPTS: u32 = 5;

/// Source of pages.
pub(super) trait Pages {
    /// Returns a page of the ledger. Pages count from 1.
    async fn page(&self, span: Span, page: u64) -> Result<SpendPage, control::Error>;
}

impl Pages for DataPlane {
    async fn page(&self, span: Span, page: u64) -> Result<SpendPage, control::Error> {
        self.spend(span.from, span.until, page).await
    }
}

/// Result of reading a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanRead {
    /// All rows were read: so many.
    Whole(u64),
    /// The span has too many rows, or changes while it is read.
    Divide,
    /// The span changes while it is read, and is the shortest one.
    Unstable,
}

/// Attempt to read a span.
struct Attempt {
    /// Number of rows according to the first page.
    total: u64,
    /// Hashes of the rows' ids. A collision only repeats the attempt.
    ids: HashSet<u64>,
    hasher: RandomState,
}

impl Attempt {
    /// Counts the rows of a page. Returns whether the span is as it was.
    fn add(&mut self, page: &SpendPage) -> bool {
        let is_same = !page.capped && page.total == self.total;
        let mut ids = page.rows.iter().map(|row| self.hasher.hash_one(row.request_id.as_str()));
        is_same && ids.all(|id| self.ids.insert(id))
    }

    fn is_whole(&self) -> bool {
        self.ids.len() as u64 == self.total
    }
}

/// Reads a span of the ledger, and passes each page to `take`. Rows may be passed several times.
///
/// # Errors
/// If a page cannot be read, or `take` fails.
pub(super) async fn read_span<E: From<control::Error>>(
    pages: &impl Pages,
    span: Span,
    mut take: impl AsyncFnMut(Vec<SpendRow>) -> Result<(), E>,
) -> Result<SpanRead, E> {
    for _attempt in 0..MAX_ATTEMPTS {
        let mut page = pages.page(span, 1).await?;
        if (page.capped && span.can_be_divided()) || span.is_too_large(page.total) {
            return Ok(SpanRead::Divide);
        }
        let mut attempt = Attempt { total: page.total, ids: HashSet::new(), hasher: RandomState::new() };
        let mut number = 1;
        loop {
            let goes_on = attempt.add(&page) && !attempt.is_whole() && !page.rows.is_empty();
            take(page.rows).await?;
            if !goes_on {
                break;
            }
            number += 1;
            page = pages.page(span, number).await?;
        }
        if attempt.is_whole() {
            return Ok(SpanRead::Whole(attempt.total));
        }
    }
    Ok(if span.can_be_divided() { SpanRead::Divide } else { SpanRead::Unstable })
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use platform_core::{
        spend::{SpendEnd, SpendKey},
        untrusted::JournalText,
    };

    use super::*;

    const SPAN: Span = Span { from: 0, until: 60 };

    fn row(id: u32) -> SpendRow {
        SpendRow {
            request_id: JournalText::of(&format!("chatcmpl-{id}")),
            call_id: None,
            began_ms: 0,
            cost: None,
            tokens: 0,
            end: SpendEnd::Answered,
            model: None,
            account: None,
            key: SpendKey::Own,
        }
    }

    /// Ledger that shows two rows on a page, and changes by a script before each page.
    struct ScriptedPages {
        rows: RefCell<Vec<u32>>,
        /// Rows that come, each before the request with this number.
        coming: Vec<(usize, u32)>,
        asked: Cell<usize>,
        capped: bool,
    }

    impl ScriptedPages {
        fn of(rows: &[u32], coming: &[(usize, u32)]) -> Self {
            let rows = RefCell::new(rows.to_vec());
            Self { rows, coming: coming.to_vec(), asked: Cell::new(0), capped: false }
        }
    }

    impl Pages for ScriptedPages {
        async fn page(&self, _span: Span, page: u64) -> Result<SpendPage, control::Error> {
            self.asked.set(self.asked.get() + 1);
            let coming = self.coming.iter().filter(|(request, _)| *request == self.asked.get());
            // A row that comes is the first one: it began before the others.
            coming.for_each(|(_, row)| self.rows.borrow_mut().insert(0, *row));
            let rows = self.rows.borrow();
            let start = usize::try_from(page - 1).unwrap() * 2;
            let shown = rows.iter().skip(start).take(2).copied().map(row).collect();
            Ok(SpendPage { total: rows.len() as u64, capped: self.capped, rows: shown })
        }
    }

    async fn read(pages: &ScriptedPages) -> (SpanRead, Vec<String>) {
        let mut taken = Vec::new();
        let take = async |rows: Vec<SpendRow>| {
            taken.extend(rows.iter().map(|row| row.request_id.to_string()));
            Ok::<_, control::Error>(())
        };
        let read = read_span(pages, SPAN, take).await.unwrap();
        taken.sort();
        taken.dedup();
        (read, taken)
    }

    #[tokio::test]
    async fn all_pages_of_a_span_are_read() {
        for count in [0, 1, 2, 3, 4, 5] {
            let rows: Vec<_> = (1..=count).collect();
            let (read, taken) = read(&ScriptedPages::of(&rows, &[])).await;
            assert_eq!((read, taken.len()), (SpanRead::Whole(count.into()), rows.len()));
        }
    }

    #[tokio::test]
    async fn a_span_that_changes_is_read_again() {
        // Between its first and second page: the second row is on both, the new one on neither.
        let pages = ScriptedPages::of(&[1, 2, 3, 4], &[(2, 5)]);
        let (read, taken) = read(&pages).await;
        assert_eq!((read, taken.len()), (SpanRead::Whole(5), 5));
        assert_eq!(pages.asked.get(), 2 + 3);
    }

    #[tokio::test]
    async fn a_span_that_never_rests_is_divided() {
        let coming: Vec<_> =
            (2..100).map(|request| (request, 100 + u32::try_from(request).unwrap())).collect();
        let pages = ScriptedPages::of(&[1, 2, 3, 4], &coming);
        assert_eq!(read(&pages).await.0, SpanRead::Divide);
        let capped = ScriptedPages { capped: true, ..ScriptedPages::of(&[1], &[]) };
        assert_eq!(read(&capped).await.0, SpanRead::Divide);
    }

    #[tokio::test]
    async fn a_shortest_span_that_never_rests_fails() {
        let coming: Vec<_> =
            (2..100).map(|request| (request, 100 + u32::try_from(request).unwrap())).collect();
        let pages = ScriptedPages::of(&[1, 2, 3, 4], &coming);
        let shortest = Span { from: 0, until: 1 };
        let take = async |_rows| Ok::<_, control::Error>(());
        assert_eq!(read_span(&pages, shortest, take).await.unwrap(), SpanRead::Unstable);
    }
}
