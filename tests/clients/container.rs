//! Tests the whole path with only the model scripted: container, socket, proxy, LiteLLM.

use harness::LiteLlm;
use platform_core::record::{ExchangeRecord, Outcome};
use serde_json::{Value, json};

use crate::world_with_litellm;

#[tokio::test]
async fn a_sealed_agent_is_answered_by_litellm() {
    let (world, litellm) = world_with_litellm().await;
    let outcome = world
        .sluice()
        .run(&[
            "run",
            "--json",
            "--account",
            "acct-1",
            "--user",
            "u1",
            "--run-id",
            "r1",
            "--model",
            "fake",
            "Hello?",
        ])
        .await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stdout.contains("lovely day"), "{outcome:?}");

    let record = world.records(1).await.pop().unwrap().record;
    assert_eq!(
        (record.run_id.as_str(), record.account.as_str(), record.outcome),
        ("r1", "acct-1", Outcome::Complete)
    );
    assert_recorded_alike(&litellm, &record).await;
    world.assert_nothing_left().await;
}

async fn assert_recorded_alike(litellm: &LiteLlm, record: &ExchangeRecord) {
    let theirs: Value = litellm.record_of(&record.litellm_call_id.to_string()).await;
    let metadata = json!({ "run_id": "r1", "attempt": 0, "graph_id": "sandbox:agent", "user_id": "u1",
        "call_id": record.litellm_call_id });
    assert_eq!((&theirs["end_user"], &theirs["spend_logs_metadata"]), (&json!("acct-1"), &metadata));
    assert_eq!(theirs["completion_tokens"], record.tokens.output, "{theirs}");
}

#[tokio::test]
async fn doctor_names_the_version_of_litellm() {
    let (world, _litellm) = world_with_litellm().await;
    let outcome = world.sluice().run(&["doctor", "--json"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stdout.contains("LiteLLM 1.106.2"), "{outcome:?}");
}
