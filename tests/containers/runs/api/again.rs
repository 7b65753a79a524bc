//! Tests the next attempt of an ended run, over the HTTP API and from the command line.

use harness::{Agent, Answer, eventually::eventually_within};
use http::Method;
use serde_json::{Value, json};

use super::orders::{Served, assert_problem, ended, order_text};
use crate::recovery::survival::PATIENCE;

const PATH: &str = "/api/v1/runs/r1/again";

async fn put(api: &Agent, run: &str, body: &Value) {
    let path = format!("/api/v1/runs/{run}");
    let answer = api.request(Method::PUT, &path, body.to_string().into()).await.unwrap();
    assert_eq!(answer.status, 201, "{}", answer.text());
}

async fn again(api: &Agent, attempt: u32) -> Answer {
    api.post(PATH, &json!({ "attempt": attempt })).await
}

/// Returns the attempts of all calls of `r1` that were answered.
async fn attempts(there: &Served) -> Vec<u32> {
    let lines = there.world.journal().await.into_iter();
    let of_run = lines.filter(|line| line.record.run_id.as_str() == "r1" && line.record.status == 200);
    of_run.map(|line| line.record.attempt).collect()
}

#[tokio::test]
async fn an_ended_run_is_attempted_again() {
    let there = Served::with("").await;
    let member = there.principal(&["member", "--account", "acct-1"]).await;
    put(&member, "r1", &json!({ "agentId": "sandbox:agent", "model": "fake", "input": "q" })).await;
    let first = ended(&member, "r1").await;
    assert_eq!((&first["state"], &first["attempt"]), (&json!("succeeded"), &json!(0)), "{first}");
    let calls = first["usage"]["calls"].as_u64().unwrap();
    assert_problem(&again(&member, 2).await, 409, "other_attempt");
    let started = again(&member, 1).await;
    assert_eq!((started.status.as_u16(), &started.json()["attempt"]), (202, &json!(1)), "{}", started.text());
    assert_eq!(again(&member, 1).await.status, 200, "the same request again changes nothing");
    let second = ended(&member, "r1").await;
    assert_eq!((&second["state"], &second["attempt"]), (&json!("succeeded"), &json!(1)), "{second}");
    assert_eq!(second["usage"]["calls"], calls, "its usage is its own");
    assert_eq!(again(&member, 1).await.json()["endedAt"], second["endedAt"], "also when it has ended");
    let counted = attempts(&there).await;
    assert_eq!(counted.iter().filter(|attempt| **attempt == 0).count() as u64, calls, "{counted:?}");
    assert_eq!(counted.iter().filter(|attempt| **attempt == 1).count() as u64, calls, "{counted:?}");
    // Events go on, with numbers of their own.
    let events = member.get("/api/v1/runs/r1/events").await.text();
    assert_eq!(events.matches("\"type\":\"done\"").count(), 2, "{events}");
    there.end().await;
}

#[tokio::test]
async fn another_attempt_needs_right_and_reason() {
    let there = Served::with("").await;
    let member = there.principal(&["member", "--account", "acct-1"]).await;
    let viewer = there.principal(&["viewer", "--account", "acct-1", "--role", "viewer"]).await;
    let stranger = there.principal(&["stranger", "--account", "acct-2"]).await;
    let bound = there.principal(&["bound", "--account", "acct-1", "--agent", "test:sh"]).await;
    put(&member, "r1", &serde_json::from_str(&order_text("test:long")).unwrap()).await;
    let state = || async { member.get("/api/v1/runs/r1").await.json()["state"].clone() };
    eventually_within(PATIENCE, "it runs", state, |state| state == "running").await;
    assert_problem(&again(&member, 1).await, 409, "run_not_ended");
    assert_eq!(member.post("/api/v1/runs/r1/cancel", &Value::Null).await.status, 202);
    ended(&member, "r1").await;
    assert_problem(&again(&viewer, 1).await, 403, "forbidden");
    assert_problem(&again(&bound, 1).await, 403, "agent_forbidden");
    assert_problem(&again(&stranger, 1).await, 404, "not_found");
    assert_problem(&again(&there.api, 1).await, 401, "unauthenticated");
    for body in [json!({ "attempts": 1 }), json!({ "attempt": -1 }), json!([1, 2])] {
        assert_problem(&member.post(PATH, &body).await, 400, "invalid_request");
    }
    assert_problem(&member.post(&format!("{PATH}?force=1"), &json!({})).await, 400, "invalid_request");
    assert_eq!(state().await, "cancelled", "nothing has begun");
    // The control: without a body, the next attempt begins.
    let started = member.request(Method::POST, PATH, "".into()).await.unwrap();
    assert_eq!((started.status.as_u16(), &started.json()["attempt"]), (202, &json!(1)));
    assert_eq!(member.post("/api/v1/runs/r1/cancel", &Value::Null).await.status, 202);
    assert_eq!(ended(&member, "r1").await["attempt"], 1);
    there.end().await;
}

#[tokio::test]
async fn the_command_line_starts_another_attempt() {
    let there = Served::with("anonymous_account = 'local'").await;
    put(&there.api, "r1", &serde_json::from_str(&order_text("test:sh")).unwrap()).await;
    ended(&there.api, "r1").await;
    let refused = there.world.sluice().run(&["runs", "again", "r1", "--attempt", "2"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    for said in ["attempt 1", "attempt 1", "attempt 1"] {
        let started = there.world.sluice().run(&["runs", "again", "r1", "--attempt", "1"]).await;
        assert!(started.code == Some(0) && started.stdout.contains(said), "{started:?}");
    }
    let waited = there.world.sluice().run(&["runs", "wait", "r1"]).await;
    assert_eq!((waited.code, waited.stdout.trim()), (Some(0), "it is done"), "{waited:?}");
    assert_eq!(there.api.get("/api/v1/runs/r1").await.json()["attempt"], 1);
    assert_eq!(
        there.world.sluice().run(&["runs", "again", "r9"]).await.code,
        Some(1),
        "there is no such run"
    );
    there.end().await;
}

#[tokio::test]
async fn an_attempt_needs_the_files_it_received() {
    let script = "cat a.txt; echo changed > a.txt";
    let there = Served::of("anonymous_account = 'local'", script).await;
    let dir = there.world.path().join("project");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("a.txt"), "text\n").unwrap();
    let run = ["run", "--agent", "test:sh", "--run-id", "r1", "--workspace", dir.to_str().unwrap(), "q"];
    assert_eq!(there.world.sluice().run(&run).await.stdout, "text\n");
    let started = there.world.sluice().run(&["runs", "again", "r1"]).await;
    assert_eq!(started.code, Some(0), "{started:?}");
    let waited = there.world.sluice().run(&["runs", "wait", "r1"]).await;
    assert_eq!(waited.stdout, "text\n", "it begins with the files as they were: {waited:?}");
    assert_eq!(there.world.sluice().run(&["runs", "gc", "--kept"]).await.code, Some(0));
    let gone = there.world.sluice().run(&["runs", "again", "r1"]).await;
    assert!(gone.code == Some(2) && gone.stderr.contains("no longer kept"), "{gone:?}");
    there.end().await;
}
