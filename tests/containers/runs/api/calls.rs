//! Tests the list of a run's calls.

use harness::{Served, eventually::eventually_within};
use http::Method;
use serde_json::{Value, json};

use super::orders::{assert_problem, ended, order_text};
use crate::recovery::survival::PATIENCE;

/// Agent that calls a model, calls a route that does not exist, and calls the model again.
const SCRIPT: &str = r#"
    ask() { curl --silent --output /dev/null http://localhost:8080/v1/chat/completions \
        --json '{ "model": "fake", "messages": [{ "role": "user", "content": "whispered" }] }'; }
    ask; curl --silent --output /dev/null http://localhost:8080/v1/secret; ask; echo it is done"#;

#[tokio::test]
async fn calls_of_a_run_are_listed_as_they_ended() {
    let there = Served::of("", SCRIPT).await;
    let owner = there.of_role("owner", "acct-7", "member").await;
    for run in ["r1", "r2"] {
        let path = format!("/api/v1/runs/{run}");
        let ordered = owner.request(Method::PUT, &path, order_text("test:sh").into()).await.unwrap();
        assert_eq!(ordered.status, 201, "{}", ordered.text());
        ended(&owner, run).await;
    }
    let path = "/api/v1/runs/r1/calls";
    let look = || async { owner.get(path).await.json()["calls"].as_array().unwrap().clone() };
    let calls = eventually_within(PATIENCE, "all are listed", look, |calls| calls.len() == 3).await;
    let outcomes: Vec<_> = calls.iter().map(|call| call["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["complete", "refused", "complete"]);
    for (key, value) in [
        ("attempt", json!(0)),
        ("kind", json!("model")),
        ("route", json!("chat_completions")),
        ("modelAsked", json!("fake")),
        ("status", json!(200)),
        ("refusal", Value::Null),
        ("tokensSource", json!("exact")),
    ] {
        assert_eq!(calls[0][key], value, "{key}: {}", calls[0]);
    }
    assert_eq!(
        (&calls[1]["refusal"], &calls[1]["status"]),
        (&json!("route_unknown"), &json!(404)),
        "{}",
        calls[1]
    );
    assert_eq!((&calls[0]["advice"], &calls[1]["advice"]["commands"]), (&Value::Null, &json!([])));
    assert!(calls[1]["advice"]["why"].as_str().is_some_and(|why| !why.is_empty()), "{}", calls[1]);
    let first = owner.get(&format!("{path}?limit=2")).await.json();
    let rest =
        owner.get(&format!("{path}?limit=2&cursor={}", first["nextCursor"].as_str().unwrap())).await.json();
    assert_eq!((&first["calls"][1], &rest["calls"][0]), (&calls[1], &calls[2]));
    assert_eq!((rest["calls"].as_array().unwrap().len(), &rest["nextCursor"]), (1, &Value::Null));
    for refused in ["limit=0", "limit=1001", "cursor=x", "runs=1"] {
        assert_problem(&owner.get(&format!("{path}?{refused}")).await, 400, "invalid_request");
    }
    there.end().await;
}

/// An ended run takes no new limit, so an operator is not sent to `sluice limit --run`.
#[tokio::test]
async fn advice_for_an_ended_run_names_a_new_one() {
    let there = Served::of("", SCRIPT).await;
    let operator = there.of_role("op", "acct-7", "operator").await;
    let limits = json!({ "totalTokens": 5 });
    let order = json!({ "agentId": "test:sh", "model": "fake", "input": "q", "limits": limits });
    let ordered = operator.post("/api/v1/runs", &order).await;
    assert_eq!(ordered.status, 201, "{}", ordered.text());
    let run = ordered.json()["runId"].as_str().unwrap().to_owned();
    ended(&operator, &run).await;
    let path = format!("/api/v1/runs/{run}/calls");
    let look = || async { operator.get(&path).await.json()["calls"].as_array().unwrap().clone() };
    let calls = eventually_within(PATIENCE, "all are listed", look, |calls| calls.len() == 3).await;
    let refused = &calls[0];
    assert_eq!(refused["rule"], "run.total_tokens", "{refused:#}");
    let commands = refused["advice"]["commands"].as_array().unwrap();
    let another = "sluice run --agent test:sh --account acct-7 --total-tokens N QUESTION";
    assert_eq!(commands[0], another, "{refused:#}");
    assert!(commands.iter().all(|command| !command.as_str().unwrap().starts_with("sluice limit --run")));
    there.end().await;
}
