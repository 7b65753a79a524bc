//! Reads the figures of an overview: what calls used, what was refused, and how runs ended, in a row of spans.
//!
//! Each figure is one statement that reads sums: of receipts and refusals (`usage_sums`), or of ended runs (`run_sums`).

use platform_core::{credits::Credits, id::AccountId, money::SignedNanoDollars};
use sqlx::{
    Any,
    any::{AnyArguments, AnyRow},
    query::Query,
};

use super::{
    AccountScope, Store, SumSpan, TimeGrid, UnixMillis,
    error::{Error, failed},
    row::{count, number, parsed, text},
};

const ACTION: &str = "read an overview";
/// Longest waits that are counted together, in milliseconds; the last group has those above.
pub const WAIT_BOUNDS: [i64; 5] = [1_000, 5_000, 30_000, 120_000, 600_000];
/// Columns with numbers of runs by their wait, in the order of [`WAIT_BOUNDS`].
pub(super) const WAIT_COLUMNS: [&str; WAIT_BOUNDS.len() + 1] = [
    "waits_below_one_second",
    "waits_below_five_seconds",
    "waits_below_thirty_seconds",
    "waits_below_two_minutes",
    "waits_below_ten_minutes",
    "waits_longer",
];

macro_rules! usage {
    ($key:literal, $order:literal) => {
        concat!(
            "SELECT ",
            $key,
            ", CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(input_tokens) AS BIGINT) AS input_tokens, \
             CAST(SUM(output_tokens) AS BIGINT) AS output_tokens, CAST(SUM(nanodollars) AS BIGINT) AS nanodollars, \
             CAST(SUM(credits) AS BIGINT) AS credits, CAST(SUM(unpriced) AS BIGINT) AS unpriced FROM usage_sums WHERE installation = $1 AND span = $2 \
             AND began >= $3 AND began < $4 AND ($5 IS NULL OR account = $5) GROUP BY ",
            $key,
            " ORDER BY ",
            $order,
            " LIMIT $6"
        )
    };
}
pub(super) const BY_TIME: &str = usage!("began", "began");
pub(super) const BY_ACCOUNT: &str = usage!("account", "nanodollars DESC, calls DESC, account");
pub(super) const BY_MODEL: &str = usage!("model", "nanodollars DESC, calls DESC, model");
pub(super) const REFUSALS: &str = "SELECT refusal, CAST(SUM(calls) AS BIGINT) AS calls FROM refusal_sums \
     WHERE installation = $1 AND span = $2 AND began >= $3 AND began < $4 AND ($5 IS NULL OR account = $5) \
     GROUP BY refusal ORDER BY calls DESC, refusal LIMIT $6";
pub(super) const OUTCOMES: &str = "SELECT began, state, error_code AS code, CAST(SUM(runs) AS BIGINT) AS runs FROM run_sums \
     WHERE installation = $1 AND span = $2 AND began >= $3 AND began < $4 AND ($5 IS NULL OR account = $5) \
     GROUP BY began, state, error_code ORDER BY began, state, error_code LIMIT $6";
pub(super) const WAITS: &str = "SELECT COALESCE(CAST(SUM(waits_below_one_second) AS BIGINT), 0) AS waits_below_one_second, \
     COALESCE(CAST(SUM(waits_below_five_seconds) AS BIGINT), 0) AS waits_below_five_seconds, \
     COALESCE(CAST(SUM(waits_below_thirty_seconds) AS BIGINT), 0) AS waits_below_thirty_seconds, \
     COALESCE(CAST(SUM(waits_below_two_minutes) AS BIGINT), 0) AS waits_below_two_minutes, \
     COALESCE(CAST(SUM(waits_below_ten_minutes) AS BIGINT), 0) AS waits_below_ten_minutes, \
     COALESCE(CAST(SUM(waits_longer) AS BIGINT), 0) AS waits_longer, COALESCE(MAX(longest_wait), 0) AS longest FROM run_sums \
     WHERE installation = $1 AND span = $2 AND began >= $3 AND began < $4 AND ($5 IS NULL OR account = $5)";

/// Read of sums: a statement, the spans and accounts that it is about, and the most rows.
struct UsageRead<'r> {
    statement: &'static str,
    grid: &'r TimeGrid,
    scope: &'r AccountScope,
    max: i64,
}

/// Sums of what calls used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageSums {
    /// Number of calls that were sent upstream.
    pub calls: u64,
    /// Number of those without a price, unless a correction has told it.
    pub unpriced: u64,
    /// Tokens of the prompts.
    pub input_tokens: u64,
    /// Tokens of the answers.
    pub output_tokens: u64,
    /// Cost of the calls, corrections included.
    pub cost: SignedNanoDollars,
    /// Credits that the accounts paid for them.
    pub credits: Credits,
}

/// Runs that ended within one span in one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunsEnded {
    /// Time at which the span begins.
    pub began: UnixMillis,
    /// Name of the state.
    pub state: String,
    /// Code of the error; absent for runs that have an answer.
    pub code: Option<String>,
    /// Number of the runs.
    pub runs: u64,
}

/// Runs by how long they waited for a worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunWaits {
    /// Numbers of runs that waited less than each of [`WAIT_BOUNDS`], and not less than the one before; then of those
    /// that waited longer.
    pub runs: [u64; WAIT_BOUNDS.len() + 1],
    /// Longest wait in milliseconds.
    pub longest: i64,
}

impl UsageSums {
    fn read(row: &AnyRow) -> Result<Self, Error> {
        Ok(Self {
            calls: count(row, "calls")?,
            unpriced: count(row, "unpriced")?,
            input_tokens: count(row, "input_tokens")?,
            output_tokens: count(row, "output_tokens")?,
            cost: SignedNanoDollars(number(row, "nanodollars")?),
            credits: Credits(number(row, "credits")?),
        })
    }
}

impl Store {
    /// Returns the row of `spans` spans up to now, by the store's clock.
    pub async fn grid_up_to_now(&self, span: SumSpan, spans: u32) -> Result<TimeGrid, Error> {
        self.retry(async || {
            let now = sqlx::query_scalar(self.backend.now()).fetch_one(&self.pool).await;
            Ok(TimeGrid::up_to(UnixMillis(now.map_err(failed(ACTION))?), span, spans))
        })
        .await
    }

    /// Returns what calls within `scope` used in each span that has a call, in order.
    pub async fn usage_by_time(
        &self,
        grid: &TimeGrid,
        scope: &AccountScope,
    ) -> Result<Vec<(UnixMillis, UsageSums)>, Error> {
        let began = |row: &AnyRow| number(row, "began").map(UnixMillis);
        let read = UsageRead { statement: BY_TIME, grid, scope, max: i64::from(grid.spans) };
        self.usage(&read, began).await
    }

    /// Returns what each account within `scope` used, the dearest first, but at most `max` accounts.
    pub async fn usage_by_account(
        &self,
        grid: &TimeGrid,
        scope: &AccountScope,
        max: u32,
    ) -> Result<Vec<(AccountId, UsageSums)>, Error> {
        let account = |row: &AnyRow| parsed(row, "account", |text| AccountId::parse(text).ok());
        let read = UsageRead { statement: BY_ACCOUNT, grid, scope, max: i64::from(max) };
        self.usage(&read, account).await
    }

    /// Returns what calls of each model within `scope` used, the dearest first, but at most `max` models. Calls that name
    /// no model have an empty one.
    pub async fn usage_by_model(
        &self,
        grid: &TimeGrid,
        scope: &AccountScope,
        max: u32,
    ) -> Result<Vec<(String, UsageSums)>, Error> {
        let read = UsageRead { statement: BY_MODEL, grid, scope, max: i64::from(max) };
        self.usage(&read, |row| text(row, "model")).await
    }

    async fn usage<K>(
        &self,
        read: &UsageRead<'_>,
        key: impl Fn(&AnyRow) -> Result<K, Error>,
    ) -> Result<Vec<(K, UsageSums)>, Error> {
        self.retry(async || {
            let query = self.in_grid(read.statement, read.grid, read.scope).bind(read.max);
            let rows = query.fetch_all(&self.pool).await;
            let rows = rows.map_err(failed(ACTION))?;
            rows.iter().map(|row| Ok((key(row)?, UsageSums::read(row)?))).collect()
        })
        .await
    }

    /// Returns the numbers of refused calls within `scope` by the code of the refusal, the greatest first, but at most
    /// `max` codes.
    pub async fn refusals_by_reason(
        &self,
        grid: &TimeGrid,
        scope: &AccountScope,
        max: u32,
    ) -> Result<Vec<(String, u64)>, Error> {
        self.retry(async || {
            let query = self.in_grid(REFUSALS, grid, scope).bind(i64::from(max));
            let rows = query.fetch_all(&self.pool).await.map_err(failed(ACTION))?;
            rows.iter().map(|row| Ok((text(row, "refusal")?, count(row, "calls")?))).collect()
        })
        .await
    }

    /// Returns the numbers of runs within `scope` that ended, by span, state and code.
    pub async fn runs_ended(&self, grid: &TimeGrid, scope: &AccountScope) -> Result<Vec<RunsEnded>, Error> {
        self.retry(async || {
            let query = self.in_grid(OUTCOMES, grid, scope).bind(i64::MAX);
            let rows = query.fetch_all(&self.pool).await.map_err(failed(ACTION))?;
            let read = |row: &AnyRow| {
                Ok(RunsEnded {
                    began: UnixMillis(number(row, "began")?),
                    state: text(row, "state")?,
                    code: Some(text(row, "code")?).filter(|code| !code.is_empty()),
                    runs: count(row, "runs")?,
                })
            };
            rows.iter().map(read).collect()
        })
        .await
    }

    /// Returns how long the runs within `scope` that ended had waited for a worker. A run that was started again counts
    /// with its last wait, and one that never was in the queue does not count.
    pub async fn run_waits(&self, grid: &TimeGrid, scope: &AccountScope) -> Result<RunWaits, Error> {
        self.retry(async || {
            let query = self.in_grid(WAITS, grid, scope);
            let row = query.fetch_one(&self.pool).await.map_err(failed(ACTION))?;
            let mut waits = RunWaits { longest: number(&row, "longest")?, ..RunWaits::default() };
            for (runs, column) in waits.runs.iter_mut().zip(WAIT_COLUMNS) {
                *runs = count(&row, column)?;
            }
            Ok(waits)
        })
        .await
    }

    fn in_grid(
        &self,
        statement: &'static str,
        grid: &TimeGrid,
        scope: &AccountScope,
    ) -> Query<'_, Any, AnyArguments> {
        let account = match scope {
            AccountScope::All => None,
            AccountScope::Only(account) => Some(account.to_string()),
        };
        let query = sqlx::query(statement).bind(self.installation.to_string()).bind(grid.span.length());
        query.bind(grid.from.0).bind(grid.until().0).bind(account)
    }
}
