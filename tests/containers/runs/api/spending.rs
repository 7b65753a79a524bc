//! Tests what the HTTP API asks the data plane for: accounts with their limits, and freezes.

use harness::{Agent, Answer};
use http::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::orders::{Served, assert_problem, ended, order_text};

async fn put(api: &Agent, path: &str, body: &Value) -> Answer {
    api.request(Method::PUT, path, body.to_string().into()).await.unwrap()
}

async fn delete(api: &Agent, path: &str) -> Answer {
    api.request(Method::DELETE, path, "".into()).await.unwrap()
}

#[tokio::test]
async fn an_account_is_its_owners_and_operators() {
    let there = Served::with("").await;
    let viewer = there.of_role("viewer", "acct-1", "viewer").await;
    let stranger = there.of_role("stranger", "acct-2", "member").await;
    let operator = there.of_role("operator", "acct-3", "operator").await;
    let unused = viewer.get("/api/v1/accounts/acct-1").await.json();
    assert_eq!(
        unused["limits"]["totalTokens"],
        json!({ "allowed": null, "used": 0, "reserved": 0, "left": null })
    );
    let member = there.of_role("member", "acct-1", "member").await;
    assert_eq!(
        put(&member, "/api/v1/runs/r1", &serde_json::from_str(&order_text("test:sh")).unwrap()).await.status,
        201
    );
    ended(&member, "r1").await;
    let accounts = |list: Value| -> Vec<String> {
        let accounts = list["accounts"].as_array().unwrap();
        accounts.iter().map(|view| view["account"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(accounts(viewer.get("/api/v1/accounts").await.json()), ["acct-1"]);
    assert_eq!(accounts(stranger.get("/api/v1/accounts").await.json()), ["acct-2"], "even if unused");
    assert!(
        accounts(operator.get("/api/v1/accounts").await.json()).contains(&"acct-1".to_owned()),
        "control"
    );
    assert_problem(&stranger.get("/api/v1/accounts/acct-1").await, 404, "not_found");
    assert_problem(&operator.get("/api/v1/accounts/acct-9").await, 404, "not_found");
    assert_problem(&viewer.get("/api/v1/accounts/acct-1?runs=1").await, 400, "invalid_request");
    assert_problem(&there.api.get("/api/v1/accounts").await, 401, "unauthenticated");
    there.end().await;
}

#[tokio::test]
async fn operators_replace_the_limits_of_an_account() {
    let there = Served::with("").await;
    let operator = there.of_role("operator", "acct-3", "operator").await;
    let member = there.of_role("member", "acct-1", "member").await;
    let path = "/api/v1/accounts/acct-1/limits";
    assert_problem(&put(&member, path, &json!({ "totalTokens": 1 })).await, 403, "forbidden");
    for (body, said) in [
        (json!({ "total_tokens": 1 }), "unknown field `total_tokens`"),
        (json!({ "cost": 1 }), "invalid type"),
        (json!({ "cost": "x" }), "`cost`"),
        (json!([]), "the body"),
    ] {
        let refused = put(&operator, path, &body).await;
        assert_problem(&refused, 400, "invalid_request");
        assert!(refused.text().contains(said), "{said}: {}", refused.text());
    }
    let limited = put(&operator, path, &json!({ "totalTokens": 1000, "cost": "2.50" })).await;
    assert_eq!(limited.status, 200, "{}", limited.text());
    let limits = member.get("/api/v1/accounts/acct-1").await.json()["limits"].clone();
    assert_eq!((&limits["totalTokens"]["left"], &limits["cost"]["allowed"]), (&json!(1000), &json!("2.50")));
    // The whole set is replaced: what the body does not name applies no more.
    put(&operator, path, &json!({ "requests": 7 })).await;
    let limits = member.get("/api/v1/accounts/acct-1").await.json()["limits"].clone();
    assert_eq!(
        (&limits["totalTokens"]["allowed"], &limits["requests"]["allowed"]),
        (&Value::Null, &json!(7))
    );
    let shown = there.world.sluice().run(&["usage", "--account", "acct-1", "--json"]).await.result();
    assert!(shown.to_string().contains("\"allowed\":7"), "the data plane has it: {shown}");
    there.end().await;
}

#[tokio::test]
async fn operators_freeze_and_thaw() {
    let there = Served::with("").await;
    let operator = there.of_role("operator", "acct-3", "operator").await;
    let member = there.of_role("member", "acct-1", "member").await;
    for (path, target) in [
        ("all", json!({ "kind": "all" })),
        ("accounts/acct-1", json!({ "kind": "account", "name": "acct-1" })),
        ("models/openai/gpt-4o", json!({ "kind": "model", "name": "openai/gpt-4o" })),
    ] {
        let path = format!("/api/v1/freezes/{path}");
        assert_problem(&put(&member, &path, &Value::Null).await, 403, "forbidden");
        assert_problem(&delete(&member, &path).await, 403, "forbidden");
        for _ in 0..2 {
            let frozen = put(&operator, &path, &Value::Null).await;
            assert_eq!(
                (frozen.status.as_u16(), &frozen.json()["freezes"]),
                (200, &json!([target])),
                "{path}"
            );
        }
        let shown = there.world.sluice().run(&["freeze", "--json"]).await.result();
        assert_eq!(shown["frozen"], json!([target]), "the data plane has it");
        assert_eq!(operator.get("/api/v1/freezes").await.json()["freezes"], json!([target]));
        let thawed = delete(&operator, &path).await.json();
        assert_eq!(thawed, json!({ "freezes": [], "notFrozen": [] }));
        assert_eq!(delete(&operator, &path).await.json()["notFrozen"], json!([target]));
    }
    assert_problem(&member.get("/api/v1/freezes").await, 403, "forbidden");
    let mistyped = put(&operator, "/api/v1/freezes/accounts/acct-77", &Value::Null).await.json();
    assert_eq!(mistyped["unknown"], json!([{ "kind": "account", "name": "acct-77" }]), "it may be mistyped");
    assert_problem(&put(&operator, "/api/v1/freezes/accounts/a%20b", &Value::Null).await, 404, "not_found");
    assert_problem(
        &put(&operator, "/api/v1/freezes/all?force=1", &Value::Null).await,
        400,
        "invalid_request",
    );
    assert_problem(&put(&operator, "/api/v1/freezes", &Value::Null).await, 405, "method_not_allowed");
    delete(&operator, "/api/v1/freezes/accounts/acct-77").await;
    there.end().await;
}

#[tokio::test]
async fn a_silent_data_plane_is_told_apart() {
    let there = Served::with("").await;
    let operator = there.of_role("operator", "acct-3", "operator").await;
    assert_eq!(operator.get("/api/v1/accounts").await.status, 200, "control");
    let said = there.up.said.lines().find_map(|line| line.strip_prefix("proxy     started, pid "));
    let proxy = Pid::from_raw(said.unwrap().parse().unwrap()).unwrap();
    kill_process(proxy, Signal::STOP).unwrap();
    for path in ["/api/v1/accounts", "/api/v1/accounts/acct-3", "/api/v1/freezes"] {
        let away = operator.get(path).await;
        assert_problem(&away, 503, "data_plane_unavailable");
        assert!(away.headers.contains_key("retry-after"));
    }
    kill_process(proxy, Signal::CONT).unwrap();
    assert_eq!(operator.get("/api/v1/accounts").await.status, 200, "it is back");
    there.end().await;
}
