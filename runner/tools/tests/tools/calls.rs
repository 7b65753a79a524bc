//! calls tests ordinary calls: results, rows, runs that end, clients that leave, and the socket.

use std::{os::unix::fs::PermissionsExt, process::Command, time::Duration};

use platform_core::host_tools::exec::ExecAnswer;
use runner_store::ToolCallState;
use runner_tools::{Effect, TestCaller};
use serde_json::json;

use crate::{
    double::{GitHubFault, GitHubRoute, StoredIssue},
    world::{RawCall, World, eventually, id, tool},
};

const TIME: &str = "core__get_current_time";

/// Waits until GitHub has the scripted request.
async fn asked(world: &World) {
    let is_asked = async || (!world.github.has_fault(GitHubRoute::ReadIssue)).then_some(());
    eventually("GitHub is asked", is_asked).await;
}

#[tokio::test]
async fn a_call_has_a_result_and_a_row() {
    let world = World::start().await;
    let answer = world.send(RawCall::exec(TIME, "c1", &json!({}))).await;
    assert_eq!((answer.status, answer.outcome()), (200, "done"), "{answer:?}");
    assert_eq!(answer.body["ok"], json!(true));
    assert!(answer.body["result"]["utc"].as_str().unwrap().ends_with('Z'), "{answer:?}");
    let stored = world.ended_call("c1").await;
    assert_eq!(
        (stored.state, stored.tool, stored.effect.as_str()),
        (ToolCallState::Done, tool(TIME), "reads")
    );
    assert!(stored.call.starts_with("dp-") && stored.result.is_none() && stored.result_bytes > Some(0));
}

#[tokio::test]
async fn a_run_sees_runs_of_its_account_alone() {
    let world = World::start().await;
    world.run("r2", "acct-1").await;
    world.run("foreign", "acct-2").await;
    let own = world.send(RawCall::exec("runs__status", "c1", &json!({}))).await;
    assert_eq!(own.body["result"]["run_id"], json!("r1"));
    let call = RawCall::exec("runs__status", "c2", &json!({ "run_id": "r2" }));
    assert_eq!(world.send(call).await.body["result"]["state"], json!("running"));
    let mut answers = Vec::new();
    for run in ["foreign", "absent"] {
        let call = RawCall::exec("runs__status", run, &json!({ "run_id": run }));
        let answer = world.send(call).await;
        assert_eq!((answer.code(), answer.outcome()), ("not_found", "failed"));
        answers.push(answer.body.to_string().replace(run, "X"));
    }
    assert_eq!(answers[0], answers[1], "no answer says that the run is there");
}

#[tokio::test]
async fn a_call_that_reads_ends_with_its_run() {
    let world = World::start().await;
    let token = world.run("r9", "acct-1").await;
    world.github.add_issue(StoredIssue {
        repository: "octo/hello".to_owned(),
        number: 1,
        ..StoredIssue::default()
    });
    world.github.script(GitHubRoute::ReadIssue, [GitHubFault::Slow(Duration::from_secs(25))]);
    let call = json!({ "runId": "r9", "callId": "c", "tool": "github__read_issue", "args": { "number": 1 } });
    let call = RawCall::of("/tool/exec", "github__read_issue", call.to_string().into_bytes());
    let calling = world.send(call.with("x-sluice-run", "r9"));
    let ending = async {
        asked(&world).await;
        world.end(&token).await;
    };
    let (answer, ()) = tokio::join!(calling, ending);
    assert_eq!((answer.code(), answer.outcome()), ("run_ended", "denied"), "{answer:?}");
}

#[tokio::test]
async fn an_account_has_a_number_of_calls_in_flight() {
    let world = World::with_config("[tools]\nmax_calls_in_flight_per_account = 1\n").await;
    world.github.add_issue(StoredIssue {
        repository: "octo/hello".to_owned(),
        number: 1,
        ..StoredIssue::default()
    });
    world.github.script(GitHubRoute::ReadIssue, [GitHubFault::Slow(Duration::from_secs(2))]);
    world.run("other", "acct-2").await;
    let slow = world.send(RawCall::exec("github__read_issue", "slow", &json!({ "number": 1 })));
    let second = async {
        asked(&world).await;
        let answer = world.send(RawCall::exec(TIME, "second", &json!({}))).await;
        assert_eq!((answer.code(), answer.outcome()), ("too_many_calls", "denied"), "{answer:?}");
        let body = json!({ "runId": "other", "callId": "c", "tool": TIME, "args": {} });
        let call = RawCall::of("/tool/exec", TIME, body.to_string().into_bytes());
        let call = call.with("x-sluice-run", "other").with("x-sluice-account", "acct-2");
        assert_eq!(world.send(call).await.outcome(), "done", "another account has its own");
    };
    let (slow, ()) = tokio::join!(slow, second);
    assert_eq!(slow.outcome(), "done", "{slow:?}");
    assert_eq!(world.send(RawCall::exec(TIME, "third", &json!({}))).await.outcome(), "done");
}

#[tokio::test]
async fn each_execution_of_a_reading_call_is_stored() {
    let world = World::start().await;
    let missing = RawCall::exec("github__read_issue", "c1", &json!({ "number": 1 }));
    assert_eq!(world.send(missing.clone()).await.code(), "not_found");
    world.github.add_issue(StoredIssue {
        repository: "octo/hello".to_owned(),
        number: 1,
        ..StoredIssue::default()
    });
    let again = RawCall::of(missing.path, "github__read_issue", missing.body.clone());
    assert_eq!(world.send(again).await.outcome(), "done");
    let states = eventually("both are stored", async || {
        let calls = world.store.tool_calls(&id("r1")).await.unwrap();
        (calls.len() == 2).then(|| calls.into_iter().map(|call| (call.id, call.state)).collect::<Vec<_>>())
    })
    .await;
    assert!(states.contains(&("c1".to_owned(), ToolCallState::Failed)), "the first stays: {states:?}");
    assert!(states.iter().any(|(id, state)| id.starts_with("dp-") && *state == ToolCallState::Done));
}

#[tokio::test]
async fn a_stale_socket_is_replaced_and_removed() {
    let world = World::unserved("").await;
    std::fs::create_dir_all(world.socket().parent().unwrap()).unwrap();
    drop(std::os::unix::net::UnixListener::bind(world.socket()).unwrap());
    world.serve();
    world.reachable().await;
    let mode = std::fs::metadata(world.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    world.stop();
    eventually("the socket is gone", async || (!world.socket().exists()).then_some(())).await;
}

#[tokio::test]
async fn a_foreign_user_is_not_heard() {
    let world = World::start().await;
    // Without the modes that keep others out, the kernel's word about the peer is what counts.
    for path in world.socket().ancestors().take(3) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let mut above = world.socket();
    while above.pop() && above != std::path::Path::new("/tmp") {
        std::fs::set_permissions(&above, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let ask = |uid: &str| {
        let socket = world.socket();
        let mut client = Command::new("setpriv");
        client.args(["--reuid", uid, "--regid", uid, "--clear-groups", "--", "curl", "-sS", "-m", "10"]);
        client.args(["-o", "/dev/null", "-w", "%{http_code}", "-XPOST", "--unix-socket"]).arg(socket);
        client.arg("http://tools/tool/exec");
        tokio::task::spawn_blocking(move || client.output().unwrap())
    };
    let own = ask("0").await.unwrap();
    assert_eq!(String::from_utf8_lossy(&own.stdout), "400", "{own:?}");
    let foreign = ask("65534").await.unwrap();
    assert_eq!(String::from_utf8_lossy(&foreign.stdout), "000", "{foreign:?}");
}

#[tokio::test]
async fn an_operator_tries_a_tool() {
    let world = World::unserved("").await;
    let gateway = world.gateway();
    let catalog = gateway.catalog().await;
    let writing: Vec<_> = catalog.iter().filter(|entry| entry.effect == Effect::Writes).collect();
    assert_eq!((catalog.len(), writing.len()), (10, 2));
    let metrics = catalog.iter().find(|entry| entry.name == tool("core__metrics_query")).unwrap();
    assert!(metrics.unavailable.as_deref().unwrap().contains("tools.metrics.url"), "{metrics:?}");
    let caller = TestCaller { account: "acct-1".parse().unwrap(), run_id: None };
    let done = gateway.test(&tool(TIME), "{}", &caller).await;
    assert!(matches!(done, ExecAnswer::Done { .. }), "{done:?}");
    let refused = gateway.test(&tool(TIME), r#"{"x":1}"#, &caller).await;
    assert!(matches!(refused, ExecAnswer::Failed { error, .. } if error.code == "invalid_arguments"));
    assert!(world.store.tool_calls(&id("r1")).await.unwrap().is_empty());
}
