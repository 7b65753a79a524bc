//! Tests the stream of changed runs over the HTTP API.

use harness::{Agent, agent::Stream, eventually::eventually_within};
use http::Method;
use serde_json::Value;
use tokio::time::timeout;

use super::orders::{Served, assert_problem, ended, order_text};
use crate::recovery::survival::PATIENCE;

const PATH: &str = "/api/v1/runs/changes";

async fn open(api: &Agent) -> Stream {
    let stream = api.send(Method::GET, PATH, "".into()).await.unwrap();
    assert_eq!(stream.status, 200);
    stream
}

async fn put(api: &Agent, run: &str, agent: &str) {
    let path = format!("/api/v1/runs/{run}");
    assert_eq!(api.request(Method::PUT, &path, order_text(agent).into()).await.unwrap().status, 201);
}

/// Reads changes until `run` has reached `state`.
async fn until(stream: &mut Stream, run: &str, state: &str) -> Vec<Value> {
    let mut text = String::new();
    let parsed = |text: &str| -> Vec<Value> {
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let reached = |run_view: &Value| run_view["runId"] == run && run_view["state"] == state;
    let read = async {
        while !parsed(&text).iter().any(reached) {
            let (piece, _) = stream.next().await.unwrap().expect("the stream goes on");
            text.push_str(str::from_utf8(&piece).unwrap());
        }
    };
    timeout(PATIENCE, read).await.unwrap_or_else(|_elapsed| panic!("{run} is not {state}"));
    parsed(&text)
}

fn states<'c>(changes: &'c [Value], run: &str) -> Vec<&'c str> {
    changes.iter().filter(|change| change["runId"] == run).map(|run| run["state"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn each_change_of_a_run_is_streamed() {
    let there = Served::of("", "sleep 0.5; echo it is done").await;
    let owner = there.principal(&["owner", "--account", "acct-1"]).await;
    let stranger = there.principal(&["stranger", "--account", "acct-2"]).await;
    let operator = there.principal(&["operator", "--account", "acct-3", "--role", "operator"]).await;
    let (mut of_owner, mut of_stranger, mut of_operator) =
        (open(&owner).await, open(&stranger).await, open(&operator).await);
    put(&owner, "r1", "test:sh").await;
    let seen = until(&mut of_owner, "r1", "succeeded").await;
    let seen = states(&seen, "r1");
    assert!(seen.contains(&"running") && seen.last() == Some(&"succeeded"), "{seen:?}");
    assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "each state once: {seen:?}");
    // An operator sees all accounts, a stranger its own alone.
    put(&stranger, "r2", "test:sh").await;
    let all = until(&mut of_operator, "r2", "succeeded").await;
    assert!(states(&all, "r1").contains(&"succeeded"), "{all:?}");
    let own = until(&mut of_stranger, "r2", "succeeded").await;
    assert!(own.iter().all(|run| run["account"] == "acct-2"), "{own:?}");
    assert_problem(&owner.get(&format!("{PATH}?after=1")).await, 400, "invalid_request");
    assert_problem(&there.api.get(PATH).await, 401, "unauthenticated");
    drop((of_owner, of_stranger, of_operator));
    there.end().await;
}

#[tokio::test]
async fn changes_of_other_processes_are_seen() {
    let there = Served::of("anonymous_account = 'local'", "sleep 1.5; echo it is done").await;
    let mut stream = open(&there.api).await;
    // `sluice run` executes it in its own process, which reports nothing here.
    let foreground = ["run", "--agent", "test:sh", "--run-id", "r1", "--account", "local", "q"];
    let sluice = there.world.sluice();
    let (outcome, seen) = tokio::join!(sluice.run(&foreground), until(&mut stream, "r1", "succeeded"));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(states(&seen, "r1").contains(&"running"), "{seen:?}");
    drop(stream);
    there.end().await;
}

#[tokio::test]
async fn streams_of_changes_are_bounded() {
    let there = Served::with("anonymous_account = 'local'").await;
    let app = there.principal(&["app", "--account", "local"]).await;
    let of_app = open(&app).await;
    let mut held = Vec::new();
    for _ in 0..32 {
        held.push(open(&there.api).await);
    }
    assert_problem(&there.api.get(PATH).await, 429, "too_many_streams");
    drop(held);
    let again = || async { there.api.send(Method::GET, PATH, "".into()).await.unwrap().status };
    eventually_within(PATIENCE, "closed streams do not count", again, |status| *status == 200).await;
    assert_eq!(there.world.sluice().run(&["principals", "revoke", "app"]).await.code, Some(0));
    let cut = timeout(PATIENCE, of_app.whole()).await;
    assert!(cut.expect("it ends with its token").is_ok());
    put(&there.api, "r1", "test:sh").await;
    ended(&there.api, "r1").await;
    there.end().await;
}
