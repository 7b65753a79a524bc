//! Tests who connects, and in which words others are turned away.

use std::time::{Duration, Instant};

use harness::{Agent, gateway::GatewayClient};
use serde_json::{Value, json};

use super::{Scene, refusal};

/// Longest time after which a token that is revoked ends its connections.
const REVOCATION: Duration = Duration::from_secs(1);

async fn introduce(scene: &Scene, gateway: &str, params: Value) -> (String, (u16, String)) {
    let mut client = GatewayClient::open(&scene.url(gateway), &[]).await.unwrap();
    let answer = client.call("connect", params).await;
    let code = refusal(&answer).0;
    (code, client.until_closed().await.unwrap())
}

fn connect(token: &str) -> Value {
    json!({ "minProtocol": 3, "maxProtocol": 4, "auth": { "token": token } })
}

/// A person who sees a reason can act on it.
#[tokio::test]
async fn each_refusal_has_its_own_words() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    let unknown = "no such gateway for this account";
    let too_new = json!({ "minProtocol": 5, "maxProtocol": 6, "auth": { "token": ann } });
    for (gateway, params, code, close, words) in [
        ("own", connect("sk-wrong"), "AUTH_TOKEN_MISMATCH", 1008, "token mismatch"),
        ("own", json!({ "minProtocol": 3, "maxProtocol": 4 }), "AUTH_TOKEN_MISSING", 1008, "no token"),
        ("own", too_new, "PROTOCOL_MISMATCH", 1002, "protocol mismatch"),
        ("theirs", connect(&ann), "GATEWAY_UNKNOWN", 1008, unknown),
        ("nowhere", connect(&ann), "GATEWAY_UNKNOWN", 1008, unknown),
    ] {
        let (found, (closed, reason)) = introduce(&scene, gateway, params).await;
        assert_eq!((found.as_str(), closed), (code, close), "{reason}");
        assert!(reason.contains(words), "{reason}");
    }
    // Its client connects: what is stored can be read.
    let mut client = scene.client("down", &ann).await;
    let order = json!({ "sessionKey": "agent:main:main", "message": "hi", "idempotencyKey": "k" });
    let (code, message) = refusal(&client.call("chat.send", order).await);
    assert_eq!(code, "GATEWAY_DOWN");
    assert!(message.contains("`sluice gateway up down`"), "{message}");
    let mut stranger = GatewayClient::open(&scene.url("own"), &[]).await.unwrap();
    let answer = stranger.call("health", json!({})).await;
    assert_eq!(refusal(&answer).0, "CONNECT_FIRST");
    scene.end().await;
}

#[tokio::test]
async fn both_protocols_are_spoken() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    for (least, most, spoken) in [(3, 3, 3), (3, 4, 4), (4, 4, 4)] {
        let mut client = GatewayClient::open(&scene.url("own"), &[]).await.unwrap();
        let params = json!({ "minProtocol": least, "maxProtocol": most, "auth": { "token": ann }, "role": "operator",
            "device": { "id": "d", "publicKey": "p", "signature": "s", "signedAt": 1, "nonce": "n" } });
        let hello = client.call("connect", params).await;
        assert_eq!((&hello["ok"], &hello["payload"]["protocol"]), (&json!(true), &json!(spoken)), "{hello}");
        let agents = client.call("agents.list", json!({})).await;
        assert_eq!(agents["payload"]["agents"][0]["id"], "main", "{agents}");
    }
    scene.end().await;
}

/// A page of another origin cannot use a person's session, nor a token in a URL.
#[tokio::test]
async fn a_session_connects_its_own_pages() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    let signed_in = scene.api(&ann).post("/api/v1/session", &Value::Null).await;
    let cookie = signed_in.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    harness::canary::hand_out(cookie.split_once('=').unwrap().1);
    let own = format!("http://{}", scene.address);
    let page = async |headers: &[(&str, &str)], query: &str| {
        GatewayClient::open(&format!("{}{query}", scene.url("own")), headers).await
    };
    let mut client = page(&[("cookie", &cookie), ("origin", &own)], "").await.unwrap();
    let hello = client.call("connect", json!({ "minProtocol": 3, "maxProtocol": 4 })).await;
    assert_eq!(hello["ok"], true, "{hello}");
    for (headers, query, status) in [
        (vec![("cookie", cookie.as_str())], "", 403),
        (vec![("cookie", &cookie), ("origin", "http://attacker.example")], "", 403),
        (vec![("origin", "null")], "", 403),
        (vec![], "?token=x", 400),
    ] {
        let refused = page(&headers, query).await.err();
        assert_eq!(refused, Some(status), "{headers:?} {query}");
    }
    let plain = Agent::over_tcp(scene.address).get("/api/v1/gateways/own/ws").await;
    assert_eq!(plain.status, 400, "{}", plain.text());
    assert!(plain.text().contains("this path is a WebSocket"), "{}", plain.text());

    let began = Instant::now();
    let api = Agent::over_tcp(scene.address).with_header("cookie", &cookie).with_header("origin", &own);
    let api = api.with_header("content-type", "application/json");
    let ended = api.request(http::Method::DELETE, "/api/v1/session", bytes::Bytes::new()).await.unwrap();
    assert_eq!(ended.status, 204);
    let (code, reason) = client.until_closed().await.unwrap();
    assert!(code == 1008 && reason.contains("not valid any more"), "{code} {reason}");
    assert!(began.elapsed() < REVOCATION + Duration::from_secs(1), "{:?}", began.elapsed());
    scene.end().await;
}

#[tokio::test]
async fn a_revoked_token_leaves_within_a_second() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    let bob = scene.token("bob", "acct-1", "member").await;
    let mut client = scene.client("own", &ann).await;
    let mut other = scene.client("own", &bob).await;
    let revoked = scene.world.sluice().run(&["principals", "revoke", "ann"]).await;
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    let left = tokio::time::timeout(REVOCATION, client.until_closed()).await.expect("it leaves at once");
    let (code, reason) = left.unwrap();
    assert!(code == 1008 && reason.contains("not valid any more"), "{code} {reason}");
    assert_eq!(other.call("health", json!({})).await["ok"], true, "control: others stay");
    scene.end().await;
}

#[tokio::test]
async fn a_removed_gateway_loses_its_clients() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    let mut client = scene.client("own", &ann).await;
    scene
        .world
        .reconfigure("account = 'acct-1'\n[agents.'claw:own']", "account = 'acct-3'\n[agents.'claw:own']");
    let reloaded = scene.world.sluice().run(&["reload"]).await;
    assert_eq!(reloaded.code, Some(0), "{reloaded:?}");
    let left = tokio::time::timeout(REVOCATION, client.until_closed()).await.expect("it leaves at once");
    assert!(left.as_ref().unwrap().1.contains("does not exist for this account any more"), "{left:?}");
    scene.end().await;
}

#[tokio::test]
async fn a_viewer_reads_alone() {
    let scene = Scene::start().await;
    let eve = scene.token("eve", "acct-1", "viewer").await;
    let mut client = scene.client("own", &eve).await;
    for method in
        ["agents.list", "sessions.list", "models.list", "config.get", "exec.approval.list", "status"]
    {
        let answer = client.call(method, json!({})).await;
        assert_eq!(answer["ok"], true, "{method}: {answer}");
    }
    for (method, params) in [
        ("chat.send", json!({ "sessionKey": "agent:main:main", "message": "hi", "idempotencyKey": "k" })),
        ("chat.abort", json!({ "sessionKey": "agent:main:main" })),
        ("agents.create", json!({ "name": "Bot" })),
        ("sessions.patch", json!({ "key": "agent:main:main", "model": null })),
        ("exec.approval.resolve", json!({ "id": "x", "decision": "deny" })),
    ] {
        let answer = client.call(method, params).await;
        assert_eq!(answer["error"]["code"], "FORBIDDEN", "{method}: {answer}");
    }
    let limited = ["--account", "acct-1", "--role", "member", "--agent", "claw:down"];
    let limited = scene.token_with("lim", &limited).await;
    let mut client = scene.client("own", &limited).await;
    let order = json!({ "sessionKey": "agent:main:main", "message": "hi", "idempotencyKey": "k" });
    let answer = client.call("chat.send", order).await;
    assert_eq!(answer["error"]["code"], "FORBIDDEN", "it may run another agent alone: {answer}");
    scene.end().await;
}
