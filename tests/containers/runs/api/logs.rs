//! Tests the output of agents over the HTTP API.

use harness::Agent;
use http::Method;
use serde_json::Value;

use super::orders::{Served, assert_problem, ended, order_text};

const PATH: &str = "/api/v1/runs/r1/logs";

async fn put(api: &Agent, agent: &str) {
    let body = order_text(agent).into();
    assert_eq!(api.request(Method::PUT, "/api/v1/runs/r1", body).await.unwrap().status, 201);
}

/// Returns all pieces of output that `path` streams as lines.
async fn pieces(api: &Agent, path: &str) -> Vec<Value> {
    let answer = api.get(path).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["content-type"]),
        (200, &"application/x-ndjson".parse().unwrap())
    );
    answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns what `pieces` have of one stream.
fn text(pieces: &[Value], stream: &str) -> String {
    pieces
        .iter()
        .filter(|piece| piece["stream"] == stream)
        .map(|piece| piece["text"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn output_is_streamed_by_stream() {
    let script = "echo to stderr >&2; sleep 0.5; echo '{\"type\":\"done\"}'; echo more >&2";
    let there = Served::of("anonymous_account = 'local'", script).await;
    put(&there.api, "test:sh").await;
    let live = pieces(&there.api, PATH).await;
    assert_eq!(
        (text(&live, "stdout"), text(&live, "stderr")),
        ("{\"type\":\"done\"}\n".into(), "to stderr\nmore\n".into()),
        "{live:?}"
    );
    assert!(
        live.iter().all(|piece| piece["type"] == "log" && piece["at"].is_string()),
        "only output: {live:?}"
    );
    // Control: the same source has more than output.
    assert!(there.api.get("/api/v1/runs/r1/events").await.text().contains("\"type\":\"status\""));
    ended(&there.api, "r1").await;
    for stream in ["stdout", "stderr"] {
        let only = pieces(&there.api, &format!("{PATH}?stream={stream}")).await;
        let expected: Vec<_> = live.iter().filter(|piece| piece["stream"] == stream).cloned().collect();
        assert_eq!(only, expected);
    }
    // A client resumes by number, and learns that it has all although more events follow.
    let last = live.last().unwrap()["seq"].as_u64().unwrap();
    let resumed = pieces(&there.api, &format!("{PATH}?after={}", last - 1)).await;
    assert_eq!(resumed, live[live.len() - 1..]);
    let sse = there.api.clone().with_header("accept", "text/event-stream");
    assert_eq!(sse.clone().with_header("last-event-id", &last.to_string()).get(PATH).await.status, 204);
    let streamed = sse.get(PATH).await;
    assert_eq!(streamed.headers["content-type"], "text/event-stream");
    assert!(streamed.text().contains(&format!("id: {last}\n")), "{}", streamed.text());
    there.end().await;
}

#[tokio::test]
async fn output_is_for_the_runs_account() {
    let there = Served::of("", "echo secret output").await;
    let owner = there.principal(&["owner", "--account", "acct-1"]).await;
    put(&owner, "test:sh").await;
    ended(&owner, "r1").await;
    let stranger = there.principal(&["stranger", "--account", "acct-2"]).await;
    assert_problem(&stranger.get(PATH).await, 404, "not_found");
    assert_problem(&there.api.get(PATH).await, 401, "unauthenticated");
    for query in ["stream=stdin", "tail=1", "after=x", "after=1000000"] {
        assert_problem(&owner.get(&format!("{PATH}?{query}")).await, 400, "invalid_request");
    }
    // Control: its own account reads it.
    assert_eq!(text(&pieces(&owner, PATH).await, "stdout"), "secret output\n");
    there.end().await;
}
