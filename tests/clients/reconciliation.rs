//! Tests reconciliation with the real LiteLLM and its database. Streams of Anthropic's dialect tell no cost here, so that
//! their receipts are estimates, or have no amount at all. They come to LiteLLM's spend.

use std::{collections::BTreeMap, time::Duration};

use bench::upstream::ScriptedUpstream;
use harness::{
    CANARY_KEY, LiteLlm, Models, Run, Up, World,
    agent::Answering,
    billing::{charged, counts, reconcile},
    eventually::eventually_within,
};
use http::StatusCode;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{ledger::nanodollars, streams::PROMPT};

/// LiteLLM writes its rows in batches, and a call without one is looked for again.
const PATIENCE: Duration = Duration::from_secs(60);
/// A price that LiteLLM does not share, for one of the models: the other has none.
const BILLING: &str =
    "[billing]\nledger_delay = '1s'\n[prices.fake-words10]\ninput = '700'\noutput = '900'\n";
/// Streams of each model.
const STREAMS: usize = 2;

#[tokio::test]
async fn receipts_come_to_litellms_spend() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let litellm = LiteLlm::with_silent_streams(&upstream, CANARY_KEY).await;
    let mut world = World::in_front_of(upstream, &litellm.base_url, BILLING).await;
    assert!(world.stop_proxy().await);
    let up = Up::start(world.sluice()).await;
    let run = world.run("r1", "acct-1").await;
    make_calls(&run).await;
    let calls = 2 * STREAMS + 1;
    let charges = || charged(&world);
    let estimates = eventually_within(PATIENCE, "receipts come", charges, |all| all.len() == calls).await;
    let spent = spent(&litellm, calls).await;
    let wrong = spent.iter().filter(|(call, spent)| estimates[*call] != **spent).count();
    assert_eq!(wrong, 2 * STREAMS, "control: only the cost of the call that was not a stream is known");

    let agreed = BTreeMap::from([("agreed".to_owned(), 1), ("corrected".to_owned(), 2 * STREAMS as u64)]);
    let report = reconcile_until(&world, &agreed).await;
    assert_eq!(report.0, Some(0), "{}", report.1);
    assert_eq!(charged(&world).await, spent);
    reports_a_foreign_row(&world, &litellm, agreed).await;
    assert_eq!(charged(&world).await, spent, "a foreign row costs no account anything");

    world.control.close(&run.grant.run_id, 0).await.unwrap();
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

/// Streams answers of a model that is priced and of one that is not, and asks for one whole answer.
async fn make_calls(run: &Run) {
    let path = "/v1/messages";
    for models in [Models::Unknown, Models::Anthropic] {
        for _ in 0..STREAMS {
            let body = models.saying(path, "fake-words10", Answering::Streamed, PROMPT).unwrap();
            let answer = run.agent.post(path, &body).await;
            assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        }
    }
    assert_eq!(run.agent.chat("fake").await.status, StatusCode::OK);
}

/// Returns what each call has cost according to LiteLLM, in nano-dollars, once it has `calls` rows.
async fn spent(litellm: &LiteLlm, calls: usize) -> BTreeMap<String, i64> {
    let rows = litellm.spend_logs("acct-1", calls).await;
    let spent = rows.iter().map(|row| {
        let spend = nanodollars(&row["spend"]).unwrap().cast_signed();
        assert!(spend > 0, "control: LiteLLM knows a price: {row}");
        (row["litellm_call_id"].as_str().unwrap().to_owned(), spend)
    });
    spent.collect()
}

/// Reconciles until these outcomes are found; returns the exit code and the report.
async fn reconcile_until(world: &World, expected: &BTreeMap<String, u64>) -> (Option<i32>, Value) {
    let is_found = |(_, report): &(_, Value)| counts(report) == *expected;
    eventually_within(PATIENCE, "the outcomes are found", || reconcile(world), is_found).await
}

/// Checks that a call which another client made with the same key is reported.
async fn reports_a_foreign_row(world: &World, litellm: &LiteLlm, mut expected: BTreeMap<String, u64>) {
    let body = json!({
        "model": "fake", "messages": [{ "role": "user", "content": "x" }], "user": "acct-other",
    });
    assert_eq!(litellm.operator.post("/v1/chat/completions", &body).await.status, StatusCode::OK);
    let row = litellm.spend_logs("acct-other", 1).await.remove(0);
    expected.insert("foreign".to_owned(), 1);
    let (code, report) = reconcile_until(world, &expected).await;
    assert_eq!(code, Some(1), "{report}");
    let differences = report["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 1, "{report}");
    assert_eq!(
        (&differences[0]["outcome"], &differences[0]["request_id"]),
        (&json!("foreign"), &row["request_id"])
    );
}
