//! Tests that clients of the HTTP API see on Postgres what other processes do, without a wait for the next read.
//!
//! While its store hears of changes, the API reads once a minute. That is longer than these tests wait for a change.

use harness::{Agent, Up, World, agent::Stream, eventually::eventually_within, shell_agents::shell_agent};
use http::Method;
use rustix::process::Signal;
use serde_json::Value;
use test_postgres::Database;
use tokio::time::timeout;

use crate::recovery::survival::PATIENCE;

const LISTENERS: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sluice listener' AND datname = current_database()";
const END_LISTENERS: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'sluice listener' AND datname = current_database()";

async fn open(api: &Agent, path: &str) -> Stream {
    let stream = api.send(Method::GET, path, "".into()).await.unwrap();
    assert_eq!(stream.status, 200);
    stream
}

/// Reads a stream until there is a line for each of these fields and values.
async fn until(stream: &mut Stream, of_run: Option<&str>, wanted: [(&str, &str); 2]) {
    let mut text = String::new();
    let are_all_there = |text: &str| {
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines: Vec<Value> = whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of_run = |line: &Value| of_run.is_none_or(|run| line["runId"] == run);
        wanted.iter().all(|(field, value)| lines.iter().any(|line| of_run(line) && line[field] == **value))
    };
    let read = async {
        while !are_all_there(&text) {
            let (piece, _) = stream.next().await.unwrap().expect("the stream goes on");
            text.push_str(str::from_utf8(&piece).unwrap());
        }
    };
    timeout(PATIENCE, read).await.unwrap_or_else(|_elapsed| panic!("no {wanted:?}"));
}

/// Executes a run in its own process while its states are read.
async fn run_elsewhere(world: &World, changes: &mut Stream, run: &str) {
    let sluice = world.sluice();
    let arguments = ["run", "--agent", "test:sh", "--run-id", run, "--account", "local", "q"];
    let seen = until(changes, Some(run), [("state", "running"), ("state", "succeeded")]);
    let (outcome, ()) = tokio::join!(sluice.run(&arguments), seen);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

#[tokio::test]
async fn work_of_other_processes_is_heard_on_postgres() {
    let postgres = Database::create().await;
    let api = "[api]\nlisten = '127.0.0.1:0'\nanonymous_account = 'local'\n";
    let mut world =
        World::with(&format!("{api}{}", shell_agent("echo one >&2; sleep 1; echo it is done", ""))).await;
    assert!(world.stop_proxy().await);
    drop(world.keep_store_at(&postgres.url()).await);
    let up = Up::start(world.sluice()).await;
    let address = up.said.lines().find_map(|line| line.strip_prefix("api       http://")).unwrap();
    let api = Agent::over_tcp(address.parse().unwrap()).searched();
    let listeners = || async { postgres.query(LISTENERS) };
    let listens = || eventually_within(PATIENCE, "one connection listens", listeners, |count| count == "1");

    let mut changes = open(&api, "/api/v1/runs/changes").await;
    listens().await;
    run_elsewhere(&world, &mut changes, "r1").await;
    // A run is followed over the same connection.
    let sluice = world.sluice();
    let foreground = ["run", "--agent", "test:sh", "--run-id", "r2", "--account", "local", "q"];
    let followed = async {
        let exists = || async { api.get("/api/v1/runs/r2").await.status };
        eventually_within(PATIENCE, "it is ordered", exists, |status| *status == 200).await;
        let mut events = open(&api, "/api/v1/runs/r2/events").await;
        until(&mut events, None, [("type", "log"), ("type", "done")]).await;
    };
    let (outcome, ()) = tokio::join!(sluice.run(&foreground), followed);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(postgres.query(LISTENERS), "1");

    assert_eq!(postgres.query(END_LISTENERS), "1");
    run_elsewhere(&world, &mut changes, "r3").await;
    listens().await;
    run_elsewhere(&world, &mut changes, "r4").await;
    drop(changes);
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}
