//! Reports what comparing the upstream's ledger with receipts has found, from what is stored.

use std::collections::BTreeMap;

use platform_core::limit::Millis;
use runner_model::reconciliation::Finding;
use sqlx::{Row, any::AnyRow};

use super::{
    Store, UnixMillis,
    error::{Error, failed},
    row::{count, number, parsed, text},
};

const ACTION: &str = "read what the upstream's ledger showed";
const COUNT: &str = "SELECT finding, count(*) AS found, CAST(COALESCE(SUM(late), 0) AS BIGINT) AS late FROM ledger_rows \
     WHERE installation = $1 AND began >= $2 AND began < $3 GROUP BY finding";
const LIST: &str = "SELECT finding, late, request_id, call_id, account, model, began FROM ledger_rows \
     WHERE installation = $1 AND began >= $2 AND began < $3 AND (finding IN ('collapsed', 'foreign') OR late = 1) \
     ORDER BY began, request_id LIMIT $4";
/// Receipts of calls that used something, and that have no row although it is time.
macro_rules! missing {
    () => {
        " FROM receipts r WHERE installation = $1 AND called >= $2 AND called < $3 AND created < $4 \
         AND source_system = 'sluicegate' AND charge_reason <> 'no_usage' AND NOT EXISTS (SELECT 1 FROM ledger_rows l \
         WHERE l.installation = r.installation AND l.call_id = r.call_id AND l.finding <> 'foreign')"
    };
}
const COUNT_MISSING: &str = concat!("SELECT count(*)", missing!(), " AND created >= $5");
const LIST_MISSING: &str = concat!(
    "SELECT source_reference, call_id, account, model, called",
    missing!(),
    " ORDER BY called, source_reference LIMIT $5"
);

/// Counts receipts with a reported cost that differs from the computed one.
const COUNT_UNCONFIRMED: &str = "SELECT count(*) FROM receipts WHERE installation = $1 AND called >= $2 AND called < $3 \
     AND source_system = 'sluicegate' AND charge_reason = 'unconfirmed'";

/// Span of calls that a report covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerSpan {
    /// Time of the first calls.
    pub from: UnixMillis,
    /// Time before which the last calls began.
    pub until: UnixMillis,
    /// Time of the report.
    pub now: UnixMillis,
    /// Longest time from the end of a call until its row is in the ledger.
    pub delay: Millis,
}

/// Findings in a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerReport {
    /// Numbers of all findings. A call that is late or unconfirmed is counted a second time by its other finding.
    pub counts: BTreeMap<Finding, u64>,
    /// First differences.
    pub differences: Vec<LedgerDifference>,
}

/// Difference between the ledger and the receipts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerDifference {
    /// Kind of the difference.
    pub finding: Finding,
    /// Row of the ledger, or reference of the receipt that has none.
    pub subject: String,
    /// Id of the call; absent if the row has none.
    pub call_id: Option<String>,
    /// Account that pays.
    pub account: Option<String>,
    /// Model that was asked for.
    pub model: Option<String>,
    /// Time at which the call began.
    pub began: UnixMillis,
}

impl LedgerSpan {
    /// Returns the time before which receipts have to be older to have a row.
    fn due(&self) -> i64 {
        self.now.before(self.delay).0
    }
}

impl LedgerDifference {
    fn of_row(row: &AnyRow) -> Result<Self, Error> {
        let finding = parsed(row, "finding", Finding::named)?;
        let is_late = number(row, "late")? != 0 && !finding.is_difference();
        let call_id = Some(text(row, "call_id")?).filter(|id| !id.is_empty());
        Ok(Self {
            finding: if is_late { Finding::Late } else { finding },
            subject: text(row, "request_id")?,
            call_id,
            account: row.try_get("account").map_err(failed(ACTION))?,
            model: row.try_get("model").map_err(failed(ACTION))?,
            began: UnixMillis(number(row, "began")?),
        })
    }

    fn of_receipt(row: &AnyRow) -> Result<Self, Error> {
        Ok(Self {
            finding: Finding::Missing,
            subject: text(row, "source_reference")?,
            call_id: Some(text(row, "call_id")?),
            account: Some(text(row, "account")?),
            model: row.try_get("model").map_err(failed(ACTION))?,
            began: UnixMillis(number(row, "called")?),
        })
    }
}

/// Returns the number in the only column of `row`.
fn first_count(row: &AnyRow) -> Result<u64, Error> {
    row.try_get::<i64, _>(0).map(i64::unsigned_abs).map_err(failed(ACTION))
}

impl Store {
    /// Returns the findings in `span`, with the first `max_differences` in rows and as many in receipts.
    pub async fn ledger_report(&self, span: LedgerSpan, max_differences: u32) -> Result<LedgerReport, Error> {
        self.retry(async || {
            let mut counts: BTreeMap<_, _> = Finding::ALL.into_iter().map(|finding| (finding, 0)).collect();
            let rows = self.in_span(COUNT, span).fetch_all(&self.pool).await.map_err(failed(ACTION))?;
            for row in &rows {
                *counts.entry(parsed(row, "finding", Finding::named)?).or_default() +=
                    count::<u64>(row, "found")?;
                *counts.entry(Finding::Late).or_default() += count::<u64>(row, "late")?;
            }
            counts.insert(Finding::Missing, self.count_missing(span, i64::MIN).await?);
            let unconfirmed = self.in_span(COUNT_UNCONFIRMED, span).fetch_one(&self.pool).await;
            counts.insert(Finding::Unconfirmed, first_count(&unconfirmed.map_err(failed(ACTION))?)?);
            let listed = self.in_span(LIST_MISSING, span).bind(span.due()).bind(i64::from(max_differences));
            let receipts = listed.fetch_all(&self.pool).await.map_err(failed(ACTION))?;
            let listed = self.in_span(LIST, span).bind(i64::from(max_differences));
            let rows = listed.fetch_all(&self.pool).await.map_err(failed(ACTION))?;
            let differences = receipts.iter().map(LedgerDifference::of_receipt);
            let differences = differences.chain(rows.iter().map(LedgerDifference::of_row));
            Ok(LedgerReport { counts, differences: differences.collect::<Result<_, _>>()? })
        })
        .await
    }

    /// Returns the number of calls in `span` that are missing, and were not due yet at the time `earlier`.
    pub async fn newly_missing(&self, span: LedgerSpan, earlier: Option<UnixMillis>) -> Result<u64, Error> {
        let due_before = earlier.map_or(i64::MIN, |time| LedgerSpan { now: time, ..span }.due());
        self.retry(async || self.count_missing(span, due_before).await).await
    }

    /// Counts the missing calls in `span` with receipts that were stored at `created` or later.
    async fn count_missing(&self, span: LedgerSpan, created: i64) -> Result<u64, Error> {
        let missing = self.in_span(COUNT_MISSING, span).bind(span.due()).bind(created);
        first_count(&missing.fetch_one(&self.pool).await.map_err(failed(ACTION))?)
    }

    fn in_span(
        &self,
        statement: &'static str,
        span: LedgerSpan,
    ) -> sqlx::query::Query<'_, sqlx::Any, sqlx::any::AnyArguments> {
        sqlx::query(statement).bind(self.installation.to_string()).bind(span.from.0).bind(span.until.0)
    }
}
