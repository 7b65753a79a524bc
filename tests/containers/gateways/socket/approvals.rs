//! Tests commands of agents that wait for a person, as clients see them and decide about them.

use harness::{
    gateway::{Cue, GatewayClient, Step},
    store::open_store,
};
use platform_core::host_tools::ToolCallState;
use platform_core::limit::Millis;
use runner_store::{ApprovalWait, GatewayAgentKey, NewToolCall, Store};
use serde_json::{Value, json};

use super::{PATIENCE, Scene, last_event, refusal, send};

pub(super) const SESSION: &str = "agent:main:main";

/// Stores that the agent of a run asks for a command, as the worker does for its gateway.
pub(super) async fn ask(store: &Store, run: &str, call: &str, command: &str) {
    let run = store.record(&run.parse().unwrap()).await.unwrap().run;
    let args =
        json!({ "command": command, "directory": "/workspace", "environment": ["MODEL_SET"] }).to_string();
    let new = NewToolCall {
        run_id: run.run_id,
        attempt: 0,
        id: call.to_owned(),
        call: call.to_owned(),
        account: run.account,
        tool: "exec".parse().unwrap(),
        effect: "writes",
        args_digest: "0".repeat(64),
        args_shown: args.clone(),
        owner: "test".to_owned(),
        gateway: GatewayAgentKey::parse("own/main"),
    };
    let wait = ApprovalWait { args, timeout: Millis(60_000) };
    store.propose_tool_call(&new, &wait).await.unwrap();
}

/// Waits until a client is told of an event.
async fn told(client: &mut GatewayClient, event: &str) -> Value {
    let is_it = |frame: &Value| frame["event"] == event;
    if let Some(seen) = client.seen.iter().find(|frame| is_it(frame)) {
        return seen["payload"].clone();
    }
    tokio::time::timeout(PATIENCE, client.until(is_it)).await.expect(event)["payload"].clone()
}

#[tokio::test]
async fn a_person_decides_in_a_client() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    let store = open_store(&scene.world).await;
    let cue = Cue::default();
    scene.own.always(vec![Step::say("I ask."), Step::Until(cue.clone())]);
    let mut client = scene.client("own", &ann).await;
    let run = send(&mut client, SESSION, "Do it", "key-1").await;
    let begun = |frame: &Value| frame["event"] == "chat";
    tokio::time::timeout(PATIENCE, client.until(begun)).await.expect("it begins");
    for (call, command, decision, state) in [
        ("c1", "echo one", "allow-once", ToolCallState::Approved),
        ("c2", "echo two", "deny", ToolCallState::Denied),
    ] {
        client.seen.clear();
        ask(&store, &run, call, command).await;
        let asked = told(&mut client, "exec.approval.requested").await;
        assert_eq!(
            (&asked["request"]["command"], &asked["request"]["sessionKey"]),
            (&json!(command), &json!(SESSION))
        );
        let listed = client.call("exec.approval.list", json!({})).await;
        assert_eq!(listed["payload"][0], asked, "{listed}");
        let plugins = client.call("plugin.approval.list", json!({})).await;
        let description = plugins["payload"][0]["request"]["description"].as_str().unwrap();
        assert!(description.contains("MODEL_SET"), "a person sees all that it depends on: {description}");
        let get = client.call("exec.approval.get", json!({ "id": asked["id"] })).await;
        assert_eq!(get["payload"]["commandText"], command, "{get}");
        for shown in [&get["payload"], &asked["request"]] {
            assert_eq!((&shown["cwd"], &shown["envKeys"][0]), (&json!("/workspace"), &json!("MODEL_SET")));
        }
        let wrong =
            client.call("exec.approval.resolve", json!({ "id": asked["id"], "decision": "maybe" })).await;
        assert!(refusal(&wrong).1.contains("must be allow-once"), "{wrong}");

        let params = json!({ "id": asked["id"], "decision": decision });
        let decided = client.call("exec.approval.resolve", params.clone()).await;
        assert_eq!(decided["ok"], true, "{decided}");
        let stored = store.tool_call(&run.parse().unwrap(), 0, call).await.unwrap().unwrap();
        assert_eq!((stored.state, stored.decided_by.as_deref()), (state, Some("principal/ann")));
        let resolved = told(&mut client, "exec.approval.resolved").await;
        assert_eq!((&resolved["id"], &resolved["decision"]), (&asked["id"], &json!(decision)));
        let again = client.call("exec.approval.resolve", params).await;
        assert_eq!(refusal(&again).0, "APPROVAL_NOT_FOUND");
    }
    cue.give();
    last_event(&mut client, &run).await;
    scene.end().await;
}
