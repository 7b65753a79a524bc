//! `sluice audit stats`: sums that are those of the journal.

use std::collections::BTreeMap;

use harness::World;
use platform_core::record::{ExchangeRecord, Outcome};
use serde_json::{Value, json};

use super::{json_of, said};

async fn world_with_calls() -> World {
    let world = World::start().await;
    let runs =
        [world.run("r1", "acct-1").await, world.run("r2", "acct-1").await, world.run("r3", "acct-2").await];
    for (at, run) in runs.iter().enumerate() {
        for model in ["fake-cost", "fake-words30-cost", "fake-status500"].iter().take(at + 1) {
            run.agent.chat(model).await;
        }
        run.agent.post("/v1/nothing", &json!({})).await;
        drop(run.agent.stream(&format!("fake-cut1-gap{at}ms")).await.until_break().await);
    }
    world.records(12).await;
    world
}

/// Computes the sums that should be reported of `records`, and their times.
fn sums(records: &[&ExchangeRecord]) -> (Value, [Vec<u64>; 2]) {
    let passed: Vec<_> = records.iter().filter(|record| record.outcome != Outcome::Refused).collect();
    let errors =
        passed.iter().filter(|record| record.outcome == Outcome::UpstreamGone || record.status >= 400);
    let total = |of: fn(&ExchangeRecord) -> u64| records.iter().map(|record| of(record)).sum::<u64>();
    let told = json!({
        "calls": passed.len(),
        "refused": records.len() - passed.len(),
        "errors": errors.count(),
        "input": total(|record| record.tokens.input),
        "output": total(|record| record.tokens.output),
        "cost": total(|record| record.cost_nanodollars.unwrap_or_default().0),
    });
    let mut first: Vec<_> = records.iter().filter_map(|record| record.ttfb_us).collect();
    let mut whole: Vec<_> = passed.iter().map(|record| record.duration_us).collect();
    first.sort_unstable();
    whole.sort_unstable();
    (told, [first, whole])
}

#[track_caller]
fn assert_is(row: &Value, records: &[&ExchangeRecord]) {
    let (expected, [first, whole]) = sums(records);
    let told = json!({ "calls": row["calls"], "refused": row["refused"], "errors": row["errors"],
        "input": row["tokens"]["input"], "output": row["tokens"]["output"], "cost": row["cost_nanodollars"] });
    assert_eq!(told, expected);
    for (told, times) in [(&row["ttfb_us"], first), (&row["duration_us"], whole)] {
        for (name, per_cent) in [("p50", 50), ("p90", 90), ("p99", 99)] {
            let exact = times[(times.len() * per_cent).div_ceil(100) - 1];
            let told = told[name].as_u64().unwrap();
            assert!(exact <= told && told <= exact + exact / 100, "{name}: {told}, and it is {exact}");
        }
    }
}

/// Compares sums by run, by account and by model.
#[tokio::test]
async fn stats_agree_with_the_journal() {
    let world = world_with_calls().await;
    let records: Vec<_> = world.journal().await.into_iter().map(|line| line.record).collect();
    let name = |by: &str, record: &ExchangeRecord| match by {
        "run" => record.run_id.to_string(),
        "account" => record.account.to_string(),
        _ => record.model_asked.as_ref().map_or("-".to_owned(), ToString::to_string),
    };
    for by in ["run", "account", "model"] {
        let told = json_of(&world, &["stats", "--by", by]).await;
        let mut groups: BTreeMap<String, Vec<&ExchangeRecord>> = BTreeMap::new();
        records.iter().for_each(|record| groups.entry(name(by, record)).or_default().push(record));
        let rows = told["rows"].as_array().unwrap();
        assert_eq!(rows.len(), groups.len(), "{told}");
        let costs: Vec<_> = rows.iter().map(|row| row["cost_nanodollars"].as_u64().unwrap()).collect();
        assert!(
            costs.is_sorted_by(|one, other| one >= other) && costs[0] > 0,
            "the dearest first: {costs:?}"
        );
        for row in rows.iter().filter(|row| row["calls"] != 0) {
            assert_is(row, &groups[row[by].as_str().unwrap()]);
        }
        assert_is(&told["all"], &records.iter().collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_table_has_a_row_for_each_and_one_for_all() {
    let world = world_with_calls().await;
    let table = said(&world, &["stats", "--by", "account"]).await;
    let names: Vec<_> = table.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, ["ACCOUNT", "acct-1", "acct-2", "all"], "{table}");
    assert!(!table.contains('█'));
    let drawn = world.sluice().on_terminal(&["audit", "stats", "--by", "account"]).await.text();
    assert!(drawn.contains('█'), "{drawn}");
    let picked = json_of(&world, &["stats", "--account", "acct-2", "--from", "1h"]).await;
    assert_eq!(picked["rows"].as_array().unwrap().len(), 1, "{picked}");
}
