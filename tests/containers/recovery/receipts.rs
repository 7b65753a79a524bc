//! Tests receipts: each call that was sent upstream has one, whatever is killed.

use std::collections::BTreeMap;

use harness::{Up, World, billing::receipts_consumer, eventually::eventually_within};
use runner_model::failpoint::Point;
use rustix::process::Signal;
use serde_json::{Value, json};
use test_postgres::Database;

use super::survival::{LEASE, PATIENCE, ended, order};
use crate::sandbox::shell_agent;

const FREE_MODEL: &str = "[billing]\nfree_models = ['fake-free']\n";

/// Agent that calls a model twice, is refused once, and answers.
fn caller() -> String {
    let ask = |model: &str| {
        format!(
            r#"curl --silent --output /dev/null http://localhost:8080/v1/chat/completions --json '
            {{ "model": "{model}", "messages": [{{ "role": "user", "content": "q" }}] }}'; "#
        )
    };
    let refused = "curl --silent --output /dev/null http://localhost:8080/v1/secret; ";
    shell_agent(&format!("{}{refused}{}echo done", ask("fake"), ask("fake-free")), "")
}

/// Starts a world without a proxy: `sluice up` starts one.
async fn world(toml: &str) -> World {
    let mut world = World::with(&format!("{toml}{}{LEASE}", caller())).await;
    assert!(world.stop_proxy().await);
    world
}

/// Returns the receipts of all runs.
async fn receipts(world: &World) -> Vec<Value> {
    let listed = world.sluice().run(&["billing", "receipts", "-n", "1000", "--json"]).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    listed.result()["receipts"].as_array().unwrap().clone()
}

/// Returns the references that the journal's records give to calls that were sent, each with their number.
async fn sent_calls(world: &World) -> BTreeMap<String, usize> {
    let tail = world.sluice().run(&["audit", "tail", "--json"]).await;
    let mut sent = BTreeMap::new();
    for line in tail.stdout.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        if record["outcome"] != "refused" {
            let text = |key: &str| record[key].as_str().unwrap().to_owned();
            let reference = format!("{}/{}/{}", text("run_id"), record["attempt"], text("litellm_call_id"));
            *sent.entry(reference).or_default() += 1;
        }
    }
    sent
}

/// Waits until each sent call has a receipt, and asserts that it has one.
async fn assert_each_has_one(world: &World, calls: usize) -> Vec<Value> {
    let look = || receipts(world);
    let listed = eventually_within(PATIENCE, "all have receipts", look, |all| all.len() >= calls).await;
    let mut counted = BTreeMap::new();
    for receipt in &listed {
        *counted.entry(receipt["source_reference"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert_eq!(counted, sent_calls(world).await);
    assert_eq!(listed.len(), calls);
    listed
}

/// Kills `sluice up` after each step of a receipt.
async fn assert_one_for_each_whatever_is_killed(world: World) {
    let mut calls = 0;
    for point in Point::RECEIPTS {
        let run = format!("r-{}", point.name());
        let armed = world.sluice().env("SLUICE_FAILPOINT", &format!("{}:kill", point.name()));
        let mut up = Up::start(armed).await;
        order(&world, &run, "test:sh").await;
        assert_eq!(up.death().await, Some(9), "{} was reached", point.name());
        let next = Up::start(world.sluice()).await;
        assert!(next.said.contains("adopted"), "{}", next.said);
        assert_eq!(ended(&world, &run).await["state"], "succeeded");
        calls += 2;
        assert_each_has_one(&world, calls).await;
        let nothing_left = |consumer: &Value| consumer["lag"] == json!(0);
        eventually_within(PATIENCE, "all are acknowledged", || receipts_consumer(&world), nothing_left).await;
        next.stop(Signal::TERM).await;
        up.kill_proxy().await;
    }
    assert_eq!(world.upstream.ledger().all().len(), calls, "the upstream served as many");
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn each_sent_call_has_one_receipt() {
    assert_one_for_each_whatever_is_killed(world(FREE_MODEL).await).await;
}

#[tokio::test]
async fn each_call_has_one_receipt_on_postgres() {
    let postgres = Database::create().await;
    let world = world(FREE_MODEL).await;
    drop(world.keep_store_at(&postgres.url()).await);
    assert_one_for_each_whatever_is_killed(world).await;
}

#[tokio::test]
async fn a_receipt_tells_what_a_call_costs_and_why() {
    let world =
        world("[billing]\nfree_models = ['fake-free']\n[prices.fake]\ninput = '1'\noutput = '2'\n").await;
    let up = Up::start(world.sluice()).await;
    let words = ["run", "--agent", "test:sh", "--run-id", "r1", "--account", "acct-7", "--user", "u-1", "q"];
    let outcome = world.sluice().run(&words).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let listed = assert_each_has_one(&world, 2).await;
    let of = |model: &str| listed.iter().find(|receipt| receipt["model"] == model).unwrap();
    let priced = of("fake");
    let tokens = |kind: &str| priced["tokens"][kind].as_u64().unwrap();
    assert_eq!(priced["nanodollars"], 1000 * tokens("input") + 2000 * tokens("output"), "{priced}");
    assert_eq!(
        (&priced["charge_reason"], &priced["tokens_source"]),
        (&json!("price_table"), &json!("exact"))
    );
    assert_eq!(
        (&of("fake-free")["charge_reason"], &of("fake-free")["nanodollars"]),
        (&json!("free_model"), &json!(0))
    );
    for (key, value) in [
        ("account", "acct-7"),
        ("user", "u-1"),
        ("run_id", "r1"),
        ("graph", "test:sh"),
        ("executor_type", "sandbox"),
        ("receipt_kind", "model_call"),
        ("source_system", "sluicegate"),
    ] {
        assert_eq!(priced[key], value, "{key}: {priced}");
    }
    let shown = world.sluice().run(&["billing", "receipts", "--account", "acct-7", "--run", "r1"]).await;
    assert!(shown.stdout.contains("price_table") && shown.stdout.lines().count() == 3, "{shown:?}");
    let other = world.sluice().run(&["billing", "receipts", "--account", "acct-8"]).await;
    assert_eq!(other.stdout.lines().count(), 1, "the heading alone: {other:?}");
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

/// Returns the JSON that a command prints.
async fn json_of(world: &World, words: &[&str]) -> Value {
    world.sluice().run(&[words, &["--json"]].concat()).await.result()
}

/// Costs of a price table, a free model and a refused call: each command adds up the same ones.
#[tokio::test]
async fn commands_agree_about_the_cost_of_a_run() {
    let world =
        world("[billing]\nfree_models = ['fake-free']\n[prices.fake]\ninput = '1'\noutput = '2'\n").await;
    let up = Up::start(world.sluice()).await;
    for (run, question) in [("r1", "q"), ("r2", "a longer question")] {
        let words = ["run", "--agent", "test:sh", "--run-id", run, "--account", "acct-7", question];
        let outcome = world.sluice().run(&words).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
    }
    let receipts = assert_each_has_one(&world, 4).await;
    let charged = |run: &str| {
        let of_run = receipts.iter().filter(|receipt| receipt["run_id"] == run);
        of_run.map(|receipt| receipt["nanodollars"].as_u64().unwrap()).sum::<u64>()
    };
    let listed = json_of(&world, &["runs", "ls"]).await;
    let top = json_of(&world, &["audit", "top"]).await;
    for run in ["r1", "r2"] {
        let cost = json!(charged(run));
        assert_ne!(cost, json!(0), "control");
        let of_list = |list: &Value, key: &str| {
            let rows = list.as_array().unwrap();
            rows.iter().find(|row| row[key] == run).unwrap_or_else(|| panic!("no {run} in {list}")).clone()
        };
        assert_eq!(of_list(&listed["runs"], "run_id")["usage"]["cost_nanodollars"], cost, "{listed}");
        assert_eq!(of_list(&top["rows"], "run")["cost_nanodollars"], cost, "{top}");
        let shown = json_of(&world, &["runs", "show", run]).await;
        assert_eq!(shown["usage"]["cost_nanodollars"], cost, "{shown}");
        let usage = json_of(&world, &["usage", "--run", run]).await;
        assert_eq!(usage["usage"]["cost_nanodollars"], cost, "{usage}");
    }
    let usage = json_of(&world, &["usage", "--account", "acct-7"]).await;
    let limits = usage["limits"].as_array().unwrap();
    let cost = limits.iter().find(|limit| limit["limit"] == "cost_nanodollars").unwrap();
    assert_eq!(cost["used"], charged("r1") + charged("r2"), "{usage}");
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}
