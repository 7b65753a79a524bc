//! Tests what the HTTP API says of this host: its agents, with the reasons that block them, and its gateways.

use serde_json::{Value, json};

use super::orders::{Served, assert_problem};

const GATEWAY: &str = "anonymous_account = 'local'\n[gateways.coding]\n";

#[tokio::test]
async fn all_agents_are_listed_with_reasons() {
    let missing = "[agents.'test:missing']\nargv = ['true']\nprotocol = 'text'\nimage = 'no-such-image:1'\nmodel = 'fake'\n";
    let there = Served::with(&format!("\n{missing}")).await;
    let bound =
        there.principal(&["bound", "--account", "acct-1", "--role", "viewer", "--agent", "test:sh"]).await;
    assert_problem(&there.api.get("/api/v1/agents").await, 401, "unauthenticated");
    let list = bound.get("/api/v1/agents").await.json();
    let agent = |id: &str| {
        let agents = list["agents"].as_array().unwrap();
        agents.iter().find(|agent| agent["agentId"] == id).unwrap_or_else(|| panic!("{id}: {list}")).clone()
    };
    let [missing, runnable] = ["test:missing", "test:sh"].map(agent);
    assert_eq!((&missing["canRun"], &missing["mayOrder"]), (&json!(false), &json!(false)));
    assert_eq!((&runnable["canRun"], &runnable["mayOrder"]), (&json!(true), &json!(true)));
    let listed = there.world.sluice().run(&["agents", "ls", "--json"]).await.result();
    let of_cli =
        listed["cannotRun"].as_array().unwrap().iter().find(|agent| agent["agentId"] == "test:missing");
    assert_eq!(missing["reasons"], of_cli.unwrap()["reasons"], "as the command line says");
    assert_problem(&bound.get("/api/v1/agents?all=1").await, 400, "invalid_request");
    there.end().await;
}

#[tokio::test]
async fn gateways_are_listed_for_their_accounts() {
    let there = Served::with(GATEWAY).await;
    let operator = there.principal(&["operator", "--account", "acct-3", "--role", "operator"]).await;
    let list = operator.get("/api/v1/gateways").await.json();
    let gateway = &list["gateways"][0];
    assert_eq!((&gateway["id"], &gateway["state"]), (&json!("coding"), &json!("down")), "{list}");
    assert_eq!((&gateway["managed"], &gateway["url"]), (&json!(true), &Value::Null), "{list}");
    let listed = there.world.sluice().run(&["gateway", "ls", "--json"]).await.result();
    assert_eq!(listed["gateways"][0]["state"], gateway["state"], "as the command line says");
    let others = there.api.get("/api/v1/gateways").await.json();
    assert_eq!(others["gateways"], json!([]), "another account has none of it");
    assert_problem(&operator.get("/api/v1/gateways?check=1").await, 400, "invalid_request");
    there.end().await;
}
