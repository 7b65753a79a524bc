//! Tests that prices come from LiteLLM's `/model/info`, where `[prices]` has none.

use harness::{Models, World, agent::Answering, eventually, grant};
use http::{Method, StatusCode};
use platform_core::{
    budget::Budget,
    control::ShownPrices,
    grant::RunGrant,
    money::NanoDollars,
    record::{CostSource, ExchangeRecord, TokensSource},
};

use crate::{streams::PROMPT, world_with_litellm};

const PATH: &str = "/v1/messages";
/// Kinds of models, with the billionths of a dollar that a token of a prompt costs, one from a cache, and one of an
/// answer. The first are by the configuration of LiteLLM here, the second by its own list.
const PRICED: [(Models, [u64; 3]); 2] =
    [(Models::Unknown, [1000, 1000, 2000]), (Models::Anthropic, [3000, 300, 15_000])];

/// Streams a message, and returns its record, the latest of `count`.
async fn record(world: &World, models: Models, count: usize) -> ExchangeRecord {
    let run = world.run(&format!("r{count}"), "acct-1").await;
    let body = models.saying(PATH, "fake", Answering::Streamed, PROMPT).unwrap();
    let answer = run.agent.post(PATH, &body).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    world.records(count).await.pop().unwrap().record
}

#[tokio::test]
async fn litellm_shows_prices_of_streamed_messages() {
    let (world, _litellm) = world_with_litellm().await;
    for (count, (models, _)) in (1..).zip(PRICED) {
        let record = record(&world, models, count).await;
        assert_eq!(record.cost_source, CostSource::None, "the control: {record:?}");
    }
    world.reconfigure("model_info = false", "model_info = true");
    let reloaded = world.control.send(Method::POST, "/v1/reload", String::new()).await;
    assert_eq!(reloaded.status, StatusCode::OK, "{}", reloaded.text());
    let state = || async { world.control.health().await.unwrap().upstream_prices };
    eventually("LiteLLM's prices are read", state, |state| *state == ShownPrices::Read).await;
    for (count, (models, [input, cached, output])) in (3..).zip(PRICED) {
        let record = record(&world, models, count).await;
        let tokens = record.tokens;
        let cost = (tokens.input - tokens.cached) * input + tokens.cached * cached + tokens.output * output;
        assert!(cost > 0 && record.tokens_source == TokensSource::Exact, "{record:?}");
        assert_eq!(
            (record.cost_nanodollars, record.cost_source),
            (Some(NanoDollars(cost)), CostSource::Priced),
            "{record:?}"
        );
    }
    let budget = Budget { cost_nanodollars: Some(NanoDollars(1_000_000_000)), ..Budget::default() };
    let capped = world.run_with(RunGrant { budget, ..grant("capped", "acct-1") }).await;
    assert_eq!(capped.agent.chat("fake").await.status, StatusCode::OK);
    // LiteLLM routes this name by a pattern, and shows no price of it.
    let refused = capped.agent.chat("fake-words3").await;
    assert_eq!(refused.json()["error"]["code"], "model_unpriced", "{}", refused.text());
}
