//! Tests the prices that LiteLLM shows at `/model/info`, as version 1.106.2 writes them.

use std::collections::BTreeMap;

use harness::{
    Run, World,
    agent::{Answering, body_for},
    eventually, grant,
    metrics::Scrape,
};
use http::{Method, StatusCode};
use platform_core::{
    budget::Budget,
    capability::Capability,
    control::ShownPrices,
    grant::RunGrant,
    money::NanoDollars,
    record::{CostSource, ExchangeRecord},
};
use serde_json::{Value, json};

const MESSAGES: &str = "/v1/messages";
/// Reports its tokens, and no cost.
const MODEL: &str = "fake-usage1000000x6000";
/// Cost of a call of it at one and two dollars for a million tokens.
const COST: u64 = 1_012_000_000;

const CAPPED: &str = "[accounts.capped]\ncost = '100'\n[prices.other]\ninput = '1'\noutput = '1'\n";

/// A deployment of `model` with a configuration that says what a token costs.
fn deployment(model: &str, input: &Value, output: &Value) -> Value {
    json!({
        "model_name": model,
        "litellm_params": { "model": format!("openai/{model}"), "use_in_pass_through": false },
        "model_info": {
            "id": "396d3917dab9", "db_model": false, "mode": "chat", "key": format!("openai/{model}"),
            "pricing_overrides": ["input_cost_per_token", "output_cost_per_token"],
            "input_cost_per_token": input, "output_cost_per_token": output,
            "input_cost_per_token_priority": null, "cache_read_input_token_cost": null,
            "supports_vision": null, "supported_openai_params": ["temperature"],
        },
    })
}

fn list(deployments: &[Value]) -> String {
    json!({ "data": deployments }).to_string()
}

fn usual() -> String {
    list(&[deployment(MODEL, &json!(1e-6), &json!(2e-6))])
}

/// Lets the proxy read the prices from now on.
async fn turn_on(world: &World) {
    world.reconfigure("model_info = false", "model_info = true");
    reload(world).await;
}

async fn reload(world: &World) {
    let reloaded = world.control.send(Method::POST, "/v1/reload", String::new()).await;
    assert_eq!(reloaded.status, StatusCode::OK, "{}", reloaded.text());
}

async fn until(world: &World, state: ShownPrices) {
    let health = || async { world.control.health().await.unwrap().upstream_prices };
    eventually("the prices have this state", health, |found| *found == state).await;
}

/// A world with an upstream that answers `GET /model/info` with this, and a proxy that has read that.
async fn showing(document: String, toml: &str) -> World {
    let world = World::with(toml).await;
    world.upstream.show_model_info(StatusCode::OK, document);
    turn_on(&world).await;
    until(&world, ShownPrices::Read).await;
    world
}

async fn stream(run: &Run) -> StatusCode {
    run.agent.post(MESSAGES, &body_for(MESSAGES, MODEL, Answering::Streamed)).await.status
}

/// Streams a message, and returns its record, the latest of `count`.
async fn record(world: &World, count: usize) -> ExchangeRecord {
    let run = world.run(&format!("r{count}"), "acct-1").await;
    assert_eq!(stream(&run).await, StatusCode::OK);
    world.records(count).await.pop().unwrap().record
}

fn cost(record: &ExchangeRecord) -> (Option<u64>, CostSource) {
    (record.cost_nanodollars.map(|cost| cost.0), record.cost_source)
}

#[tokio::test]
async fn a_streamed_message_has_the_shown_price() {
    let world = World::start().await;
    assert_eq!(cost(&record(&world, 1).await), (None, CostSource::None), "the control");
    world.upstream.show_model_info(StatusCode::OK, usual());
    turn_on(&world).await;
    until(&world, ShownPrices::Read).await;
    assert_eq!(cost(&record(&world, 2).await), (Some(COST), CostSource::Priced));
    let metrics = Scrape::of(world.control.send(Method::GET, "/v1/metrics", String::new()).await.text());
    assert_eq!(metrics.one("sluicegate_upstream_prices"), 1.0);
    assert_eq!(metrics.one("sluicegate_upstream_prices_read"), 1.0);
}

/// Anthropic's fast mode, and its regions.
#[tokio::test]
async fn a_fast_message_has_a_multiple_of_the_price() {
    let mut dear = deployment(MODEL, &json!(1e-6), &json!(2e-6));
    dear["model_info"]["provider_specific_entry"] = json!({ "us": 1.1, "fast": 2.0 });
    let world = showing(list(&[dear]), "").await;
    let capabilities = [Capability::PremiumService].into_iter().collect();
    let run = world.run_with(RunGrant { capabilities, ..grant("r1", "acct-1") }).await;
    let usual = body_for(MESSAGES, MODEL, Answering::Streamed);
    let mut fast = usual.clone();
    fast["speed"] = json!("fast");
    for (count, (body, expected)) in [(usual, COST), (fast, COST * 22 / 10)].into_iter().enumerate() {
        assert_eq!(run.agent.post(MESSAGES, &body).await.status, StatusCode::OK, "{body}");
        let record = world.records(count + 1).await.pop().unwrap().record;
        assert_eq!(cost(&record), (Some(expected), CostSource::Priced), "{body}");
    }
}

#[tokio::test]
async fn models_name_the_source_of_each_price() {
    let shown =
        [deployment("fake", &json!(1e-6), &json!(2e-6)), deployment("fake-cost", &json!(3e-6), &json!(4e-6))];
    let world = showing(list(&shown), "[prices.fake-cost]\ninput = '5'\noutput = '6'\n").await;
    let report = world.sluice().run(&["models", "--json"]).await.result();
    let models = report["models"].as_array().unwrap();
    let price = |name: &str| &models.iter().find(|model| model["model"] == name).unwrap()["price"];
    assert_eq!(*price("fake"), json!({ "input": "$1.00", "output": "$2.00", "source": "upstream" }));
    assert_eq!(*price("fake-cost"), json!({ "input": "$5.00", "output": "$6.00", "source": "table" }));
    let every = world.sluice().run(&["models"]).await.stdout;
    assert_eq!(every.matches("priced by the upstream").count(), 1, "{every}");
}

#[tokio::test]
async fn a_limit_of_cost_admits_a_shown_price() {
    let world = World::with("[prices.other]\ninput = '1'\noutput = '1'\n").await;
    let budget = Budget { cost_nanodollars: Some(NanoDollars(3 * COST)), ..Budget::default() };
    let run = world.run_with(RunGrant { budget, ..grant("r1", "acct-1") }).await;
    let refused = run.agent.chat(MODEL).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["error"]["code"]), (400, &json!("model_unpriced")));
    world.upstream.show_model_info(StatusCode::OK, usual());
    turn_on(&world).await;
    until(&world, ShownPrices::Read).await;
    for _ in 0..3 {
        assert_eq!(stream(&run).await, StatusCode::OK);
    }
    let refused = run.agent.chat(MODEL).await;
    assert_eq!(refused.json()["error"]["code"], "quota_exhausted", "all of it is spent");
}

/// A proxy may be up before LiteLLM is.
#[tokio::test]
async fn a_price_may_come_later_than_a_call() {
    let mut world = World::with(CAPPED).await;
    world.reconfigure("model_info = false", "model_info = true");
    world.reconfigure(&world.upstream.base_url(), "http://127.0.0.1:9");
    assert!(world.stop_proxy().await);
    world.start_proxy().await;
    until(&world, ShownPrices::Failed).await;
    let run = world.run("r1", "capped").await;
    let early = run.agent.chat(MODEL).await;
    assert_eq!(
        (early.status.as_u16(), &early.json()["error"]["code"]),
        (503, &json!("upstream_unavailable"))
    );
    assert!(early.headers.contains_key("retry-after"), "{:?}", early.headers);

    world.reconfigure("http://127.0.0.1:9", &world.upstream.base_url());
    assert!(world.stop_proxy().await);
    world.start_proxy().await;
    until(&world, ShownPrices::Refused).await;
    let late = run.agent.chat(MODEL).await;
    assert_eq!(late.json()["error"]["code"], "model_unpriced", "the control: it shows none");
}

#[tokio::test]
async fn the_table_overrides_a_shown_price() {
    for name in [MODEL, "*"] {
        let table = format!("[prices.'{name}']\ninput = '0.50'\noutput = '0'\n");
        let world = showing(usual(), &table).await;
        assert_eq!(cost(&record(&world, 1).await), (Some(500_000_000), CostSource::Priced), "{name}");
    }
}

/// LiteLLM may send a call to any deployment of its name.
#[tokio::test]
async fn the_dearest_deployment_counts() {
    let [cheap, dear] =
        [(1e-6, 3e-5), (2e-6, 2e-6)].map(|(input, output)| deployment(MODEL, &json!(input), &json!(output)));
    let unknown = deployment(MODEL, &Value::Null, &Value::Null);
    let table = [
        (vec![cheap.clone(), dear.clone()], Some(2_180_000_000)),
        (vec![dear, cheap.clone()], Some(2_180_000_000)),
        (vec![cheap, unknown], None),
    ];
    for (deployments, expected) in table {
        let world = showing(list(&deployments), "").await;
        assert_eq!(cost(&record(&world, 1).await).0, expected, "{deployments:?}");
    }
}

/// Submits a run in `world` with more arguments. Returns the exit code and the code of its error.
async fn submit(world: &World, more: &[&str]) -> (Option<i32>, Value) {
    let arguments = [&["run", "--detach", "--json"], more, &["q"]].concat();
    let outcome = world.sluice().run(&arguments).await;
    (outcome.code, outcome.result()["error"]["code"].clone())
}

/// The order is refused, and not its first call. Only what the upstream has shown counts.
#[tokio::test]
async fn an_order_without_a_price_is_refused() {
    let world = showing(usual(), CAPPED).await;
    for limit in [&["--cost", "1"][..], &["--account", "capped"]] {
        assert_eq!(submit(&world, limit).await, (Some(2), json!("model_unpriced")), "{limit:?}");
        let priced = submit(&world, &[limit, &["--model", MODEL]].concat()).await;
        assert_eq!(priced, (Some(0), Value::Null), "the control: {limit:?}");
    }
    assert_eq!(submit(&world, &[]).await, (Some(0), Value::Null), "without a limit");

    world.upstream.show_model_info(StatusCode::INTERNAL_SERVER_ERROR, "");
    reload(&world).await;
    until(&world, ShownPrices::Failed).await;
    assert_eq!(submit(&world, &["--cost", "1"]).await, (Some(0), Value::Null), "not certain");
}

/// LiteLLM fills in 0 where it knows no price.
#[tokio::test]
async fn a_zero_is_a_price_if_it_is_configured() {
    let told = deployment(MODEL, &json!(0.0), &json!(0));
    let mut filled_in = told.clone();
    filled_in["model_info"]["pricing_overrides"] = json!([]);
    for (deployment, expected) in
        [(told, (Some(0), CostSource::Priced)), (filled_in, (None, CostSource::None))]
    {
        let world = showing(list(&[deployment]), "").await;
        assert_eq!(cost(&record(&world, 1).await), expected);
    }
}

#[tokio::test]
async fn a_bad_answer_changes_no_price() {
    let world = showing(usual(), "").await;
    let many = list(&vec![deployment(MODEL, &json!(9), &json!(9)); 10_001]);
    let large = format!(r#"{{"data":[],"x":"{}"}}"#, "x".repeat(33 << 20));
    let answers = BTreeMap::from([
        (" a text", (StatusCode::OK, "prices".to_owned())),
        ("another form", (StatusCode::OK, r#"{"data":{}}"#.to_owned())),
        ("a deployment without a name", (StatusCode::OK, r#"{"data":[{"model_info":{}}]}"#.to_owned())),
        ("deep", (StatusCode::OK, "[".repeat(1 << 20))),
        ("many", (StatusCode::OK, many)),
        ("large", (StatusCode::OK, large)),
        ("not found", (StatusCode::NOT_FOUND, usual())),
        ("broken", (StatusCode::INTERNAL_SERVER_ERROR, usual())),
    ]);
    for (count, (name, (status, body))) in (1..).zip(answers) {
        world.upstream.show_model_info(StatusCode::OK, usual());
        reload(&world).await;
        until(&world, ShownPrices::Read).await;
        world.upstream.show_model_info(status, body);
        reload(&world).await;
        let state = if status == StatusCode::NOT_FOUND { ShownPrices::Refused } else { ShownPrices::Failed };
        until(&world, state).await;
        assert_eq!(cost(&record(&world, count).await), (Some(COST), CostSource::Priced), "{name}");
    }
    let dearer = list(&[deployment(MODEL, &json!(2e-6), &json!(4e-6))]);
    world.upstream.show_model_info(StatusCode::OK, dearer);
    reload(&world).await;
    until(&world, ShownPrices::Read).await;
    assert_eq!(cost(&record(&world, 9).await).0, Some(2 * COST), "the control: a good one does");
    world.reconfigure("model_info = true", "model_info = false");
    reload(&world).await;
    until(&world, ShownPrices::Off).await;
    assert_eq!(cost(&record(&world, 10).await).0, None, "and none is left when they are turned off");
}

/// An upstream that is not LiteLLM has no such path: that is not an error.
#[tokio::test]
async fn an_upstream_without_prices_is_no_error() {
    let world = World::start().await;
    turn_on(&world).await;
    until(&world, ShownPrices::Refused).await;
    for _ in 0..3 {
        reload(&world).await;
    }
    assert_eq!(world.run("r1", "acct-1").await.agent.chat("fake").await.status, StatusCode::OK);
    let log = world.log();
    assert_eq!(log.matches("the upstream shows no prices").count(), 1, "{log}");
    assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");
}
