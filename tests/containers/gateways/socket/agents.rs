//! Tests clients that make, change and remove agents and write their behaviour files: all is stored, and the API shows it.

use serde_json::{Value, json};

use super::{Scene, refusal};

/// Returns the ids of the agents that a client is shown.
fn ids(listed: &Value) -> Vec<&str> {
    listed["payload"]["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| agent["id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_client_makes_an_agent() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    let mut client = scene.client("own", &ann).await;
    let made = client.call("agents.create", json!({ "name": "Research Bot", "avatar": "seed-7" })).await;
    assert_eq!(made["payload"]["agentId"], "research-bot", "{made}");
    let again = client.call("agents.create", json!({ "name": "research BOT" })).await;
    assert_eq!(refusal(&again).0, "AGENT_EXISTS");
    let update = json!({ "agentId": "research-bot", "name": "Researcher", "model": "fake-echo" });
    let updated = client.call("agents.update", update).await;
    assert_eq!(updated["ok"], true, "{updated}");
    let listed = client.call("agents.list", json!({})).await;
    assert!(ids(&listed).contains(&"research-bot"), "{listed}");

    let path = "/api/v1/gateways/own/agents/research-bot";
    let shown = scene.api(&ann).get(path).await.json();
    let view = ["name", "avatar", "model"].map(|member| shown[member].as_str().unwrap_or_default());
    assert_eq!(view, ["Researcher", "seed-7", "fake-echo"], "{shown}");

    let removed = client.call("agents.delete", json!({ "agentId": "research-bot" })).await;
    assert_eq!(removed["ok"], true, "{removed}");
    let listed = client.call("agents.list", json!({})).await;
    assert!(!ids(&listed).contains(&"research-bot"), "{listed}");
    scene.end().await;
}

#[tokio::test]
async fn a_client_writes_behaviour_files() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    let mut client = scene.client("own", &ann).await;
    client.call("agents.create", json!({ "name": "Bot" })).await;
    let named = |more: Value| {
        let mut params = json!({ "agentId": "bot", "name": "SOUL.md" });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let missing = client.call("agents.files.get", named(json!({}))).await;
    assert_eq!(missing["payload"]["file"]["missing"], true, "{missing}");
    let written = client.call("agents.files.set", named(json!({ "content": "Be brief.\n" }))).await;
    assert_eq!(written["payload"]["file"]["size"], 10, "{written}");
    let read = client.call("agents.files.get", named(json!({}))).await;
    assert_eq!(read["payload"]["file"]["content"], "Be brief.\n", "{read}");
    let listed = client.call("agents.files.list", json!({ "agentId": "bot" })).await;
    assert_eq!(listed["payload"]["files"][0]["name"], "SOUL.md", "{listed}");
    let shown = scene.api(&ann).get("/api/v1/gateways/own/agents/bot/files").await.json();
    assert_eq!(shown["files"][0]["content"], "Be brief.\n", "{shown}");

    let hidden = client.call("agents.files.set", named(json!({ "content": "a\u{202e}b" }))).await;
    assert_eq!(refusal(&hidden).0, "INVALID_PARAMS", "text that shows otherwise than it reads");
    let mut params = named(json!({ "content": "x" }));
    params["name"] = json!("../openclaw.json");
    assert_eq!(refusal(&client.call("agents.files.set", params).await).0, "FILE_UNKNOWN");
    scene.end().await;
}
