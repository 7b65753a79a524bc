//! Tests that no cost is believed without a check: what the upstream reports may be a part, or nothing.

use harness::{
    Run, World,
    agent::{Answering, body_for, saying},
    grant,
};
use http::Method;
use platform_core::{
    budget::{Budget, Limit},
    capability::Capability,
    grant::RunGrant,
    money::NanoDollars,
    record::{CostSource, ExchangeRecord},
};

const CHAT: &str = "/v1/chat/completions";
const DOLLAR: u64 = 1_000_000_000;
/// The upstream's own prices: a million tokens of prompts cost one dollar, and of answers two.
const PRICES: &str = "[prices.'*']\ninput = '1'\noutput = '2'\n";
/// Price of a call of `MODEL`.
const COST: u64 = 1_012_000_000;
const MODEL: &str = "fake-usage1000000x6000-cost";

async fn run(world: &World, name: &str, dollars: u64) -> Run {
    let budget = Budget { cost_nanodollars: Some(NanoDollars(dollars * DOLLAR)), ..Budget::default() };
    world.run_with(RunGrant { budget, ..grant(name, "acct-1") }).await
}

/// Calls `model` until the limit refuses. Returns the number of calls that passed, 20 at most.
async fn calls_until_refused(run: &Run, path: &str, model: &str, answering: Answering) -> u64 {
    for passed in 0..20 {
        if run.agent.post(path, &body_for(path, model, answering)).await.status != 200 {
            return passed;
        }
    }
    20
}

async fn used(world: &World, run: &Run) -> u64 {
    let view = world.control.run(&run.grant.run_id).await.unwrap();
    view.limits.into_iter().find(|view| view.limit == Limit::CostNanodollars).unwrap().used
}

/// LiteLLM tells the cost of a streamed message by its last event, here the answer's without the prompt's: a 84th part.
#[tokio::test]
async fn a_streamed_message_cannot_hide_its_cost() {
    let world = World::with(PRICES).await;
    let table = [
        ("/v1/messages", MODEL, Answering::Streamed),
        // The controls: a whole answer tells all of it, and another tells nothing.
        ("/v1/messages", MODEL, Answering::Whole),
        ("/v1/messages", "fake-usage1000000x6000", Answering::Streamed),
        (CHAT, MODEL, Answering::Streamed),
    ];
    for (number, (path, model, answering)) in table.into_iter().enumerate() {
        let run = run(&world, &format!("r{number}"), 5).await;
        let passed = calls_until_refused(&run, path, model, answering).await;
        assert_eq!((passed, used(&world, &run).await), (5, 5 * COST), "{path} {model} {answering:?}");
    }
}

/// Returns the record of one call of `model`.
async fn record(world: &World, model: &str, count: usize) -> ExchangeRecord {
    let run = world.run(&format!("r{count}"), "acct-1").await;
    assert_eq!(run.agent.chat(model).await.status, 200);
    world.records(count).await.pop().unwrap().record
}

#[tokio::test]
async fn a_contradicted_cost_is_unconfirmed() {
    for (factor, expected) in [(1, CostSource::Upstream), (3, CostSource::Unconfirmed)] {
        let world =
            World::with(&format!("[prices.'*']\ninput = '{factor}'\noutput = '{}'\n", factor * 2)).await;
        let record = record(&world, MODEL, 1).await;
        assert_eq!(
            (record.cost_nanodollars, record.cost_source),
            (Some(NanoDollars(COST * factor)), expected),
            "{factor}"
        );
        let metrics = world.control.send(Method::GET, "/v1/metrics", String::new()).await.text();
        let counted = format!("cost=\"{}\"}} 1\n", expected.word());
        assert!(metrics.contains(&counted), "{counted}: {metrics}");
    }
}

/// LiteLLM reports a cost of zero for a model that it does not know.
#[tokio::test]
async fn a_report_of_nothing_is_no_price() {
    let unknown = World::start().await;
    let told = record(&unknown, "fake-free", 1).await;
    assert_eq!((told.cost_nanodollars, told.cost_source), (None, CostSource::None));
    let usage = unknown.control.run(&told.run_id).await.unwrap().usage;
    assert_eq!(usage.inexact.unpriced, 1);
    // The control: a table that says so.
    let free = World::with("[prices.'*']\ninput = '0'\noutput = '0'\n").await;
    let told = record(&free, "fake-free", 1).await;
    assert_eq!((told.cost_nanodollars, told.cost_source), (Some(NanoDollars(0)), CostSource::Priced));
}

#[tokio::test]
async fn a_dearer_tier_costs_its_own_price() {
    let tiers = "[prices.'*'.long_prompt]\nabove = 200000\ninput = '2'\noutput = '3'\n\
        [prices.'*'.premium]\ninput = '1'\noutput = '9'\n";
    let world = World::with(&format!("{PRICES}{tiers}")).await;
    let capabilities = [Capability::PremiumService].into_iter().collect();
    let run = world.run_with(RunGrant { capabilities, ..grant("r1", "acct-1") }).await;
    let table = [
        ("fake-usage200000x1000", "default", 200_000 * 1000 + 1000 * 2000),
        ("fake-usage200001x1000", "default", 200_001 * 2000 + 1000 * 3000),
        ("fake-usage200000x1000", "priority", 200_000 * 1000 + 1000 * 9000),
        ("fake-usage200001x1000", "priority", 200_001 * 2000 + 1000 * 9000),
    ];
    for (calls, (model, tier, cost)) in (1..).zip(table) {
        let mut body = body_for(CHAT, model, Answering::Whole);
        body["service_tier"] = tier.into();
        assert_eq!(run.agent.post(CHAT, &body).await.status, 200);
        let record = world.records(calls).await.pop().unwrap().record;
        assert_eq!(record.cost_nanodollars, Some(NanoDollars(cost)), "{model} {tier}");
    }
}

/// A prompt that may be long is reserved at the price of a long one.
#[tokio::test]
async fn a_long_prompt_is_reserved_at_its_price() {
    let tier = "[prices.'*'.long_prompt]\nabove = 8000\ninput = '1000'\noutput = '2'\n";
    for (tier, status) in [(tier, 400), ("", 200)] {
        let world = World::with(&format!("{PRICES}{tier}")).await;
        let run = run(&world, "r1", 1).await;
        let long = saying(CHAT, "fake", Answering::Whole, &"word ".repeat(2000));
        assert_eq!(run.agent.post(CHAT, &long).await.status, status, "{tier}");
        assert_eq!(run.agent.chat("fake").await.status, 200, "the control: a short prompt");
    }
}
