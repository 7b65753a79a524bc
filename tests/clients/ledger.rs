//! Tests `platform/litellm`, the configuration of LiteLLM that operators use, with LiteLLM's own database. Its ledger has
//! each call with its account and run, and nothing that a client sends changes that.

use std::collections::BTreeMap;

use bench::upstream::ScriptedUpstream;
use harness::{LiteLlm, Run, World, grant};
use http::StatusCode;
use platform_core::{grant::RunGrant, record::CostSource, route::Route};
use serde_json::{Value, json};

use crate::correlation;

const MASTER_KEY: &str = "sk-master-of-this-test";
const MARKER: &str = "a-sentence-of-the-prompt";

#[tokio::test]
async fn litellms_ledger_has_each_call() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let litellm = LiteLlm::with_database(&upstream, MASTER_KEY).await;
    let world = world_with_minted_key(upstream, &litellm).await;
    let one = correlated_run(&world).await;
    let other = world.run("r2", "acct-2").await;
    make_calls(&one, &other).await;
    agrees_with_the_journal(&world, &litellm).await;
    let foreign = litellm.spend_logs("acct-2", 1).await;
    assert_eq!((foreign.len(), &foreign[0]["session_id"]), (1, &json!("r2")), "{foreign:?}");

    fails_once_and_closes_nothing(&world, &litellm, &other).await;
    logs_what_asks_not_to_be(&litellm).await;
    keeps_no_words(&litellm);
}

/// Starts a world that uses a key which `mint-key.sh` made, and checks what the key is good for.
async fn world_with_minted_key(upstream: ScriptedUpstream, litellm: &LiteLlm) -> World {
    let mut world = World::in_front_of(upstream, &litellm.base_url, "").await;
    let file = world.path().join("minted");
    litellm.mint_key(&file).await;
    let key = std::fs::read_to_string(&file).unwrap();
    assert!(world.stop_proxy().await);
    let root = world.path().display().to_string();
    world.reconfigure(&format!("'{root}/key'"), &format!("'{root}/minted'"));
    world.start_proxy().await;

    let agent = litellm.agent.clone().with_header("authorization", &format!("Bearer {key}"));
    let refused = agent.get("/key/list").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text());
    assert_eq!(litellm.operator.get("/key/list").await.status, StatusCode::OK, "control: the master key");
    for path in Route::ALL.into_iter().filter_map(Route::upstream_path) {
        assert!(refused.text().contains(&format!("'{path}'")), "{path} is missing: {}", refused.text());
    }
    assert_eq!(agent.get("/model/info").await.status, StatusCode::OK, "it may read the prices of models");
    world
}

async fn correlated_run(world: &World) -> Run {
    world.run_with(RunGrant { correlation: correlation(), ..grant("r1", "acct-1") }).await
}

async fn make_calls(one: &Run, other: &Run) {
    let body = json!({ "model": "fake", "messages": [{ "role": "user", "content": MARKER }] });
    assert_eq!(one.agent.post("/v1/chat/completions", &body).await.status, StatusCode::OK);
    let streamed = one.agent.stream("fake-words50").await.whole().await.unwrap();
    assert_eq!(streamed.status, StatusCode::OK);
    assert_eq!(other.agent.chat("fake").await.status, StatusCode::OK);
}

/// Checks LiteLLM's rows and its callback's records of the first account against the journal.
async fn agrees_with_the_journal(world: &World, litellm: &LiteLlm) {
    let rows = litellm.spend_logs("acct-1", 2).await;
    let rows: BTreeMap<_, _> =
        rows.iter().map(|row| (row["litellm_call_id"].as_str().unwrap(), row)).collect();
    let journal = world.records(3).await;
    let ours: Vec<_> = journal.iter().filter(|line| line.record.account.as_str() == "acct-1").collect();
    assert_eq!((rows.len(), ours.len()), (2, 2), "{rows:?}");
    for line in ours {
        let record = &line.record;
        let call = record.litellm_call_id.to_string();
        let row = rows[call.as_str()];
        assert_eq!((&row["end_user"], &row["session_id"]), (&json!("acct-1"), &json!("r1")), "{row}");
        let metadata = json!({
            "run_id": "r1", "attempt": 0, "graph_id": "sandbox:agent", "call_id": call, "user_id": "user-1",
            "session_id": "session-1", "existing_trace_id": "trace-1", "trace_user_id": "trace-user-1",
        });
        assert_eq!(row["metadata"]["spend_logs_metadata"], metadata, "{row}");
        assert_eq!(litellm.record_of(&call).await["spend_logs_metadata"], metadata);
        assert_eq!(row["completion_tokens"], record.tokens.output, "{row}\n{record:?}");
        assert_eq!(record.cost_source, CostSource::Upstream, "streams tell their cost, too: {record:?}");
        assert_eq!(
            nanodollars(&row["spend"]),
            record.cost_nanodollars.map(|cost| cost.0),
            "{row}\n{record:?}"
        );
    }
}

/// Returns the amount that a row has in dollars.
pub(crate) fn nanodollars(spend: &Value) -> Option<u64> {
    platform_core::money::NanoDollars::parse_dollars(&spend.to_string()).map(|cost| cost.0)
}

/// Checks that LiteLLM asks a failing provider once for each call, and goes on asking it.
async fn fails_once_and_closes_nothing(world: &World, litellm: &LiteLlm, run: &Run) {
    const CALLS: usize = 5;
    let before = world.upstream.ledger().all().len();
    for _ in 0..CALLS {
        let failed = run.agent.chat("fake-status500").await;
        assert_eq!(failed.status, StatusCode::INTERNAL_SERVER_ERROR, "no cooldown: {}", failed.text());
    }
    assert_eq!(world.upstream.ledger().all().len() - before, CALLS, "no retries");
    let failed = litellm.records().into_iter().filter(|record| record["event"] == "failure").count();
    assert_eq!(failed, CALLS);
}

/// Checks that a client of LiteLLM cannot keep a call out of the ledger.
async fn logs_what_asks_not_to_be(litellm: &LiteLlm) {
    let body = json!({
        "model": "fake", "messages": [{ "role": "user", "content": "x" }], "user": "acct-3", "no-log": true,
    });
    assert_eq!(litellm.operator.post("/v1/chat/completions", &body).await.status, StatusCode::OK);
    assert_eq!(litellm.spend_logs("acct-3", 1).await.len(), 1);
}

/// Checks that LiteLLM's database has the calls, and not what was said in them.
fn keeps_no_words(litellm: &LiteLlm) {
    let stored = litellm.stored_calls();
    assert!(stored.contains("trace-user-1"), "control: {stored}");
    assert!(!stored.contains(MARKER), "{stored}");
}
