//! Tests runs over the HTTP API: orders, lists, cancels, and what each principal may see and do.

use std::fs;

pub(super) use harness::Served;
use harness::{Agent, Answer, eventually::eventually_within};
use http::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::recovery::survival::PATIENCE;

async fn order(api: &Agent, body: &Value) -> Answer {
    api.post("/api/v1/runs", body).await
}

/// Returns the run once it has ended.
pub(in crate::runs) async fn ended(api: &Agent, run: &str) -> Value {
    let show = || async { api.get(&format!("/api/v1/runs/{run}")).await.json() };
    eventually_within(PATIENCE, "the run ends", show, |run| !run["endedAt"].is_null()).await
}

/// Checks that the answer is a problem with this status and code.
pub(in crate::runs) fn assert_problem(answer: &Answer, status: u16, code: &str) {
    let problem = answer.json();
    assert_eq!((answer.status.as_u16(), &problem["code"]), (status, &json!(code)), "{problem}");
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    assert_eq!(problem["status"], status);
    for text in ["type", "title", "detail", "help"] {
        assert!(problem[text].as_str().is_some_and(|text| !text.is_empty()), "{text}: {problem}");
    }
}

#[tokio::test]
async fn an_application_orders_and_reads_a_run() {
    let there = Served::with("").await;
    let app = there.principal(&["app", "--account", "acct-7"]).await;
    let ordered = order(&app, &json!({ "agentId": "test:sh", "model": "fake", "input": "q" })).await;
    assert_eq!(ordered.status, 201, "{}", ordered.text());
    let run = ordered.json()["runId"].as_str().unwrap().to_owned();
    assert_eq!(ordered.headers["location"], format!("/api/v1/runs/{run}"));
    let record = ended(&app, &run).await;
    for (field, value) in [
        ("state", json!("succeeded")),
        ("answer", json!("it is done")),
        ("account", json!("acct-7")),
        ("user", json!("app")),
        ("agentId", json!("test:sh")),
        ("model", json!("fake")),
        ("attempt", json!(0)),
        ("answerCutBytes", json!(0)),
        ("question", json!("q")),
    ] {
        assert_eq!(record[field], value, "{field}: {record}");
    }
    assert!(record["createdAt"].as_str().unwrap().ends_with('Z'), "{record}");
    let listed = app.get("/api/v1/runs?state=succeeded,failed&agent=test:sh").await.json();
    assert_eq!((&listed["runs"][0]["runId"], &listed["nextCursor"]), (&json!(run), &Value::Null));
    assert_eq!(listed["runs"][0]["question"], "q");
    assert_eq!(app.get("/api/v1/runs?state=running").await.json()["runs"], json!([]));
    there.end().await;
}

#[tokio::test]
async fn a_run_is_cancelled_over_the_api() {
    let there = Served::with("").await;
    let app = there.principal(&["app", "--account", "acct-7"]).await;
    let named = app.request(Method::PUT, "/api/v1/runs/long", order_text("test:long").into()).await.unwrap();
    assert_eq!(named.status, 201, "{}", named.text());
    let show = || async { app.get("/api/v1/runs/long").await.json()["state"].clone() };
    eventually_within(PATIENCE, "it runs", show, |state| state == "running").await;
    let asked = app.post("/api/v1/runs/long/cancel", &Value::Null).await;
    assert_eq!(asked.status, 202, "{}", asked.text());
    let record = ended(&app, "long").await;
    assert_eq!((&record["state"], &record["error"]["code"]), (&json!("cancelled"), &json!("cancelled")));
    there.end().await;
}

pub(super) fn order_text(agent: &str) -> String {
    json!({ "agentId": agent, "model": "fake", "input": "q" }).to_string()
}

#[tokio::test]
async fn a_repeated_order_is_one_run() {
    let there = Served::with("").await;
    let plain = there.principal(&["app", "--account", "acct-7"]).await;
    let app = plain.clone().with_header("idempotency-key", "k1");
    let body = json!({ "agentId": "test:sh", "model": "fake", "input": "q" });
    let first = order(&app, &body).await;
    let second = order(&app, &body).await;
    assert_eq!((first.status.as_u16(), second.status.as_u16()), (201, 200));
    assert_eq!(first.json()["runId"], second.json()["runId"]);
    let other = order(&app, &json!({ "agentId": "test:sh", "model": "fake", "input": "other" })).await;
    assert_problem(&other, 409, "run_id_taken");
    // The same key of another principal is another key.
    let bob = there.principal(&["bob", "--account", "acct-7"]).await.with_header("idempotency-key", "k1");
    let of_bob = order(&bob, &body).await;
    assert_eq!(of_bob.status, 201, "{}", of_bob.text());
    assert_ne!(of_bob.json()["runId"], first.json()["runId"]);
    for run in [&first, &of_bob] {
        ended(&app, run.json()["runId"].as_str().unwrap()).await;
    }
    // A retry gets its run even if its agent is gone.
    let config = fs::read_to_string(there.world.config()).unwrap();
    fs::write(there.world.config(), config.replace("test:sh", "test:gone")).unwrap();
    let pid = Pid::from_raw(there.up.child.id().unwrap().cast_signed()).unwrap();
    kill_process(pid, Signal::HUP).unwrap();
    let agents = || async { there.api.get("/api/v1/ai/agents").await.text() };
    eventually_within(PATIENCE, "the agent is gone", agents, |agents| agents.contains("test:gone")).await;
    assert_problem(&order(&plain, &body).await, 404, "unknown_agent");
    assert_eq!(order(&app, &body).await.json()["runId"], first.json()["runId"]);
    there.end().await;
}

#[tokio::test]
async fn runs_of_another_account_do_not_exist() {
    let there = Served::with("").await;
    let owner = there.principal(&["owner", "--account", "acct-1"]).await;
    let put = |api: Agent, text: String| async move {
        api.request(Method::PUT, "/api/v1/runs/r1", text.into()).await.unwrap()
    };
    assert_eq!(put(owner.clone(), order_text("test:sh")).await.status, 201);
    ended(&owner, "r1").await;
    let stranger = there.principal(&["stranger", "--account", "acct-2"]).await;
    let operator = there.principal(&["operator", "--account", "acct-2", "--role", "operator"]).await;
    for (method, path, own) in [
        (Method::GET, "/api/v1/runs/r1", 200),
        (Method::GET, "/api/v1/runs/r1/events", 200),
        (Method::POST, "/api/v1/runs/r1/cancel", 202),
    ] {
        let ask = async |api: &Agent| api.request(method.clone(), path, "".into()).await.unwrap();
        assert_problem(&ask(&stranger).await, 404, "not_found");
        for api in [&owner, &operator] {
            assert_eq!(ask(api).await.status, own, "{method} {path}");
        }
    }
    assert_eq!(stranger.get("/api/v1/runs").await.json()["runs"], json!([]));
    assert_problem(&stranger.get("/api/v1/runs?account=acct-1").await, 404, "not_found");
    assert_problem(&put(stranger.clone(), order_text("test:sh")).await, 409, "run_id_taken");
    let for_other = json!({ "agentId": "test:sh", "model": "fake", "input": "q", "account": "acct-1" });
    assert_problem(&order(&stranger, &for_other).await, 403, "account_forbidden");
    for api in [&owner, &operator] {
        assert_eq!(api.get("/api/v1/runs?account=acct-1").await.json()["runs"][0]["runId"], "r1");
    }
    there.end().await;
}

#[tokio::test]
async fn a_token_and_its_role_decide() {
    let there = Served::with("").await;
    let body = json!({ "agentId": "test:sh", "model": "fake", "input": "q" });
    let viewer = there.principal(&["viewer", "--account", "acct-1", "--role", "viewer"]).await;
    assert_eq!(viewer.get("/api/v1/runs").await.status, 200);
    for (method, path) in [
        (Method::POST, "/api/v1/runs"),
        (Method::PUT, "/api/v1/runs/r9"),
        (Method::POST, "/api/v1/runs/r9/cancel"),
    ] {
        let refused = viewer.request(method, path, body.to_string().into()).await.unwrap();
        assert_problem(&refused, 403, "forbidden");
    }
    let bound = there.principal(&["bound", "--account", "acct-1", "--agent", "test:long"]).await;
    assert_problem(&order(&bound, &body).await, 403, "agent_forbidden");
    let without = there.api.get("/api/v1/runs").await;
    assert_problem(&without, 401, "unauthenticated");
    assert_eq!(without.headers["www-authenticate"], "Bearer realm=\"sluicegate\"");
    // No answer says which part of a token is wrong.
    let zeros = "0".repeat(64);
    for token in ["", "x", &format!("slp_0000000000000000_{zeros}")] {
        let api = there.api.clone().with_header("authorization", &format!("Bearer {token}"));
        let answer = api.get("/api/v1/runs").await;
        assert_eq!((answer.status, answer.text()), (without.status, without.text()), "{token}");
    }
    let revoked = there.world.sluice().run(&["principals", "revoke", "viewer"]).await;
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    assert_problem(&viewer.get("/api/v1/runs").await, 401, "unauthenticated");
    let listed = there.world.sluice().run(&["principals", "ls", "--json"]).await.result();
    let used: Vec<_> =
        listed["principals"].as_array().unwrap().iter().map(|each| !each["used_ms"].is_null()).collect();
    assert_eq!(used, [true, true], "{listed}");
    there.end().await;
}

#[tokio::test]
async fn a_busy_thread_takes_no_other_run() {
    let there = Served::with("").await;
    let app = there.principal(&["app", "--account", "acct-7"]).await;
    let of_thread = json!({ "agentId": "test:long", "model": "fake", "input": "q", "stateKey": "t1" });
    let first = order(&app, &of_thread).await;
    assert_eq!(first.status, 201, "{}", first.text());
    assert_problem(&order(&app, &of_thread).await, 409, "thread_busy");
    let run = first.json()["runId"].as_str().unwrap().to_owned();
    assert_eq!(app.post(&format!("/api/v1/runs/{run}/cancel"), &Value::Null).await.status, 202);
    ended(&app, &run).await;
    there.end().await;
}

#[tokio::test]
async fn a_bad_order_stores_nothing() {
    let there = Served::with("anonymous_account = 'local'").await;
    let api = &there.api;
    for (body, status, code, said) in [
        (r#"{"input":"q","agent":"test:sh"}"#, 400, "invalid_request", "unknown field `agent`"),
        (r#"{"input":"q","limits":{"money":"1"}}"#, 400, "invalid_request", "unknown field `money`"),
        (r#"{"input":" "}"#, 400, "invalid_request", "`input` is empty"),
        (r#"{"agentId":"test:sh"}"#, 400, "invalid_request", "missing field `input`"),
        (r#"["q"]"#, 400, "invalid_request", "invalid type: sequence"),
        (r#"{"input":"q","messages":[["user","x"]]}"#, 400, "invalid_request", "invalid type: sequence"),
        (r#"{"input":"q","limits":[5]}"#, 400, "invalid_request", "invalid type: sequence"),
        (r#"{"input":"q","limits":{"cost":"x"}}"#, 400, "invalid_request", "limits.cost"),
        (r#"{"input":"q","limits":{"totalTokens":0}}"#, 400, "invalid_request", "a limit of 0"),
        ("{", 400, "invalid_request", "the body"),
        (r#"{"input":"q","agentId":"test:none"}"#, 404, "unknown_agent", "test:sh"),
        (
            r#"{"input":"q","agentId":"test:sh","model":"fake","priority":"high"}"#,
            403,
            "priority_too_high",
            "high",
        ),
    ] {
        let answer = api.request(Method::POST, "/api/v1/runs", body.to_owned().into()).await.unwrap();
        assert_problem(&answer, status, code);
        assert!(answer.text().contains(said), "{said}: {}", answer.text());
    }
    // Refused by its length, before it is sent.
    let mut wire = api.connect().await.unwrap();
    let head = "POST /api/v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    wire.write_all(format!("{head}content-length: 17000000\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    wire.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, *b"HTTP/1.1 413");
    let key_id = format!("/api/v1/runs/run-key-{}", "0".repeat(32));
    let squatted = api.request(Method::PUT, &key_id, order_text("test:sh").into()).await.unwrap();
    assert_problem(&squatted, 400, "invalid_request");
    for (query, said) in [
        ("stat=queued", "unknown field `stat`"),
        ("state=asleep", "no state `asleep`"),
        ("limit=0", "1 to 200"),
        ("cursor=x", "nextCursor"),
        ("agent=x", "not an agent id"),
    ] {
        let answer = api.get(&format!("/api/v1/runs?{query}")).await;
        assert_problem(&answer, 400, "invalid_request");
        assert!(answer.text().contains(said), "{said}: {}", answer.text());
    }
    assert_eq!(api.get("/api/v1/runs").await.json()["runs"], json!([]), "nothing is stored by half");
    // The control: the account of clients without a token pays.
    let ordered = order(api, &json!({ "agentId": "test:sh", "model": "fake", "input": "q" })).await;
    assert_eq!(ended(api, ordered.json()["runId"].as_str().unwrap()).await["account"], "local");
    there.end().await;
}

#[tokio::test]
async fn a_list_is_read_page_by_page() {
    let there = Served::with("anonymous_account = 'local'").await;
    for run in ["a", "b", "c"] {
        let path = format!("/api/v1/runs/{run}");
        let body = order_text("test:sh");
        assert_eq!(there.api.request(Method::PUT, &path, body.into()).await.unwrap().status, 201);
        ended(&there.api, run).await;
    }
    let mut seen = Vec::new();
    let mut path = "/api/v1/runs?limit=2".to_owned();
    loop {
        let page = there.api.get(&path).await.json();
        seen.extend(
            page["runs"].as_array().unwrap().iter().map(|run| run["runId"].as_str().unwrap().to_owned()),
        );
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        path = format!("/api/v1/runs?limit=2&cursor={cursor}");
    }
    assert_eq!(seen, ["c", "b", "a"]);
    there.end().await;
}
