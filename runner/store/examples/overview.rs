//! Measures how long the reads of an overview take in a store with many receipts: for the record.
//!
//! usage: overview URL RECEIPTS

use std::{
    io::{self, Write},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use platform_core::id::InstallationId;
use runner_store::{AccountScope, Address, Store, SumSpan, TimeGrid};
use sqlx::{AnyConnection, AssertSqlSafe, Connection};

/// Times that each read is measured.
const ROUNDS: usize = 20;
const DAY_MS: i64 = 86_400_000;
/// Rows of a million receipts and of 50,000 runs over 90 days, of 100 accounts and 10 models. The same sums as the
/// receipts have are then made by the migration's own statement.
const RECEIPTS: &str = "WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < $COUNT) \
     INSERT INTO receipts (source_system, source_reference, installation, receipt_kind, account, run, attempt, call_id, \
     agent, executor_type, model, tokens, tokens_source, nanodollars, charge_reason, called, created, credits) \
     SELECT 'sluicegate', 'run-' || (n / 20) || '/0/' || n, 'here', 'model_call', 'acct-' || (n * 7919 % 100), \
     'run-' || (n / 20), 0, n, 'sandbox:agent', 'sandbox', 'model-' || (n * 104729 % 10), \
     '{\"input\":1200,\"output\":340,\"cached\":0,\"reasoning\":0}', 'exact', 23000, 'upstream_cost', \
     $NOW - n * ($SPAN / $COUNT), $NOW - n * ($SPAN / $COUNT), 230 FROM numbers";
const RUNS: &str = "WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < $COUNT / 20) \
     INSERT INTO runs (run, installation, account, agent, correlation, wanted, state, attempt, epoch, created, queued, \
     claimed, ended, changed, error_code, last_event) \
     SELECT 'run-' || n, 'here', 'acct-' || (n % 100), 'sandbox:agent', '{}', '{}', \
     CASE WHEN n % 10 = 0 THEN 'failed' ELSE 'succeeded' END, 0, 1, $NOW - n * ($SPAN * 20 / $COUNT), \
     $NOW - n * ($SPAN * 20 / $COUNT), $NOW - n * ($SPAN * 20 / $COUNT) + n % 3000, \
     $NOW - n * ($SPAN * 20 / $COUNT) + 9000, 0, CASE WHEN n % 10 = 0 THEN 'container_failed' END, 1 FROM numbers";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [url, receipts] = arguments.as_slice() else { return Err("usage: overview URL RECEIPTS".into()) };
    let open = async || {
        Ok::<_, Box<dyn std::error::Error>>(
            Store::open(&Address::parse(url, None)?, InstallationId::parse("here")?).await?,
        )
    };
    open().await?.close().await;
    fill(url, receipts.parse()?).await?;
    let began = Instant::now();
    let store = open().await?;
    let mut out = io::stdout();
    writeln!(out, "{receipts} receipts; the migration summed them up in {:.1?}", began.elapsed())?;
    for (range, span, spans) in [
        ("1h", SumSpan::FiveMinutes, 12),
        ("24h", SumSpan::Hour, 24),
        ("7d", SumSpan::Day, 7),
        ("90d", SumSpan::Day, 90),
    ] {
        let grid = store.grid_up_to_now(span, spans).await?;
        measure(&store, range, &grid).await?;
    }
    Ok(())
}

/// Writes the rows, and puts the store back to the schema before its sums.
async fn fill(url: &str, receipts: u64) -> Result<(), Box<dyn std::error::Error>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    let mut connection = AnyConnection::connect(url).await?;
    for statement in [RECEIPTS, RUNS] {
        let statement = statement
            .replace("$COUNT", &receipts.to_string())
            .replace("$NOW", &now.to_string())
            .replace("$SPAN", &(90 * DAY_MS).to_string());
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await?;
    }
    let older = "DROP TABLE run_sums; DROP TABLE refusal_sums; DROP TABLE usage_sums; DROP INDEX runs_ended; \
                 ALTER TABLE runs DROP COLUMN question_start; DELETE FROM migrations WHERE version >= 24";
    sqlx::raw_sql(older).execute(&mut connection).await?;
    connection.close().await?;
    Ok(())
}

async fn measure(store: &Store, range: &str, grid: &TimeGrid) -> Result<(), Box<dyn std::error::Error>> {
    let scope = AccountScope::All;
    for figure in ["by_time", "by_account", "by_model", "refusals", "runs_ended", "waits"] {
        let mut times = Vec::with_capacity(ROUNDS);
        let mut rows = 0;
        for _ in 0..ROUNDS {
            let began = Instant::now();
            rows = match figure {
                "by_time" => store.usage_by_time(grid, &scope).await?.len(),
                "by_account" => store.usage_by_account(grid, &scope, 100).await?.len(),
                "by_model" => store.usage_by_model(grid, &scope, 100).await?.len(),
                "refusals" => store.refusals_by_reason(grid, &scope, 100).await?.len(),
                "runs_ended" => store.runs_ended(grid, &scope).await?.len(),
                _ => store.run_waits(grid, &scope).await?.runs.len(),
            };
            times.push(began.elapsed());
        }
        times.sort_unstable();
        let at = |part: usize| times.get(part).copied().unwrap_or(Duration::ZERO);
        writeln!(
            io::stdout(),
            "{range} {figure}: {rows} rows, median {:.1} ms, worst {:.1} ms",
            at(ROUNDS / 2).as_secs_f64() * 1000.0,
            at(ROUNDS - 1).as_secs_f64() * 1000.0
        )?;
    }
    Ok(())
}
