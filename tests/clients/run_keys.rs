//! Tests keys of runs with the real LiteLLM and its database.

use bench::upstream::ScriptedUpstream;
use harness::{LiteLlm, World, eventually, grant, private_file};
use http::StatusCode;
use platform_core::{budget::Budget, grant::RunGrant, money::NanoDollars};
use serde_json::{Value, json};

const MASTER_KEY: &str = "sk-master-of-this-test";

/// Returns the keys of runs that LiteLLM has.
async fn run_keys(litellm: &LiteLlm) -> Vec<Value> {
    let listed = litellm.operator.get("/key/list?return_full_object=true&size=100").await;
    assert_eq!(listed.status, StatusCode::OK, "{}", listed.text());
    let mut keys = listed.json()["keys"].as_array().unwrap().clone();
    keys.retain(|key| key["key_alias"].as_str().is_some_and(|alias| alias.starts_with("sluicegate/")));
    keys
}

#[tokio::test]
async fn litellm_has_a_key_for_each_run() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let litellm = LiteLlm::with_database(&upstream, MASTER_KEY).await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("admin-key");
    private_file(&file, MASTER_KEY);
    let settings = format!(
        "base_url = '{}'\nkey_per_run = true\nadmin_key_file = '{}'",
        litellm.base_url,
        file.display()
    );
    let prices = "[prices.'*']\ninput = '1'\noutput = '1'\n";
    let mut world = World::reaching(upstream, &settings, prices).await;
    let budget = Budget { cost_nanodollars: Some(NanoDollars(5_000_000_000)), ..Budget::default() };
    let models = Some(vec!["fake".parse().unwrap()]);
    let run = world.run_with(RunGrant { budget, models, ..grant("r1", "acct-1") }).await;
    let answer = run.agent.chat("fake").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());

    let keys = run_keys(&litellm).await;
    assert_eq!(keys.len(), 1, "{keys:?}");
    assert_eq!((&keys[0]["max_budget"], &keys[0]["models"]), (&json!(5.0), &json!(["fake"])), "{keys:?}");
    assert_eq!(keys[0]["metadata"]["run_id"], "r1", "{keys:?}");

    world.kill_proxy().await;
    let lost = keys[0]["key_alias"].clone();
    world.start_proxy().await;
    let left = || run_keys(&litellm);
    let is_gone = |keys: &Vec<Value>| keys.iter().all(|key| key["key_alias"] != lost);
    eventually("the key of the killed proxy is deleted", left, is_gone).await;
    let answer =
        eventually("the run goes on", || run.agent.chat("fake"), |answer| answer.status == 200).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!(run_keys(&litellm).await.len(), 1, "with another key");

    world.control.close(&run.grant.run_id, 0).await.unwrap();
    eventually("its key is deleted", left, Vec::is_empty).await;
    let aliases = std::fs::read_to_string(world.path().join("state/run-keys")).unwrap();
    assert_eq!(aliases.matches("minting").count(), 2, "{aliases}");
}
