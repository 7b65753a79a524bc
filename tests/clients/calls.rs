//! Tests that LiteLLM and Sluicegate account for a call alike: the same call, the same payer, the same figures.

use std::collections::BTreeSet;

use harness::{CANARY_KEY, LiteLlm, Models, Run, World, agent::Answering, grant};
use platform_core::{
    grant::RunGrant,
    money::NanoDollars,
    record::{CostSource, ExchangeRecord, Outcome, TokensSource},
};
use serde_json::{Value, json};

use crate::{correlation, streams::PROMPT, world_with_litellm};

struct Call {
    path: &'static str,
    model: &'static str,
    answering: Answering,
}

const fn whole(path: &'static str, model: &'static str) -> Call {
    Call { path, model, answering: Answering::Whole }
}

const fn streamed(path: &'static str, model: &'static str) -> Call {
    Call { path, model, answering: Answering::Streamed }
}

/// Calls on every route. They share models, because LiteLLM 1.106.2 treats the first call of a wildcard deployment on
/// some routes as free.
const CALLS: [Call; 9] = [
    whole("/v1/chat/completions", "fake"),
    streamed("/v1/chat/completions", "fake-words50"),
    whole("/v1/completions", "fake-words5"),
    streamed("/v1/completions", "fake-words5"),
    whole("/v1/responses", "fake"),
    streamed("/v1/responses", "fake"),
    whole("/v1/messages", "fake"),
    streamed("/v1/messages", "fake"),
    whole("/v1/embeddings", "fake"),
];

async fn run(world: &World) -> Run {
    world.run_with(RunGrant { attempt: 1, correlation: correlation(), ..grant("r1", "acct-1") }).await
}

/// Returns the newest record, and LiteLLM's record of the same call.
async fn both_records(world: &World, litellm: &LiteLlm, count: usize) -> (ExchangeRecord, Value) {
    let ours = world.records(count).await.pop().unwrap().record;
    let theirs = litellm.record_of(&ours.litellm_call_id.to_string()).await;
    (ours, theirs)
}

#[tokio::test]
async fn litellm_and_the_journal_agree() {
    let (world, litellm) = world_with_litellm().await;
    let run = run(&world).await;
    let calls = Models::ALL.into_iter().flat_map(|models| CALLS.iter().map(move |call| (models, call)));
    let mut made = 0;
    for (models, call) in calls {
        let Call { path, model, answering } = call;
        let Some(body) = models.saying(path, model, *answering, PROMPT) else { continue };
        let answer = run.agent.post(path, &body).await;
        assert_eq!(answer.status, 200, "{models:?} {path}: {}", answer.text());
        made += 1;
        let (ours, theirs) = both_records(&world, &litellm, made).await;
        assert_eq!(
            (&theirs["end_user"], &theirs["trace_id"], &theirs["status"]),
            (&json!("acct-1"), &json!("r1"), &json!("success")),
            "{theirs}"
        );
        let metadata = json!({
            "run_id": "r1", "attempt": 1, "graph_id": "sandbox:agent", "call_id": ours.litellm_call_id,
            "user_id": "user-1", "session_id": "session-1", "existing_trace_id": "trace-1",
            "trace_user_id": "trace-user-1",
        });
        assert_eq!(theirs["spend_logs_metadata"], metadata, "{models:?} {path} {answering:?}");
        assert_same_figures(call, &ours, &theirs);
    }
}

fn assert_same_figures(call: &Call, ours: &ExchangeRecord, theirs: &Value) {
    assert_eq!((ours.outcome, ours.tokens_source), (Outcome::Complete, TokensSource::Exact), "{theirs}");
    assert_eq!(theirs["prompt_tokens"], ours.tokens.input, "{ours:?}\n{theirs}");
    assert_eq!(theirs["completion_tokens"], ours.tokens.output, "{ours:?}\n{theirs}");
    let detail = |group: &str, name: &str| theirs["usage"][group][name].as_u64().unwrap_or(0);
    assert_eq!(detail("prompt_tokens_details", "cached_tokens"), ours.tokens.cached, "{ours:?}\n{theirs}");
    // Anthropic's API has no field for reasoning tokens, so LiteLLM cannot report them there.
    let reasoning = match call.path {
        "/v1/messages" => 0,
        _ => detail("completion_tokens_details", "reasoning_tokens"),
    };
    assert_eq!(reasoning, ours.tokens.reasoning, "{ours:?}\n{theirs}");
    let cost = NanoDollars::parse_dollars(&theirs["response_cost"].to_string());
    assert!(cost.is_some_and(|cost| cost.0 > 0), "{theirs}");
    let expected = match (call.path, call.answering) {
        // LiteLLM's figure is of the stream's last event, and is not used.
        ("/v1/messages", Answering::Streamed) => (None, CostSource::None),
        _ => (cost, CostSource::Upstream),
    };
    assert_eq!((ours.cost_nanodollars, ours.cost_source), expected, "{ours:?}\n{theirs}");
}

#[tokio::test]
async fn an_agent_cannot_bill_another_in_litellm() {
    let (world, litellm) = world_with_litellm().await;
    let run = run(&world).await;
    let claims = [
        ("x-litellm-customer-id", "victim"),
        ("x-litellm-end-user-id", "victim"),
        ("x-litellm-call-id", "victim-call"),
        ("x-litellm-tags", "victim-tag"),
        ("x-litellm-spend-logs-metadata", "{\"run_id\":\"victim\"}"),
    ];
    let claiming = |agent: &harness::Agent| {
        claims.iter().fold(agent.clone(), |agent, (name, value)| agent.with_header(name, value))
    };
    assert_eq!(claiming(&run.agent).chat("fake").await.status, 200);
    let (_, theirs) = both_records(&world, &litellm, 1).await;
    assert_eq!(
        (&theirs["end_user"], &theirs["spend_logs_metadata"]["run_id"]),
        (&json!("acct-1"), &json!("r1"))
    );
    assert!(!theirs.to_string().contains("victim"), "{theirs}");

    // The control: LiteLLM itself believes every claim.
    let direct = claiming(&litellm.agent).with_header("authorization", &format!("Bearer {CANARY_KEY}"));
    let answer = direct.chat("fake").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let theirs = litellm.record_of("victim-call").await;
    assert_eq!(
        (&theirs["end_user"], &theirs["spend_logs_metadata"]["run_id"]),
        (&json!("victim"), &json!("victim"))
    );
    assert!(theirs["request_tags"].to_string().contains("victim-tag"), "{theirs}");

    assert_only_harmless_headers(&world, &run, &answer).await;
}

/// Checks that no header by which LiteLLM describes itself or its other tenants reaches the agent.
async fn assert_only_harmless_headers(world: &World, run: &Run, direct: &harness::Answer) {
    for name in
        ["x-litellm-model-api-base", "x-litellm-version", "x-litellm-key-spend", "x-litellm-response-cost"]
    {
        assert!(direct.headers.contains_key(name), "LiteLLM says {name}: {:?}", direct.headers);
    }
    let harmless = BTreeSet::from([
        "cache-control",
        "content-length",
        "content-type",
        "date",
        "request-id",
        "transfer-encoding",
        "x-litellm-call-id",
    ]);
    let whole = run.agent.chat("fake").await;
    let streamed = run.agent.stream("fake").await.whole().await.unwrap();
    for headers in [whole.headers, streamed.headers] {
        let strange: Vec<_> = headers.keys().filter(|name| !harmless.contains(name.as_str())).collect();
        assert!(strange.is_empty(), "{strange:?}");
    }
    assert_eq!(world.records(3).await.len(), 3);
}
