//! Tests `services/openclaw-headers-plugin` in the real OpenClaw gateway: each session's model calls carry its headers.

use std::time::Duration;

use bench::upstream::ScriptedUpstream;
use harness::{
    eventually::eventually_within,
    gateway::{GatewayClient, turn},
    openclaw::{OpenClaw, PROVIDER, Setup},
};
use serde_json::{Value, json};

const SESSIONS: [&str; 3] = ["alice", "bob", "nobody"];
const PATIENCE: Duration = Duration::from_secs(60);
const LOOP: &str = "Please:\ncall: exec {\"command\":\"echo once\"}";

fn key(session: &str) -> String {
    format!("agent:main:{session}:1")
}

/// Creates a session unless it exists, and returns the gateway's id of it.
async fn session_id(client: &mut GatewayClient, session: &str) -> String {
    let params = json!({ "key": key(session), "model": format!("{PROVIDER}/fake-steps") });
    let answer = client.call("sessions.patch", params).await;
    answer["payload"]["entry"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

async fn headers(client: &mut GatewayClient, method: &str, params: Value) -> Value {
    client.call(&format!("sluicegate.headers.{method}"), params).await
}

/// Returns the token that each call of a session carried; the user's message identifies the session.
fn tokens(upstream: &ScriptedUpstream, message: &str) -> Vec<Option<String>> {
    let entries = upstream.ledger().all();
    let own = entries.iter().filter(|entry| String::from_utf8_lossy(&entry.body).contains(message));
    own.map(|entry| entry.header("x-run-token").first().map(|&token| token.to_owned())).collect()
}

#[tokio::test]
async fn each_sessions_calls_carry_its_own_headers() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let tools = ["exec", "read", "sessions_spawn"].map(str::to_owned).to_vec();
    let setup = Setup { plugin: true, tools, ..Setup::new(&upstream.openai_base_url(), &["fake-steps"]) };
    let gateway = OpenClaw::start(&setup).await;
    let mut client = GatewayClient::connect(&gateway.url, gateway.token).await;

    for session in &SESSIONS[..2] {
        let id = session_id(&mut client, session).await;
        let set = json!({ "sessionId": id, "headers": { "X-Run-Token": format!("token-of-{session}") } });
        let answer = headers(&mut client, "set", set).await;
        assert_eq!(answer["ok"], true, "{answer}");
    }
    session_id(&mut client, "nobody").await;
    let mut runs = Vec::new();
    for session in SESSIONS {
        let message = format!("I am {session}. {LOOP}");
        runs.push(client.send("agent", turn(&format!("run-{session}"), &key(session), &message), None).await);
    }
    for run in runs {
        let answer = client.answer(&run).await;
        assert_eq!(answer["payload"]["status"], "ok", "{answer}");
    }
    for session in SESSIONS {
        let token = (session != "nobody").then(|| format!("token-of-{session}"));
        let calls = tokens(&upstream, &format!("I am {session}."));
        assert_eq!(calls, [token.clone(), token], "{session}: the call and the one with the tool's result");
    }

    // Without headers, the same session's calls are unattributed.
    let id = session_id(&mut client, "alice").await;
    let answer = headers(&mut client, "clear", json!({ "sessionId": id })).await;
    assert_eq!(answer["payload"]["cleared"], true, "{answer}");
    client.call("agent", turn("run-later", &key("alice"), "I am later.")).await;
    assert_eq!(tokens(&upstream, "I am later."), [None]);

    what_a_sub_agent_calls_has_none(&mut client, &upstream).await;
    refuses_other_headers(&mut client, &gateway, &id).await;
    assert!(!gateway.log().contains("token-of-"), "a token is in the log");
    gateway.stop().await;
}

/// Checks that a sub-agent's calls have no headers: it is its own session. The session that receives its result
/// has them.
async fn what_a_sub_agent_calls_has_none(client: &mut GatewayClient, upstream: &ScriptedUpstream) {
    let id = session_id(client, "parent").await;
    let set = json!({ "sessionId": id, "headers": { "x-run-token": "token-of-parent" } });
    assert_eq!(headers(client, "set", set).await["ok"], true);
    let spawn = json!({ "id": "sessions_spawn", "args": { "task": format!("I am its child. {LOOP}") } });
    let message = format!("I am the parent.\ncall: tool_call {spawn}");
    client.call("agent", turn("run-parent", &key("parent"), &message)).await;
    let own = || async { tokens(upstream, "I am the parent.") };
    let own = eventually_within(PATIENCE, "the parent is told", own, |own| own.len() == 3).await;
    let child = tokens(upstream, "I am its child.");
    assert_eq!(own, vec![Some("token-of-parent".to_owned()); 3]);
    assert_eq!(child.iter().filter(|token| token.is_none()).count(), 2, "the child's: {child:?}");
    assert_eq!(child.len(), 5);
}

/// Checks that other headers are refused, and that clients without the scope may set none.
async fn refuses_other_headers(client: &mut GatewayClient, gateway: &OpenClaw, id: &str) {
    for wrong in [
        json!({ "x-run-token": "a\r\nx-other: b" }),
        json!({ "authorization": "Bearer a" }),
        json!({ "x-run-token": "x".repeat(8192) }),
        json!({}),
    ] {
        let answer = headers(client, "set", json!({ "sessionId": id, "headers": wrong })).await;
        assert_eq!(answer["error"]["code"], "INVALID_REQUEST", "{answer}");
    }
    let scopes = ["operator.read", "operator.write"];
    let (mut writer, _) = GatewayClient::try_connect(&gateway.url, gateway.token, &scopes).await;
    let set = json!({ "sessionId": id, "headers": { "x-run-token": "stolen" } });
    let answer = headers(&mut writer, "set", set).await;
    assert_eq!(answer["error"]["details"]["missingScope"], "operator.admin", "{answer}");
}
