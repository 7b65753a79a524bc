//! Reconciles receipts with the upstream's ledger: reads its rows through the proxy, which alone holds the key.
//!
//! A row and a receipt belong together by the call id, which the proxy chose and LiteLLM keeps. Rows are stored with
//! their findings, and receipts are corrected by adjusting ones. All of that may be repeated. So a pass that was killed
//! is resumed at the span it was in, and several passes at once harm nothing.
//!
//! Limits follow: the proxy is told what the ledger says of calls for which it has estimated the tokens. A pass that
//! ends in between is resumed, and tells it again.
//!
//! Nothing that the ledger says holds up billing: a pass has bounds, goes on after what it cannot read, and reports it.

mod bounds;
mod hint;
mod reader;
mod span;
mod task;
mod unreadable;

use std::sync::Arc;

use platform_core::{
    code::{Code, Coded},
    limit::Millis,
    record::{LedgerFigures, MAX_CORRECTIONS},
    spend::{SpendPage, SpendRow},
};
use runner_control_client::{self as control, DataPlane};
use runner_model::{failpoint::Point, receipt::Correction, reconciliation::Finding};
use runner_store::{
    Adjusted, ComparisonTerms, LedgerAdvance, LedgerLease, LedgerProgress, LedgerReport, LedgerSpan, Store,
    UnfinishedPass, UnixMillis, Worker,
};
use runner_telemetry::metrics::Metrics;
use tokio::sync::Notify;

pub use self::{bounds::PassBound, task::ReconciliationTask, unreadable::UnreadablePart};
use self::{
    bounds::{MAX_LEFT_OUT, PASS, ReadMeter},
    reader::{SpanRead, read_span},
    span::{Span, Spans},
    unreadable::UnreadableParts,
};

/// Most rows of one transaction: others of the store wait for it.
const MAX_COMPARED: usize = MAX_CORRECTIONS;
/// Time after its begin in which a pass can be resumed. A later one reads its rows again: others may have come.
const RESUME_WITHIN: Millis = Millis::seconds(60 * 60);
/// Time before the first pass that is read without being asked for.
const FIRST_PASS: Millis = Millis::seconds(24 * 60 * 60);
/// Time in which a call without a row is looked for in each pass.
const OPEN_CALLS: Millis = Millis::seconds(60 * 60);
/// Most that the clocks of this host and of the upstream may differ.
const CLOCK_SKEW: Millis = Millis::seconds(5);

/// Reason why a reconciliation failed.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// The proxy does not show the upstream's ledger.
    #[error(transparent)]
    Proxy(#[from] control::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] runner_store::Error),
    /// Another process has the lease on the ledger, or took it because this one was too slow.
    #[error("another process reconciles: try again later")]
    Busy,
}

impl Coded for ReconcileError {
    fn code(&self) -> Code {
        match self {
            Self::Proxy(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::Busy => Code::LedgerInUse,
        }
    }

    fn word(&self) -> &str {
        match self {
            Self::Proxy(error) => error.word(),
            Self::Store(error) => error.word(),
            Self::Busy => self.code().word(),
        }
    }
}

/// First call that a reconciliation covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReconcileFrom {
    /// The first call that began then.
    Time(UnixMillis),
    /// The first one that no pass has read, or that may have got its row since; at this time at the latest.
    Unread(Option<UnixMillis>),
}

/// Result of a reconciliation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciliation {
    /// Time that it covers.
    pub span: LedgerSpan,
    /// Findings of this and earlier reconciliations in that time, and parts that this one could not read.
    pub report: LedgerReport,
    /// First of those parts.
    pub unreadable: Vec<UnreadablePart>,
    /// Bound at which it stopped, if it did: the next one goes on there.
    pub stopped: Option<PassBound>,
}

/// End of a pass.
struct PassEnd {
    span: LedgerSpan,
    unreadable: UnreadableParts,
    stopped: Option<PassBound>,
}

/// Reader of the upstream's ledger that corrects receipts.
#[derive(Debug)]
pub struct Reconciler {
    store: Store,
    data_plane: DataPlane,
    /// Counters of findings.
    metrics: Arc<Metrics>,
    holder: Worker,
    /// Length of the lease on the ledger, which each span renews.
    lease: Millis,
    /// Signal that balances have changed.
    charged: Arc<Notify>,
}

impl Reconciler {
    /// Returns a reconciler that holds the ledger as this process, for `lease` after each step.
    #[must_use]
    pub fn new(store: Store, data_plane: DataPlane, metrics: Arc<Metrics>, lease: Millis) -> Self {
        let charged = Arc::default();
        Self { store, data_plane, metrics, holder: Worker::this_process(), lease, charged }
    }

    /// Returns the same reconciler, which signals `charged` when it has moved balances.
    #[must_use]
    pub fn signalling(self, charged: Arc<Notify>) -> Self {
        Self { charged, ..self }
    }

    /// Reads the ledger from `from` up to now, corrects receipts, and reports what was found, with at most
    /// `max_differences` of each kind. A row is expected within `delay` after the end of its call.
    ///
    /// # Errors
    /// If the ledger cannot be read, the store fails, or another process reads the ledger. What was corrected by then
    /// stays, and another call resumes there.
    pub async fn reconcile(
        &self,
        from: ReconcileFrom,
        delay: Millis,
        max_differences: u32,
    ) -> Result<Reconciliation, ReconcileError> {
        let progress = match self.store.lease_ledger(&self.holder, self.lease).await? {
            LedgerLease::Taken(progress) => progress,
            LedgerLease::Busy => return Err(ReconcileError::Busy),
        };
        let passed = self.pass(from, delay, progress).await;
        if passed.is_err() {
            self.store.release_ledger(&self.holder).await?;
        }
        let PassEnd { span, unreadable, stopped } = passed?;
        let mut report = self.store.ledger_report(span, max_differences).await?;
        report.counts.insert(Finding::Unreadable, unreadable.count());
        self.metrics.reconciled(Finding::Unreadable, unreadable.count());
        Ok(Reconciliation { span, report, unreadable: unreadable.first(max_differences), stopped })
    }

    /// Returns the time since the last reconciliation that left no gap, of any process; `None` before the first.
    async fn age_of_last(&self) -> Result<Option<Millis>, ReconcileError> {
        let Some(last) = self.store.last_ledger_pass().await? else { return Ok(None) };
        self.metrics.reconciliation_succeeded(seconds(last.at));
        Ok(Some(last.age))
    }

    async fn pass(
        &self,
        from: ReconcileFrom,
        delay: Millis,
        progress: LedgerProgress,
    ) -> Result<PassEnd, ReconcileError> {
        let now = progress.now;
        let from = self.start(from, delay, progress).await?;
        let position = match progress.unfinished.filter(|pass| is_resumable(*pass, from, now)) {
            Some(pass) => pass.position,
            None => {
                self.store.begin_ledger_pass(&self.holder, from).await?;
                from
            }
        };
        let terms = ComparisonTerms { delay, earlier: progress.earlier };
        let mut unreadable = UnreadableParts::default();
        // The next second: LiteLLM compares with whole ones.
        let mut spans = Spans::new(seconds(position), seconds(now) + 1);
        if let Some(bound) = self.read(&mut spans, terms, &mut unreadable).await? {
            self.store.stop_ledger_pass(&self.holder, unread(progress)).await?;
            let span = LedgerSpan { from, until: spans.position(), now, delay };
            return Ok(PassEnd { span, unreadable, stopped: Some(bound) });
        }
        let span = LedgerSpan { from, until: now.after(CLOCK_SKEW), now, delay };
        let missing = self.store.newly_missing(span, progress.earlier.map(|earlier| earlier.began)).await?;
        self.metrics.reconciled(Finding::Missing, missing);
        self.store.end_ledger_pass(&self.holder, unread(progress)).await?;
        self.metrics.reconciliation_succeeded(seconds(now));
        Ok(PassEnd { span, unreadable, stopped: None })
    }

    /// Returns the time of the first calls that a pass covers.
    async fn start(
        &self,
        from: ReconcileFrom,
        delay: Millis,
        progress: LedgerProgress,
    ) -> Result<UnixMillis, ReconcileError> {
        let hinted = match from {
            ReconcileFrom::Time(time) => return Ok(time.min(progress.now)),
            ReconcileFrom::Unread(hinted) => hinted,
        };
        // A row may come after those of later calls.
        let unread = unread(progress).before(delay).before(delay);
        let open = self.store.earliest_open_call(progress.now.before(OPEN_CALLS)).await?;
        let earliest = [Some(unread), open, hinted].into_iter().flatten().min().unwrap_or(unread);
        Ok(earliest.before(CLOCK_SKEW))
    }

    /// Reads `spans` up to their end, or until a bound is reached.
    async fn read(
        &self,
        spans: &mut Spans,
        terms: ComparisonTerms,
        unreadable: &mut UnreadableParts,
    ) -> Result<Option<PassBound>, ReconcileError> {
        let mut meter = ReadMeter::start();
        let mut left_out = 0;
        while let Some(span) = spans.next() {
            let take = async |page: SpendPage| {
                page.unreadable.into_iter().for_each(|row| unreadable.add_row(row, span));
                self.compare(page.rows, terms).await
            };
            let rows = match read_span(&self.data_plane, span, &mut meter, take).await? {
                SpanRead::Divide => {
                    spans.divide(span);
                    continue;
                }
                SpanRead::LeftOut => {
                    unreadable.add_span(span);
                    left_out += 1;
                    0
                }
                SpanRead::Whole(rows) => rows,
            };
            self.record_position(span).await?;
            spans.advance(span, rows);
            let bound = (left_out >= MAX_LEFT_OUT).then_some(PassBound::LeftOut);
            if let Some(bound) = bound.or_else(|| meter.reached(PASS)) {
                return Ok(spans.next().map(|_rest| bound));
            }
        }
        Ok(None)
    }

    /// Compares a page with receipts, and corrects those.
    async fn compare(&self, rows: Vec<SpendRow>, terms: ComparisonTerms) -> Result<(), ReconcileError> {
        Point::LedgerRead.reach();
        for rows in rows.chunks(MAX_COMPARED) {
            self.compare_some(rows, terms).await?;
        }
        Ok(())
    }

    async fn compare_some(&self, rows: &[SpendRow], terms: ComparisonTerms) -> Result<(), ReconcileError> {
        let comparison = self.store.compare_spend(rows, terms).await?;
        Point::LedgerStored.reach();
        if !comparison.corrections.is_empty() {
            self.correct(&comparison.corrections).await?;
        }
        Point::LedgerCorrected.reach();
        if !comparison.estimated.is_empty() {
            self.correct_limits(&comparison.estimated).await?;
        }
        comparison.new.iter().for_each(|finding| self.metrics.reconciled(*finding, 1));
        Ok(())
    }

    /// Corrects receipts, and signals that balances have moved.
    async fn correct(&self, corrections: &[Correction]) -> Result<(), ReconcileError> {
        for adjusted in self.store.adjust(corrections).await? {
            if let Adjusted::Corrected(receipt) = adjusted {
                self.metrics.receipt_stored(receipt.reason);
                tracing::debug!(receipt = %receipt.reference, amount = %receipt.amount, "receipt corrected");
            }
        }
        self.charged.notify_one();
        Ok(())
    }

    /// Lets limits count with the ledger's figures.
    async fn correct_limits(&self, estimated: &[LedgerFigures]) -> Result<(), ReconcileError> {
        let effects = self.data_plane.correct(estimated).await?;
        for (figures, effect) in estimated.iter().zip(effects) {
            tracing::debug!(call = %figures.call_id, ?effect, "limits told of an estimated call");
        }
        Ok(())
    }

    async fn record_position(&self, span: Span) -> Result<(), ReconcileError> {
        let advanced = self.store.advance_ledger_pass(&self.holder, span.ended(), self.lease).await?;
        Point::LedgerPassed.reach();
        match advanced {
            LedgerAdvance::Recorded => Ok(()),
            LedgerAdvance::Lost => Err(ReconcileError::Busy),
        }
    }
}

/// Returns the time of the first calls that no pass has read.
fn unread(progress: LedgerProgress) -> UnixMillis {
    progress.covered_until.unwrap_or(progress.now.before(FIRST_PASS))
}

/// Returns whether a pass from `from` on can be resumed where `pass` has stopped.
fn is_resumable(pass: UnfinishedPass, from: UnixMillis, now: UnixMillis) -> bool {
    pass.from <= from && from <= pass.position && now.before(RESUME_WITHIN) <= pass.began
}

/// Returns the second that `time` is in.
fn seconds(time: UnixMillis) -> u64 {
    u64::try_from(time.0.div_euclid(1000)).unwrap_or_default()
}
