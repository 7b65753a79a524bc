//! Tests agents that people make in gateways, over the API: who may, what is refused, and two changes at once. No gateway runs:
//! what is wanted is stored all the same.

use std::time::Duration;

use harness::{Agent, eventually::eventually_within, served::Served};
use http::Method;
use serde_json::{Value, json};

const GATEWAYS: &str = "[gateways.own]\naccount = 'acct-1'\nagents = ['main', 'fixed']\n[gateways.shared]\n";

/// Sends a request about gateways; returns the status and the answer.
async fn call(api: &Agent, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
    let body = body.map(Value::to_string).unwrap_or_default();
    let answer = api.request(method, &format!("/api/v1/gateways{path}"), body.into()).await.unwrap();
    (answer.status.as_u16(), answer.json())
}

fn settings(revision: u64) -> Value {
    json!({
        "revision": revision, "name": "Research Bot", "avatar": null, "model": null,
        "commands": "ask", "web": "on", "files": "on", "allowedCommands": ["make test"],
    })
}

/// A gateway of another account is as absent as one that does not exist; a shared one is the operators'.
#[tokio::test]
async fn an_account_has_its_own_agents() {
    let served = Served::with(&format!("\n{GATEWAYS}")).await;
    let member = served.of_role("ann", "acct-1", "member").await;
    let viewer = served.of_role("eve", "acct-1", "viewer").await;
    let stranger = served.of_role("bob", "acct-2", "member").await;
    let boss = served.of_role("boss", "acct-9", "operator").await;
    let name = json!({ "name": "Research Bot" });

    let (status, made) = call(&member, Method::POST, "/own/agents", Some(&name)).await;
    assert_eq!((status, &made["id"], &made["revision"]), (201, &json!("research-bot"), &json!(1)), "{made}");
    assert_eq!(made["effective"]["commands"]["value"], "auto");
    assert!(made["effective"]["web"]["reason"].as_str().unwrap().contains("no network"), "{made}");
    for (who, method, path, body, status) in [
        (&viewer, Method::GET, "/own/agents/research-bot", None, 200),
        (&viewer, Method::POST, "/own/agents", Some(&name), 403),
        (&stranger, Method::GET, "/own/agents", None, 404),
        (&stranger, Method::POST, "/own/agents", Some(&name), 404),
        (&stranger, Method::DELETE, "/own/agents/research-bot", None, 404),
        (&stranger, Method::GET, "/own/agents/research-bot/files", None, 404),
        (&stranger, Method::GET, "/own/agents/research-bot/explain", None, 404),
        (&stranger, Method::GET, "/own/agents/research-bot/sessions", None, 404),
        (&stranger, Method::GET, "/own/agents/research-bot/workspace", None, 404),
        (&viewer, Method::GET, "/own/agents/research-bot/sessions", None, 200),
        (&viewer, Method::GET, "/own/agents/research-bot/workspace", None, 404),
        (&viewer, Method::GET, "/own/agents/research-bot/workspace?path=../other", None, 400),
        (&viewer, Method::GET, "/own/agents/research-bot/workspace?session=agent:main:a:b", None, 404),
        (&member, Method::GET, "/shared/agents", None, 404),
        (&member, Method::POST, "/shared/agents", Some(&name), 404),
        (&boss, Method::POST, "/shared/agents", Some(&name), 201),
        (&member, Method::DELETE, "/own/agents/fixed", None, 409),
        (&member, Method::GET, "/own/agents/main/files", None, 200),
    ] {
        let (found, answer) = call(who, method.clone(), path, body).await;
        assert_eq!(found, status, "{method} {path}: {answer}");
    }
    let (_, listed) = call(&member, Method::GET, "", None).await;
    let ids: Vec<_> = listed["gateways"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
    assert_eq!(ids, ["own"], "{listed}");
    let (_, shared) = call(&boss, Method::GET, "/shared/agents/research-bot", None).await;
    assert!(shared["effective"]["commands"]["reason"].as_str().unwrap().contains("accounts share"));
    let limited =
        served.principal(&["lim", "--account", "acct-1", "--role", "member", "--agent", "test:sh"]).await;
    let (status, refused) =
        call(&limited, Method::POST, "/own/agents", Some(&json!({ "name": "Other" }))).await;
    assert_eq!((status, &refused["code"]), (403, &json!("forbidden")), "{refused}");
    let (status, refused) = call(&limited, Method::GET, "/own/agents/main/workspace", None).await;
    assert_eq!((status, &refused["code"]), (403, &json!("forbidden")), "{refused}");
    served.end().await;
}

#[tokio::test]
async fn the_second_change_is_shown_both_states() {
    let served = Served::with(&format!("\n{GATEWAYS}")).await;
    let member = served.of_role("ann", "acct-1", "member").await;
    let name = json!({ "name": "Research Bot" });
    assert_eq!(call(&member, Method::POST, "/own/agents", Some(&name)).await.0, 201);
    let twice = json!({ "name": "RESEARCH   bot" });
    let (status, taken) = call(&member, Method::POST, "/own/agents", Some(&twice)).await;
    assert_eq!((status, &taken["code"]), (409, &json!("gateway_agent_exists")), "{taken}");
    assert_eq!(taken["current"]["name"], "Research Bot");

    let path = "/own/agents/research-bot";
    let (status, changed) = call(&member, Method::PUT, path, Some(&settings(1))).await;
    assert_eq!((status, &changed["revision"]), (200, &json!(2)), "{changed}");
    let mut late = settings(1);
    late["commands"] = json!("off");
    let (status, conflict) = call(&member, Method::PUT, path, Some(&late)).await;
    assert_eq!((status, &conflict["code"]), (409, &json!("gateway_agent_changed")), "{conflict}");
    let states = [&conflict["yours"]["commands"], &conflict["current"]["commands"]];
    assert_eq!((states, &conflict["current"]["revision"]), ([&json!("off"), &json!("ask")], &json!(2)));

    let file = format!("{path}/files/SOUL.md");
    let text = |content: &str, revision: u64| json!({ "content": content, "revision": revision });
    assert_eq!(call(&member, Method::PUT, &file, Some(&text("be kind", 0))).await.0, 200);
    let (status, conflict) = call(&member, Method::PUT, &file, Some(&text("be brief", 0))).await;
    assert_eq!((status, &conflict["code"]), (409, &json!("gateway_agent_changed")), "{conflict}");
    assert_eq!([&conflict["yours"]["content"], &conflict["current"]["content"]], ["be brief", "be kind"]);

    // Its gateway is down, and says so.
    let shown = async || call(&member, Method::GET, path, None).await.1;
    let failed =
        eventually_within(Duration::from_secs(20), "it says why", shown, |agent| agent["state"] == "failed");
    let failed = failed.await;
    assert_eq!(failed["step"], "configuration", "{failed}");
    assert!(failed["problem"].as_str().unwrap().contains("sluice gateway up own"), "{failed}");
    assert_eq!(call(&member, Method::DELETE, path, None).await.0, 202);
    assert_eq!(call(&member, Method::PUT, path, Some(&settings(2))).await.0, 404, "it is being removed");
    served.end().await;
}

#[tokio::test]
async fn bad_settings_store_nothing() {
    let served = Served::with(&format!("\n{GATEWAYS}")).await;
    let member = served.of_role("ann", "acct-1", "member").await;
    for name in ["", " padded", "turn\u{202e}ed", "\u{7814}", "Default", &"x".repeat(65), "a\nb"] {
        let (status, refused) =
            call(&member, Method::POST, "/own/agents", Some(&json!({ "name": name }))).await;
        assert_eq!((status, &refused["code"]), (400, &json!("invalid_request")), "{name:?}: {refused}");
    }
    assert_eq!(
        call(&member, Method::POST, "/own/agents", Some(&json!({ "name": "Main" }))).await.0,
        409,
        "configured"
    );
    assert_eq!(call(&member, Method::POST, "/own/agents", Some(&json!({ "name": "Bot" }))).await.0, 201);
    let many: Vec<_> = (0..201).map(|at| format!("command {at}")).collect();
    for (member_name, value) in [
        ("commands", json!("always")),
        ("web", json!(true)),
        ("model", json!("no model")),
        ("allowedCommands", json!(["rm \u{202e}fr"])),
        ("allowedCommands", json!(many)),
        ("revision", json!(-1)),
        ("workspace", json!("/etc")),
    ] {
        let mut body = settings(1);
        body[member_name] = value;
        let (status, refused) = call(&member, Method::PUT, "/own/agents/bot", Some(&body)).await;
        assert_eq!((status, &refused["code"]), (400, &json!("invalid_request")), "{member_name}: {refused}");
    }
    let file = |content: &str| json!({ "content": content });
    for (name, content, status) in [
        ("AGENTS.md", file("be kind"), 200),
        ("AGENTS.md", file("a\nturn\u{202e}ed"), 400),
        ("SOUL.md", file(&"x".repeat((256 << 10) + 1)), 400),
        ("TOOLS.md", file("x"), 404),
        ("..%2Fopenclaw.json", file("x"), 404),
    ] {
        let path = format!("/own/agents/bot/files/{name}");
        let (found, answer) = call(&member, Method::PUT, &path, Some(&content)).await;
        assert_eq!(found, status, "{name}: {answer}");
    }
    let (_, files) = call(&member, Method::GET, "/own/agents/bot/files", None).await;
    assert_eq!(files["files"].as_array().unwrap().len(), 1, "{files}");
    assert_eq!(files["files"][0]["content"], "be kind");
    let (_, agent) = call(&member, Method::GET, "/own/agents/bot", None).await;
    assert_eq!((&agent["commands"], &agent["revision"]), (&json!("auto"), &json!(2)), "{agent}");
    served.end().await;
}
