//! Tests the removal of a run's texts, over the HTTP API and on the command line.

use harness::{Agent, Answer, eventually::eventually_within};
use http::Method;
use serde_json::{Value, json};

use super::orders::{Served, assert_problem, ended, order_text};
use crate::recovery::survival::PATIENCE;

async fn put(api: &Agent, run: &str, agent: &str) {
    let path = format!("/api/v1/runs/{run}");
    assert_eq!(api.request(Method::PUT, &path, order_text(agent).into()).await.unwrap().status, 201);
}

async fn remove(api: &Agent, path: &str) -> Answer {
    api.request(Method::DELETE, &format!("/api/v1/runs/{path}"), "".into()).await.unwrap()
}

/// Returns the kinds of the run's events.
async fn kinds(api: &Agent, run: &str) -> Vec<String> {
    let events = api.get(&format!("/api/v1/runs/{run}/events")).await.text();
    let parsed = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    parsed.map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_removed_run_keeps_its_usage_alone() {
    let there = Served::with("").await;
    let app = there.of_role("app", "acct-7", "member").await;
    put(&app, "r1", "test:sh").await;
    let before = ended(&app, "r1").await;
    assert_eq!(before["answer"], "it is done", "control: {before}");
    assert!(kinds(&app, "r1").await.contains(&"assistant_final".to_owned()), "control");
    for repeat in [1, 2] {
        let removed = remove(&app, "r1").await;
        assert_eq!((removed.status.as_u16(), removed.text().as_str()), (204, ""), "time {repeat}");
    }
    let after = app.get("/api/v1/runs/r1").await.json();
    assert_eq!(after["answer"], Value::Null, "{after}");
    for kept in ["state", "usage", "createdAt", "endedAt", "account"] {
        assert_eq!(after[kept], before[kept], "{kept}");
    }
    let kinds = kinds(&app, "r1").await;
    assert!(
        kinds.iter().all(|kind| ["pruned", "usage_report", "done"].contains(&kind.as_str())),
        "{kinds:?}"
    );
    let again = app.post("/api/v1/runs/r1/again", &json!({})).await;
    assert_problem(&again, 409, "not_repeatable");
    there.end().await;
}

#[tokio::test]
async fn only_ended_runs_of_the_caller_are_removed() {
    let there = Served::with("").await;
    let app = there.of_role("app", "acct-7", "member").await;
    let viewer = there.of_role("viewer", "acct-7", "viewer").await;
    let other = there.of_role("other", "acct-8", "member").await;
    let operator = there.of_role("operator", "acct-9", "operator").await;
    put(&app, "r1", "test:sh").await;
    put(&app, "r2", "test:long").await;
    ended(&app, "r1").await;
    assert_problem(&remove(&viewer, "r1").await, 403, "forbidden");
    assert_problem(&remove(&other, "r1").await, 404, "not_found");
    assert_problem(&remove(&app, "r9").await, 404, "not_found");
    assert_problem(&remove(&app, "r1?account=acct-7").await, 400, "invalid_request");
    let show = || async { app.get("/api/v1/runs/r2").await.json()["state"].clone() };
    eventually_within(PATIENCE, "it runs", show, |state| state == "running").await;
    assert_problem(&remove(&app, "r2").await, 409, "run_active");
    assert_eq!(app.get("/api/v1/runs/r1").await.json()["answer"], "it is done", "nothing was removed");
    assert_eq!(remove(&operator, "r1").await.status, 204);
    assert_eq!(app.get("/api/v1/runs/r1").await.json()["answer"], Value::Null);

    let forget = async |run: &str, more: &[&str]| {
        there.world.sluice().run(&[&["runs", "forget", run], more].concat()).await
    };
    let active = forget("r2", &[]).await;
    assert_eq!(active.code, Some(75), "{active:?}");
    assert!(active.stderr.contains("has not ended"), "{active:?}");
    assert_eq!(app.post("/api/v1/runs/r2/cancel", &Value::Null).await.status, 202);
    ended(&app, "r2").await;
    let text = forget("r2", &[]).await;
    assert_eq!((text.code, text.stdout.as_str()), (Some(0), "r2: question, answer and output are removed\n"));
    let json = forget("r2", &["--json"]).await;
    assert_eq!((json.code, json.result()), (Some(0), json!({ "run_id": "r2", "forgotten": true })));
    let unknown = forget("r9", &[]).await;
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    there.end().await;
}
