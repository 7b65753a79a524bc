//! Tests what LiteLLM's own ledger, its spend logs in Postgres, has of the calls that passed Sluicegate.

use std::collections::BTreeMap;

use bench::upstream::ScriptedUpstream;
use harness::{CANARY_KEY, LiteLlm, World};
use http::StatusCode;
use serde_json::{Value, json};

#[tokio::test]
async fn calls_appear_in_litellms_spend_logs() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let litellm = LiteLlm::with_database(&upstream, CANARY_KEY).await;
    let world = World::in_front_of(upstream, &litellm.base_url, "").await;
    let [one, other] = [world.run("r1", "acct-1").await, world.run("r2", "acct-2").await];
    assert_eq!(one.agent.chat("fake").await.status, StatusCode::OK);
    let streamed = one.agent.stream("fake-words50").await.whole().await.unwrap();
    assert_eq!(streamed.status, StatusCode::OK);
    assert_eq!(one.agent.chat("fake-status500").await.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(other.agent.chat("fake").await.status, StatusCode::OK);

    let rows = litellm.spend_logs("acct-1", 3).await;
    let rows: BTreeMap<_, _> = rows.iter().map(|row| (text(&row["litellm_call_id"]), row)).collect();
    let journal = world.records(4).await;
    let ours: Vec<_> = journal.iter().filter(|line| line.record.account.as_str() == "acct-1").collect();
    assert_eq!((rows.len(), ours.len()), (3, 3), "{rows:?}");
    for line in ours {
        let record = &line.record;
        let row = rows[record.litellm_call_id.to_string().as_str()];
        assert_eq!((&row["end_user"], &row["session_id"]), (&json!("acct-1"), &json!("r1")), "{row}");
        let metadata = json!({
            "run_id": "r1", "attempt": 0, "graph_id": "sandbox:agent", "call_id": record.litellm_call_id,
        });
        assert_eq!(row["metadata"]["spend_logs_metadata"], metadata, "{row}");
        assert_eq!(row["completion_tokens"], record.tokens.output, "{row}\n{record:?}");
        let cost = record.cost_nanodollars.map_or(0, |cost| cost.0);
        assert_eq!((row["spend"].as_f64().unwrap() * 1e9).round(), cost as f64, "{row}\n{record:?}");
    }
    let foreign = litellm.spend_logs("acct-2", 1).await;
    assert_eq!((foreign.len(), &foreign[0]["session_id"]), (1, &json!("r2")), "{foreign:?}");
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}
