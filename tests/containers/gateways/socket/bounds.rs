//! Tests what a client costs at most: the size of its frames, its connections, and what it does not read.

use std::time::Duration;

use harness::{
    gateway::{GatewayClient, Step},
    pace::pace,
};
use serde_json::json;

use super::{Scene, last_event, send};

const SESSION: &str = "agent:main:main";

#[tokio::test]
async fn a_large_frame_ends_its_connection() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    for (length, code) in [(513 << 10, 1009), (400 << 10, 1008)] {
        let mut client = scene.client("own", &ann).await;
        client.send_text("x".repeat(length)).await;
        let (closed, reason) = client.until_closed().await.unwrap();
        assert_eq!(closed, code, "{reason}");
    }
    let mut client = scene.client("own", &ann).await;
    let params = json!({ "sessionKey": SESSION, "limit": 1, "maxBytes": "x".repeat(400 << 10) });
    assert_eq!(client.call("chat.history", params).await["ok"], true, "control: a large one passes");
    scene.end().await;
}

#[tokio::test]
async fn a_principal_has_32_connections() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    let bob = scene.token("bob", "acct-1", "member").await;
    let mut clients = Vec::new();
    for _ in 0..32 {
        clients.push(scene.client("own", &ann).await);
    }
    let (mut refused, answer) = GatewayClient::try_connect(&scene.url("own"), &ann, &[]).await;
    assert_eq!(answer["error"]["retryable"], true, "{answer}");
    assert_eq!(refused.until_closed().await.unwrap().0, 1013);
    let mut other = scene.client("own", &bob).await;
    assert_eq!(other.call("health", json!({})).await["ok"], true, "control");
    drop(clients.pop());
    let again = async || GatewayClient::try_connect(&scene.url("own"), &ann, &[]).await.1["ok"] == true;
    harness::eventually::eventually("there is room again", again, |has_room| *has_room).await;
    scene.end().await;
}

/// A client sends and does not read. It is closed; others, and the rest of the API, notice nothing.
#[tokio::test]
async fn a_slow_reader_is_closed() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    let bob = scene.token("bob", "acct-1", "member").await;
    let mut client = scene.client("own", &ann).await;
    scene.own.always(vec![Step::say(&"A long answer. ".repeat(15_000)), Step::say("End.")]);
    let run = send(&mut client, SESSION, "Speak", "key-1").await;
    last_event(&mut client, &run).await;
    for _ in 0..400 {
        client.send("chat.history", json!({ "sessionKey": SESSION }), None).await;
    }
    let mut other = scene.client("own", &bob).await;
    for _ in 0..24 {
        pace(Duration::from_millis(500)).await;
        assert_eq!(other.call("agents.list", json!({})).await["ok"], true);
        assert_eq!(scene.api(&bob).get("/api/v1/agents").await.status, 200);
    }
    client.until_closed().await;
    let answered = client.seen.iter().filter(|frame| frame["payload"]["messages"].is_array()).count();
    assert!(answered < 400, "it was cut: {answered} answers");
    let log = std::fs::read_to_string(scene.world.path().join("up.log")).unwrap_or_default();
    assert!(log.contains("slow consumer"), "the reason is logged");
    scene.end().await;
}

/// Many requests that wait for a run keep no other from being read.
#[tokio::test]
async fn clients_wait_and_are_answered() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    let mut client = scene.client("own", &ann).await;
    scene.own.always(vec![Step::Never]);
    let run = send(&mut client, SESSION, "Wait", "key-1").await;
    for _ in 0..70 {
        client.send("agent.wait", json!({ "runId": run, "timeoutMs": 30_000 }), None).await;
    }
    assert_eq!(client.call("agents.list", json!({})).await["ok"], true);
    let is_refused = |frame: &serde_json::Value| frame["error"]["details"]["code"] == "TOO_MANY_WAITS";
    assert_eq!(client.seen.iter().filter(|frame| is_refused(frame)).count(), 6);
    let aborted = client.call("chat.abort", json!({ "sessionKey": SESSION, "runId": run })).await;
    assert_eq!(aborted["payload"]["aborted"], true, "{aborted}");
    last_event(&mut client, &run).await;
    scene.end().await;
}
