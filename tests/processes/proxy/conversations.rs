//! Tests the routes below `/v1/responses`, which count the tokens of a conversation and shorten it.

use harness::{World, agent::Answering, agent::saying, grant};
use platform_core::{
    budget::Budget,
    grant::{CallLimits, RunGrant},
    record::{Outcome, TokensSource},
    refusal::Refusal,
    route::Route,
};
use serde_json::json;

const COUNT: &str = "/v1/responses/input_tokens";
const COMPACT: &str = "/v1/responses/compact";
/// Tokens that a compaction reserves.
const LONGEST_COMPACTION: u64 = 128_000;

#[tokio::test]
async fn a_count_of_tokens_uses_none() {
    let world = World::start().await;
    let budget = Budget { total_tokens: Some(1), ..Budget::default() };
    let run = world.run_with(RunGrant { budget, ..grant("r1", "acct-1") }).await;
    let answer = run.agent.post(COUNT, &saying(COUNT, "fake", Answering::Whole, "Say hello to all.")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json(), json!({ "object": "response.input_tokens", "input_tokens": 5 }));
    let seen = world.upstream.ledger().last().unwrap();
    assert_eq!((seen.path.as_str(), seen.json().unwrap().get("store")), (COUNT, None));
    let record = world.records(1).await.pop().unwrap().record;
    assert_eq!((record.route, record.outcome), (Route::InputTokens, Outcome::Complete));
    assert_eq!((record.tokens_source, record.tokens.input), (TokensSource::None, 0));
}

#[tokio::test]
async fn a_compaction_is_metered_like_an_answer() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let body = saying(COMPACT, "fake-words20-cost", Answering::Whole, "A long conversation");
    let answer = run.agent.post(COMPACT, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["object"], "response.compaction");
    // The API has no field that limits a compaction, none that streams it and none that keeps it.
    let seen = world.upstream.ledger().last().unwrap();
    assert_eq!((seen.path.as_str(), seen.json().unwrap()), (COMPACT, body));
    let record = world.records(1).await.pop().unwrap().record;
    assert_eq!((record.route, record.tokens_source), (Route::Compact, TokensSource::Exact));
    assert_eq!((record.tokens.output, record.stream), (20, false));
    assert!(record.cost_nanodollars.is_some());
}

/// An answer is cut to what is left of a limit; a compaction cannot be, and may be longer than other answers.
#[tokio::test]
async fn a_compaction_needs_all_that_it_may_use() {
    let world = World::start().await;
    assert!(CallLimits::default().output_tokens < LONGEST_COMPACTION, "the control");
    let budget = Budget { output_tokens: Some(LONGEST_COMPACTION), ..Budget::default() };
    let run = world.run_with(RunGrant { budget, ..grant("r1", "acct-1") }).await;
    let ask = |path: &'static str| saying(path, "fake-words20", Answering::Whole, "Hi");
    let mut said = Vec::new();
    for (path, expected) in [(COMPACT, 200), (COMPACT, 400), ("/v1/responses", 200)] {
        let answer = run.agent.post(path, &ask(path)).await;
        assert_eq!(answer.status, expected, "{path}: {}", answer.text());
        said.push(answer.json()["error"]["message"].clone());
    }
    let left = "this call may need 128000 of the limit of output tokens of this run, and 127980 is left";
    assert_eq!(said[1], left);
    let records: Vec<_> = world.records(3).await.into_iter().map(|line| line.record).collect();
    let refusals: Vec<_> = records.iter().map(|record| record.refusal).collect();
    assert_eq!(refusals, [None, Some(Refusal::QuotaExhausted), None]);
    assert_eq!(records[1].rule.as_ref().map(ToString::to_string).as_deref(), Some("run.output_tokens"));
}

/// LiteLLM has these routes for some providers only.
#[tokio::test]
async fn a_404_of_the_upstream_is_the_clients() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let answer = run.agent.post(COMPACT, &saying(COMPACT, "fake-status404", Answering::Whole, "Hi")).await;
    assert_eq!(answer.status, 404);
    let error = answer.json()["error"].clone();
    assert_eq!(error["message"], "The script wants this status.", "{error}");
    let record = world.records(1).await.pop().unwrap().record;
    assert_eq!((record.status, record.outcome, record.refusal), (404, Outcome::Complete, None));
    // Control: a route that Sluicegate itself does not have.
    let own = run.agent.post("/v1/responses/other", &json!({})).await;
    assert_eq!((own.status.as_u16(), &own.json()["error"]["code"]), (404, &json!("route_unknown")));
}
