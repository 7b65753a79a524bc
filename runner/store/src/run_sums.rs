//! Keeps sums of ended runs by span of time: how they ended, and how long they had waited for a worker.
//!
//! A sum changes in the transaction that ends a run, and in the one that starts it again. So it always equals what it
//! sums up. Runs are summed up by one statement from their rows, also those that an older schema has stored.

use platform_core::id::RunId;
use sqlx::AssertSqlSafe;

use super::{
    SumSpan, Tx, UnixMillis,
    error::{Error, failed},
    overview::{WAIT_BOUNDS, WAIT_COLUMNS},
};

/// Version of the schema that brings the sums.
pub(super) const SINCE: usize = 26;

const ACTION: &str = "sum up ended runs";

/// Returns the conditions of the columns in [`WAIT_COLUMNS`].
fn wait_conditions() -> [String; WAIT_COLUMNS.len()] {
    std::array::from_fn(|group| {
        let at_least =
            group.checked_sub(1).map(|before| format!("claimed - queued >= {}", WAIT_BOUNDS[before]));
        let below = WAIT_BOUNDS.get(group).map(|bound| format!("claimed - queued < {bound}"));
        at_least.into_iter().chain(below).collect::<Vec<_>>().join(" AND ")
    })
}

/// Returns the statement that adds the ended runs that fulfil `condition` to the sums of `span`.
fn add(span: SumSpan, condition: &str) -> String {
    let length = span.length();
    let sums: Vec<_> = wait_conditions()
        .into_iter()
        .map(|condition| format!("CAST(SUM(CASE WHEN {condition} THEN 1 ELSE 0 END) AS BIGINT)"))
        .collect();
    let added: Vec<_> = WAIT_COLUMNS
        .into_iter()
        .map(|column| format!("{column} = run_sums.{column} + excluded.{column}"))
        .collect();
    format!(
        "INSERT INTO run_sums (installation, span, began, account, state, error_code, runs, {}, longest_wait) \
         SELECT installation, CAST({length} AS BIGINT), ended - ended % {length}, account, state, \
         COALESCE(error_code, ''), COUNT(*), {}, COALESCE(MAX(claimed - queued), 0) FROM runs \
         WHERE ended IS NOT NULL AND {condition} GROUP BY 1, 3, 4, 5, 6 \
         ON CONFLICT (installation, span, began, account, state, error_code) DO UPDATE SET \
         runs = run_sums.runs + excluded.runs, {}, longest_wait = CASE WHEN excluded.longest_wait > run_sums.longest_wait \
         THEN excluded.longest_wait ELSE run_sums.longest_wait END",
        WAIT_COLUMNS.join(", "),
        sums.join(", "),
        added.join(", ")
    )
}

/// Returns the statements that take the ended run `$1` out of the sums of `span`: they lower the numbers, find the longest
/// wait of the other runs once no other transaction can change the row, and remove a row without runs.
fn remove(span: SumSpan) -> [String; 3] {
    let length = span.length();
    let place = format!(
        "runs.run = $1 AND runs.ended IS NOT NULL AND run_sums.installation = runs.installation AND run_sums.span = {length} \
         AND run_sums.began = runs.ended - runs.ended % {length} AND run_sums.account = runs.account \
         AND run_sums.state = runs.state AND run_sums.error_code = COALESCE(runs.error_code, '')"
    );
    let lowered: Vec<_> = WAIT_COLUMNS
        .into_iter()
        .zip(wait_conditions())
        .map(|(column, condition)| {
            format!("{column} = run_sums.{column} - CASE WHEN {condition} THEN 1 ELSE 0 END")
        })
        .collect();
    let longest = format!(
        "SELECT COALESCE(MAX(other.claimed - other.queued), 0) FROM runs AS other WHERE other.run <> $1 \
         AND other.installation = run_sums.installation AND other.ended >= run_sums.began \
         AND other.ended < run_sums.began + {length} AND other.account = run_sums.account \
         AND other.state = run_sums.state AND COALESCE(other.error_code, '') = run_sums.error_code"
    );
    [
        format!(
            "UPDATE run_sums SET runs = run_sums.runs - 1, {} FROM runs WHERE {place}",
            lowered.join(", ")
        ),
        format!("UPDATE run_sums SET longest_wait = ({longest}) FROM runs WHERE {place}"),
        format!("DELETE FROM run_sums WHERE runs <= 0 AND EXISTS (SELECT 1 FROM runs WHERE {place})"),
    ]
}

impl Tx {
    /// Adds a run that ended in this transaction to the sums. The spans follow in one order, so that two transactions do
    /// not wait for each other.
    pub(super) async fn add_ended_run(&mut self, run_id: &RunId) -> Result<(), Error> {
        for span in SumSpan::ALL {
            let query = sqlx::query(AssertSqlSafe(add(span, "run = $1"))).bind(run_id.as_str());
            query.execute(self.connection()).await.map_err(failed(ACTION))?;
        }
        Ok(())
    }

    /// Takes an ended run out of the sums, before its next attempt begins.
    pub(super) async fn remove_ended_run(&mut self, run_id: &RunId) -> Result<(), Error> {
        for statement in SumSpan::ALL.into_iter().flat_map(remove) {
            let query = sqlx::query(AssertSqlSafe(statement)).bind(run_id.as_str());
            query.execute(self.connection()).await.map_err(failed(ACTION))?;
        }
        Ok(())
    }

    /// Sums up the ended runs that an older schema has stored.
    pub(super) async fn fill_run_sums(&mut self) -> Result<(), Error> {
        for span in SumSpan::ALL {
            let since = span.kept().map_or(i64::MIN, |kept| UnixMillis(self.now).before(kept).0);
            let query = sqlx::query(AssertSqlSafe(add(span, "ended >= $1"))).bind(since);
            query.execute(self.connection()).await.map_err(failed(ACTION))?;
        }
        Ok(())
    }
}
