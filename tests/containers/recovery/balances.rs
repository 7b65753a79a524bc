//! Tests floors of balances: the proxy refuses calls below them, whatever is killed, until the account is topped up.

use harness::{Up, World, eventually::eventually_within};
use http::Method;
use platform_core::money::NanoDollars;
use runner_model::failpoint::Point;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::survival::{LEASE, PATIENCE, ended, order};
use crate::sandbox::shell_agent;

const BILLING: &str = "[billing]\nfloor = 0\nmarkup = '1.25'\nfree_models = ['fake-free']\n\
                       [prices.fake]\ninput = '1'\noutput = '2'\n";

/// Agents that ask a model once, and end with the status of its answer.
fn agents() -> String {
    let asks = |name: &str, model: &str| {
        let call = format!(
            r#"curl --silent --output /dev/null --write-out "%{{http_code}}" http://localhost:8080/v1/chat/completions \
               --json '{{ "model": "{model}", "messages": [{{ "role": "user", "content": "q" }}] }}'"#
        );
        shell_agent(&call, "").replace("test:sh", name)
    };
    format!("{}{}", asks("test:pays", "fake"), asks("test:free", "fake-free"))
}

/// Starts a world without a proxy: `sluice up` starts one.
async fn world() -> World {
    let mut world = World::with(&format!("{BILLING}{}{LEASE}", agents())).await;
    assert!(world.stop_proxy().await);
    world
}

/// Runs an agent, and returns the status of its call.
async fn status(world: &World, run: &str, agent: &str) -> String {
    order(world, run, agent).await;
    ended(world, run).await["answer"].as_str().unwrap_or_default().trim().to_owned()
}

async fn billing(world: &World, arguments: &[&str]) -> Value {
    let outcome = world.sluice().run(&[&["billing"], arguments].concat()).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.result()
}

/// Returns the accounts for which the proxy refuses calls.
async fn exhausted(world: &World) -> Value {
    let lists = world.control.send(Method::GET, "/v1/exhausted", String::new()).await.json();
    lists["accounts"].clone()
}

async fn until_exhausted(world: &World, accounts: Value) {
    eventually_within(PATIENCE, "the proxy is told", || exhausted(world), |found| *found == accounts).await;
}

#[tokio::test]
async fn a_floor_holds_whatever_is_killed() {
    let world = world().await;
    // The control plane dies when it has stored the receipt, before it tells the proxy of the balance.
    let armed = world.sluice().env("SLUICE_FAILPOINT", &format!("{}:kill", Point::CallsStored.name()));
    let mut up = Up::start(armed).await;
    order(&world, "r1", "test:pays").await;
    assert_eq!(up.death().await, Some(9));
    let next = Up::start(world.sluice()).await;
    assert_eq!(ended(&world, "r1").await["answer"], "200", "no balance, and so none that is too low");
    until_exhausted(&world, json!(["local"])).await;
    assert_eq!(status(&world, "r2", "test:pays").await, "400");
    assert_eq!(status(&world, "r3", "test:free").await, "200");
    // The proxy keeps the list while no control plane is there.
    next.stop(Signal::KILL).await;
    up.kill_proxy().await;
    let next = Up::start(world.sluice()).await;
    until_exhausted(&world, json!(["local"])).await;
    assert_eq!(status(&world, "r4", "test:pays").await, "400");

    let credited =
        billing(&world, &["credit", "--account", "local", "1000000", "--key", "k", "--json"]).await;
    let again = billing(&world, &["credit", "--account", "local", "1000000", "--key", "k", "--json"]).await;
    assert_eq!((&credited["new"], &again["new"]), (&json!(true), &json!(false)));
    assert_eq!(credited["balance"], again["balance"]);
    until_exhausted(&world, json!([])).await;
    assert_eq!(status(&world, "r5", "test:pays").await, "200");
    next.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

/// Asserts that each command tells this cost of a run, the only one that costs its account anything.
async fn assert_costs_agree(world: &World, run: &str, nanodollars: i64) {
    let result = async |arguments: &[&str]| {
        let outcome = world.sluice().run(arguments).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        outcome.result()
    };
    let shown = result(&["runs", "show", run, "--json"]).await;
    assert_eq!(shown["receipts"]["nanodollars"], nanodollars, "{shown}");
    assert_eq!(shown["usage"]["cost_nanodollars"], nanodollars, "{shown}");
    assert_eq!(
        shown["events"].as_array().unwrap().last().unwrap()["kind"],
        "done",
        "the last event is the last"
    );
    let listed = result(&["runs", "ls", "--json"]).await["runs"].clone();
    let listed = listed.as_array().unwrap().iter().find(|each| each["run_id"] == run).unwrap();
    assert_eq!(listed["receipts"], shown["receipts"]);
    let stats = result(&["audit", "stats", "--run", run, "--json"]).await;
    assert_eq!(stats["all"]["cost_nanodollars"], nanodollars, "{stats}");
    let usage = result(&["usage", "--account", "local", "--json"]).await;
    let cost = usage["limits"].as_array().unwrap().iter().find(|each| each["limit"] == "cost_nanodollars");
    assert_eq!(cost.unwrap()["used"], nanodollars, "{usage}");
    let dollars = NanoDollars(nanodollars.try_into().unwrap()).to_string();
    for arguments in [&["runs", "show", run][..], &["runs", "ls"]] {
        let outcome = world.sluice().run(arguments).await;
        assert!(outcome.stdout.contains(&dollars), "{dollars}: {outcome:?}");
    }
}

/// The commands of `sluice billing` agree with each other, and with those that show runs and usage.
#[tokio::test]
async fn balance_statement_and_receipts_agree() {
    let world = world().await;
    let up = Up::start(world.sluice()).await;
    billing(&world, &["credit", "--account", "local", "5000", "--note", "start", "--json"]).await;
    assert_eq!(status(&world, "r1", "test:pays").await, "200");
    assert_eq!(status(&world, "r2", "test:free").await, "200");
    let listed = || async { billing(&world, &["receipts", "--json"]).await["receipts"].clone() };
    let receipts =
        eventually_within(PATIENCE, "receipts come", listed, |all| all.as_array().unwrap().len() == 2).await;
    let sum =
        |key: &str| receipts.as_array().unwrap().iter().map(|each| each[key].as_i64().unwrap()).sum::<i64>();
    let nanodollars = sum("nanodollars");
    assert!(nanodollars > 0);
    assert_eq!(
        sum("credits"),
        (nanodollars * 125).div_euclid(10_000) + i64::from(nanodollars * 125 % 10_000 > 0)
    );

    let balances = billing(&world, &["balance", "--json"]).await["balances"].clone();
    assert_eq!(balances[0]["credits"], 5000 - sum("credits"));
    assert_eq!((&balances[0]["account"], &balances[0]["floor"]), (&json!("local"), &json!(0)));
    let today = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
    let statement = ["statement", "--account", "local", "--month", &today[..7], "--format"];
    let json = billing(&world, &[&statement[..], &["json"]].concat()).await;
    assert_eq!((&json["opening"], &json["closing"]), (&json!(0), &balances[0]["credits"]));
    assert_eq!((&json["top_ups"][0]["note"], &json["charged"]), (&json!("start"), &json!(sum("credits"))));
    let this_month = billing(&world, &["statement", "--account", "local", "--format", "json"]).await;
    assert_eq!(this_month, json, "the present month, if none is named");
    for format in ["table", "csv"] {
        let outcome = world.sluice().run(&[&["billing"], &statement[..], &[format]].concat()).await;
        assert_eq!(
            outcome.stdout.lines().count(),
            6,
            "heading, two balances, top-up, two models: {outcome:?}"
        );
        assert!(outcome.stdout.contains("fake-free"), "{outcome:?}");
    }
    let of_r1: i64 = receipts
        .as_array()
        .unwrap()
        .iter()
        .filter(|each| each["run_id"] == "r1")
        .map(|each| each["nanodollars"].as_i64().unwrap())
        .sum();
    assert_costs_agree(&world, "r1", of_r1).await;
    let exported = world.sluice().run(&["billing", "export", "--month", &today[..7]]).await;
    let lines: Vec<Value> = exported.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(json!(lines), receipts);
    let csv = world.sluice().run(&["billing", "export", "--format", "csv"]).await;
    assert_eq!(csv.stdout.lines().count(), 3, "{csv:?}");
    // The figures that make the credits, and how good they are.
    let rows: Vec<Vec<_>> = csv.stdout.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|each| *each == name).unwrap();
    for (name, value) in [("tokens_source", "exact"), ("markup", "1.25"), ("credits_per_dollar", "10000000")]
    {
        assert!(rows[1..].iter().all(|row| row[column(name)] == value), "{name}: {csv:?}");
    }
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}
