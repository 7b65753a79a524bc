//! Tests that a client learns nothing of another account, and changes nothing there. It calls each method of OpenClaw with the
//! names of the other account's objects.

use std::time::Duration;

use harness::{
    Agent,
    gateway::{Cue, GatewayClient, Step},
    store::open_store,
};
use http::Method;
use serde_json::{Value, json};

use super::{PATIENCE, Scene, approvals::ask, send};

/// Words that only the other account's objects have. The hostile client sends none of them.
const MARKERS: [&str; 6] =
    ["MARKER-QUESTION", "MARKER-ANSWER", "MARKER-COMMAND", "Marker Name", "MARKER-FILE", "acct-1"];
const SESSION: &str = "agent:main:marker-thread";
/// Names of all methods of OpenClaw 2026.9.6, from its own list.
const METHODS: &str = include_str!("../../../openclaw/methods.txt");

/// Longest time of all calls.
const PROBE_TIMEOUT: Duration = Duration::from_secs(50);

/// Names of the other account's objects, which the hostile client knows.
struct Objects {
    run: String,
    approval: String,
}

impl Objects {
    /// Returns parameters that name the objects, in each way that a method may.
    fn params(&self) -> Vec<Value> {
        let Self { run, approval } = self;
        let agent = "marker-name";
        vec![
            json!({}),
            json!({ "sessionKey": SESSION }),
            json!({ "sessionKey": "agent:marker-name:main" }),
            json!({ "sessionKey": format!("agent:main:run/{run}") }),
            json!({ "sessionKey": "agent:main:acctacctx2d1:ksmarkerx2dthread" }),
            json!({ "key": SESSION }),
            json!({ "keys": [SESSION, "agent:main:main"] }),
            json!({ "agentId": agent }),
            json!({ "agentId": "main" }),
            json!({ "agentId": agent, "name": "SOUL.md" }),
            json!({ "agentId": agent, "name": "SOUL.md", "content": "taken" }),
            json!({ "id": approval }),
            json!({ "id": approval, "decision": "allow-once" }),
            json!({ "runId": run, "timeoutMs": 1 }),
            json!({ "sessionKey": SESSION, "runId": run }),
            json!({ "sessionKey": SESSION, "message": "taken", "idempotencyKey": "key-1", "bogus": 1 }),
        ]
    }
}

/// Calls each method of OpenClaw with all parameters; returns all that the client was told.
async fn probe(client: &mut GatewayClient, objects: &Objects) -> String {
    client.seen.clear();
    let mut called = 0;
    for method in METHODS.lines() {
        for params in objects.params() {
            let answer = client.call(method, params).await;
            called += 1;
            // The name decides, before any parameter is read.
            if answer["error"]["message"].as_str().is_some_and(|why| why.contains("unknown method")) {
                break;
            }
        }
    }
    assert!(called > METHODS.lines().count() + 300, "control: {called} calls, all of what passes");
    client.seen.drain(..).map(|frame| frame.to_string()).collect()
}

async fn make_agent(api: &Agent) {
    let agents = "/api/v1/gateways/own/agents";
    let made = api.post(agents, &json!({ "name": "Marker Name" })).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let file = json!({ "content": "MARKER-FILE" }).to_string();
    let path = format!("{agents}/marker-name/files/SOUL.md");
    assert_eq!(api.request(Method::PUT, &path, file.into()).await.unwrap().status, 200);
}

#[tokio::test]
async fn nothing_of_another_account_is_told() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    let bob = scene.token("bob", "acct-2", "member").await;
    let api = scene.api(&ann);
    make_agent(&api).await;
    let mut owner = scene.client("own", &ann).await;
    let mut hostile = scene.client("theirs", &bob).await;
    let cue = Cue::default();
    scene.own.always(vec![Step::say("MARKER-ANSWER"), Step::Until(cue.clone())]);
    let run = send(&mut owner, SESSION, "MARKER-QUESTION", "key-1").await;
    let begun = |frame: &Value| frame["event"] == "chat";
    tokio::time::timeout(PATIENCE, owner.until(begun)).await.expect("it begins");
    let store = open_store(&scene.world).await;
    ask(&store, &run, "c1", "echo MARKER-COMMAND").await;
    let asked = |frame: &Value| frame["event"] == "exec.approval.requested";
    let asked = tokio::time::timeout(PATIENCE, owner.until(asked)).await.expect("it asks");
    let objects = Objects { run: run.clone(), approval: asked["payload"]["id"].as_str().unwrap().to_owned() };

    let told = tokio::time::timeout(PROBE_TIMEOUT, probe(&mut hostile, &objects)).await.unwrap();
    for marker in MARKERS.into_iter().chain([scene.world.path().to_str().unwrap(), harness::gateway::TOKEN]) {
        assert!(!told.contains(marker), "{marker}: {}", around(&told, marker));
    }
    assert!(
        !told.contains("\"event\":\"chat\"") && !told.contains("approval.requested"),
        "it is told of no event"
    );
    let waiting = owner.call("exec.approval.list", json!({})).await;
    assert_eq!(waiting["payload"].as_array().unwrap().len(), 1, "it decided nothing: {waiting}");
    let running = api.get(&format!("/api/v1/runs/{run}")).await.json();
    assert_eq!(running["state"], "running", "it ended nothing: {running}");
    let file = owner.call("agents.files.get", json!({ "agentId": "marker-name", "name": "SOUL.md" })).await;
    assert_eq!(file["payload"]["file"]["content"], "MARKER-FILE", "it wrote nothing: {file}");

    // The control: the account's own viewer is told all of it by the same calls.
    let mut viewer = scene.client("own", &scene.token("eve", "acct-1", "viewer").await).await;
    let told = tokio::time::timeout(PROBE_TIMEOUT, probe(&mut viewer, &objects)).await.unwrap();
    for marker in MARKERS.into_iter().filter(|marker| *marker != "acct-1") {
        assert!(told.contains(marker), "{marker}");
    }
    cue.give();
    scene.end().await;
}

/// Operators alone connect to a gateway that accounts share, and each sees those sessions alone that its account has.
#[tokio::test]
async fn accounts_of_a_shared_gateway_are_apart() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    let (_, refused) = GatewayClient::try_connect(&scene.url("shared"), &ann, &[]).await;
    assert_eq!(refused["error"]["details"]["code"], "GATEWAY_UNKNOWN", "{refused}");
    let boss = scene.token("boss", "acct-9", "operator").await;
    let chief = scene.token("chief", "acct-1", "operator").await;
    let mut hostile = scene.client("shared", &boss).await;
    let mut owner = scene.client("shared", &chief).await;
    let cue = Cue::default();
    scene.shared.always(vec![Step::say("MARKER-ANSWER"), Step::Until(cue.clone())]);
    let order = json!({ "input": "MARKER-QUESTION", "agentId": "claw:shared", "stateKey": "marker-thread" });
    let ordered = scene.api(&ann).post("/api/v1/runs", &order).await;
    assert_eq!(ordered.status, 201, "{}", ordered.text());
    let run = ordered.json()["runId"].as_str().unwrap().to_owned();
    let begun = |frame: &Value| frame["event"] == "chat";
    tokio::time::timeout(PATIENCE, owner.until(begun))
        .await
        .expect("an operator of the account is told of it");
    let objects = Objects { approval: format!("{run}/c1"), run };

    let told = tokio::time::timeout(PROBE_TIMEOUT, probe(&mut hostile, &objects)).await.unwrap();
    for marker in MARKERS {
        assert!(!told.contains(marker), "{marker}: {}", around(&told, marker));
    }
    assert!(!told.contains("\"event\":\"chat\""), "it is told of no event");
    let running = scene.api(&ann).get(&format!("/api/v1/runs/{}", objects.run)).await.json();
    assert_eq!(running["state"], "running", "it ended nothing: {running}");
    let history = owner.call("chat.history", json!({ "sessionKey": SESSION })).await;
    assert_eq!(history["payload"]["inFlightRun"]["text"], "MARKER-ANSWER", "the control: {history}");
    cue.give();
    scene.end().await;
}

/// Returns the text around a word.
fn around<'t>(text: &'t str, word: &str) -> &'t str {
    let at = text.find(word).unwrap_or_default();
    let (begin, end) = (
        text.floor_char_boundary(at.saturating_sub(300)),
        text.ceil_char_boundary((at + 100).min(text.len())),
    );
    &text[begin..end]
}
