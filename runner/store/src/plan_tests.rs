//! Tests how SQLite looks receipts up: what is done for each call must not read those of all others.

use std::path::Path;

use platform_core::id::InstallationId;
use sqlx::{AssertSqlSafe, Row};

use super::{Address, Store, adjustments, gateway_sessions, ledger, overview, reconciliation};

async fn open_in(dir: &Path) -> Store {
    let url = format!("sqlite://{}", dir.join("sluice.db").display());
    let installation = InstallationId::parse("here").unwrap();
    Store::open(&Address::parse(&url, None).unwrap(), installation).await.unwrap()
}

/// Returns the steps in which SQLite executes `statement`.
async fn plan(store: &Store, statement: &str) -> Vec<String> {
    let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
    let steps = sqlx::query(explain).fetch_all(&store.pool).await.unwrap();
    steps.iter().map(|step| step.try_get("detail").unwrap()).collect()
}

/// Returns whether a step reads a whole table, or all receipts of an installation.
fn reads_all(plan: &[String]) -> bool {
    let is_broad =
        |step: &String| step.starts_with("SCAN") || step.contains("receipts_called (installation=?)");
    plan.iter().any(is_broad)
}

#[tokio::test]
async fn no_lookup_of_a_call_reads_all_receipts() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_in(dir.path()).await;
    for statement in [ledger::FIND, ledger::SAME_ID, adjustments::CORRECTIONS, reconciliation::EARLIEST_OPEN]
    {
        let plan = plan(&store, statement).await;
        assert!(!plan.is_empty() && !reads_all(&plan), "{statement}: {plan:?}");
    }
    let control = plan(&store, "SELECT * FROM receipts WHERE corrects = $1 AND installation = $2").await;
    assert!(reads_all(&control), "{control:?}");
}

/// A list of sessions reads the runs of its agent, however many others there are.
#[tokio::test]
async fn no_list_of_sessions_reads_other_runs() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_in(dir.path()).await;
    let plan = plan(&store, gateway_sessions::LIST).await;
    let own = |step: &String| step.contains("runs_of_gateway_agent (installation=? AND gateway_agent=?)");
    // What it has selected and sorted is scanned.
    let is_broad = |step: &String| {
        step.starts_with("SCAN") && !step.starts_with("SCAN listed") && !step.starts_with("SCAN page")
    };
    assert!(plan.iter().any(own) && !plan.iter().any(is_broad), "{plan:#?}");
}

/// An overview reads sums, but never receipts or runs.
#[tokio::test]
async fn no_overview_reads_receipts_or_orders() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_in(dir.path()).await;
    let sums = [
        overview::BY_TIME,
        overview::BY_ACCOUNT,
        overview::BY_MODEL,
        overview::REFUSALS,
        overview::OUTCOMES,
        overview::WAITS,
    ];
    for statement in sums {
        let plan = plan(&store, statement).await;
        let in_span = |step: &String| step.contains("(installation=? AND span=? AND began>? AND began<?)");
        assert!(plan.iter().any(in_span) && !reads_all(&plan), "{statement}: {plan:?}");
    }
}
