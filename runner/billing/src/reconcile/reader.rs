//! Reads spans of the upstream's ledger, page by page. At most one page is in memory.
//!
//! LiteLLM counts and lists rows in two queries, and each page is another one. So a row that comes meanwhile may move
//! others from one page to the next. A span counts as read only if all its pages had the same total, and as many
//! different rows. Otherwise it is read again, and after some attempts in shorter spans: a span of one page cannot change
//! between its pages.
//!
//! The total, the rows and their number are the ledger's word. So none of them decides how long a span is read.

use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
};

use platform_core::spend::SpendPage;
use runner_control_client::{self as control, DataPlane};

use super::{
    bounds::{ReadMeter, SPAN},
    span::Span,
};

/// Most attempts to read a span, before it is divided or left out.
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
    /// The span has too much in it, or changes while it is read.
    Divide,
    /// The same, and the span is the shortest one.
    LeftOut,
}

impl SpanRead {
    /// Returns the result for a `span` that is not read whole.
    const fn not_whole(span: Span) -> Self {
        if span.can_be_divided() { Self::Divide } else { Self::LeftOut }
    }
}

/// Attempt to read a span.
struct Attempt {
    /// Number of rows according to the first page.
    total: u64,
    /// Hashes of what tells rows apart. A collision only repeats the attempt.
    ids: HashSet<u64>,
    hasher: RandomState,
}

impl Attempt {
    fn new(total: u64) -> Self {
        Self { total, ids: HashSet::new(), hasher: RandomState::new() }
    }

    /// Counts the rows of a page. Returns whether the span is as it was, and more of it can come.
    fn add(&mut self, page: &SpendPage) -> bool {
        let is_same = !page.capped && page.total == self.total;
        let ids = page.rows.iter().map(|row| row.request_id.as_str());
        let mut ids = ids.chain(page.unreadable.iter().map(|row| row.sha256.as_str())).peekable();
        let has_rows = ids.peek().is_some();
        let are_new = ids.all(|id| self.ids.insert(self.hasher.hash_one(id)));
        is_same && has_rows && are_new && (self.ids.len() as u64) < self.total
    }

    fn is_whole(&self) -> bool {
        self.ids.len() as u64 == self.total
    }
}

/// Reads a span of the ledger, adds its pages to `meter`, and passes each to `take`. Rows may be passed several times.
///
/// # Errors
/// If a page cannot be read, or `take` fails.
pub(super) async fn read_span<E: From<control::Error>>(
    pages: &impl Pages,
    span: Span,
    meter: &mut ReadMeter,
    mut take: impl AsyncFnMut(SpendPage) -> Result<(), E>,
) -> Result<SpanRead, E> {
    let mut of_span = ReadMeter::start();
    for _attempt in 0..MAX_ATTEMPTS {
        let mut attempt: Option<Attempt> = None;
        for number in 1.. {
            let page = match pages.page(span, number).await {
                Err(error) if error.is_page_too_large() => return Ok(SpanRead::not_whole(span)),
                page => page?,
            };
            meter.add(&page);
            of_span.add(&page);
            let is_too_large = span.is_too_large(page.total) || page.capped && span.can_be_divided();
            if is_too_large || of_span.reached(SPAN).is_some() {
                return Ok(SpanRead::not_whole(span));
            }
            let attempt = attempt.get_or_insert_with(|| Attempt::new(page.total));
            let goes_on = attempt.add(&page);
            take(page).await?;
            if attempt.is_whole() {
                return Ok(SpanRead::Whole(attempt.total));
            }
            if !goes_on {
                break;
            }
        }
    }
    Ok(SpanRead::not_whole(span))
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use platform_core::{
        spend::{SpendEnd, SpendKey, SpendRow, UnreadableRow},
        untrusted::JournalText,
    };

    use super::*;

    const HOUR: Span = Span { from: 0, until: 3600 };
    const SHORTEST: Span = Span { from: 0, until: 1 };

    fn row(id: u32) -> SpendRow {
        SpendRow {
            request_id: JournalText::of(&format!("chatcmpl-{id}")),
            call_id: None,
            began_ms: 0,
            cost: None,
            tokens: 0,
            input: 0,
            output: 0,
            end: SpendEnd::Answered,
            model: None,
            account: None,
            key: SpendKey::Own,
        }
    }

    fn page_of(total: u64, rows: Vec<SpendRow>) -> SpendPage {
        SpendPage { total, capped: false, rows, unreadable: Vec::new(), bytes: 1000 }
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
            Ok(SpendPage { capped: self.capped, ..page_of(rows.len() as u64, shown) })
        }
    }

    async fn read(pages: &impl Pages) -> (SpanRead, Vec<String>) {
        read_in(pages, HOUR).await
    }

    async fn read_in(pages: &impl Pages, span: Span) -> (SpanRead, Vec<String>) {
        let mut taken = Vec::new();
        let take = async |page: SpendPage| {
            taken.extend(page.rows.iter().map(|row| row.request_id.to_string()));
            Ok::<_, control::Error>(())
        };
        let read = read_span(pages, span, &mut ReadMeter::start(), take).await.unwrap();
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
    async fn a_shortest_span_that_never_rests_is_left() {
        let coming: Vec<_> =
            (2..100).map(|request| (request, 100 + u32::try_from(request).unwrap())).collect();
        let pages = ScriptedPages::of(&[1, 2, 3, 4], &coming);
        assert_eq!(read_in(&pages, SHORTEST).await.0, SpanRead::LeftOut);
        let control = ScriptedPages::of(&[1, 2, 3, 4], &[]);
        assert_eq!(read_in(&control, SHORTEST).await.0, SpanRead::Whole(4));
    }

    /// Ledger with endless pages: each has its own rows.
    struct EndlessPages {
        total: u64,
        /// Bytes of each page.
        bytes: u64,
        asked: Cell<u32>,
    }

    impl Pages for EndlessPages {
        async fn page(&self, _span: Span, _page: u64) -> Result<SpendPage, control::Error> {
            self.asked.set(self.asked.get() + 1);
            Ok(SpendPage { bytes: self.bytes, ..page_of(self.total, vec![row(self.asked.get())]) })
        }
    }

    #[tokio::test]
    async fn pages_without_end_are_not_read() {
        const PAGE: u64 = 32 << 20;
        let table = [
            (1_000_000_000_000_000, 1000, 1),
            // More rows than the total.
            (0, 1000, MAX_ATTEMPTS),
            // Each page is within its bound, and all of them are not.
            (5_000, PAGE, 32),
        ];
        for (total, bytes, most) in table {
            for (span, expected) in [(HOUR, SpanRead::Divide), (SHORTEST, SpanRead::LeftOut)] {
                let pages = EndlessPages { total, bytes, asked: Cell::new(0) };
                assert_eq!(read_in(&pages, span).await.0, expected, "{total}");
                assert!(pages.asked.get() <= most, "{total}: {} pages", pages.asked.get());
            }
        }
        let control = EndlessPages { total: 1, bytes: PAGE, asked: Cell::new(0) };
        assert_eq!(read(&control).await.0, SpanRead::Whole(1));
    }

    /// Ledger with pages that the proxy does not take.
    struct LargePages;

    impl Pages for LargePages {
        async fn page(&self, _span: Span, _page: u64) -> Result<SpendPage, control::Error> {
            let code = "ledger_page_too_large".to_owned();
            Err(control::Error::Refused { code, message: String::new() })
        }
    }

    #[tokio::test]
    async fn a_page_that_is_too_large_stops_no_pass() {
        assert_eq!(read_in(&LargePages, HOUR).await.0, SpanRead::Divide);
        assert_eq!(read_in(&LargePages, SHORTEST).await.0, SpanRead::LeftOut);
    }

    /// Ledger with one page: a row that can be read, and one that cannot.
    struct BadRow;

    impl Pages for BadRow {
        async fn page(&self, _span: Span, _page: u64) -> Result<SpendPage, control::Error> {
            let [field, sha256] = ["spend", "0a1b"].map(JournalText::of);
            let bad = UnreadableRow { request_id: None, began_ms: None, field, sha256 };
            Ok(SpendPage { unreadable: vec![bad], ..page_of(2, vec![row(1)]) })
        }
    }

    #[tokio::test]
    async fn an_unreadable_row_counts_as_read() {
        assert_eq!(read(&BadRow).await, (SpanRead::Whole(2), vec!["chatcmpl-1".to_owned()]));
    }
}
