//! writes tests that a call which writes runs at most once.

use std::{thread, time::Duration};

use platform_runtime::task;
use runner_store::ToolCallState;
use runner_tools::ToolGateway;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    double::{GitHubFault, GitHubRoute, StoredIssue},
    world::{RawCall, World, eventually, id, open, send},
};

const COMMENT: &str = "github__comment";

fn comment(id: &str) -> RawCall {
    RawCall::exec(COMMENT, id, &json!({ "number": 1, "body": "Done." }))
}

fn issue() -> StoredIssue {
    StoredIssue { repository: "octo/hello".to_owned(), number: 1, ..StoredIssue::default() }
}

async fn world() -> World {
    let world = World::start().await;
    world.github.add_issue(issue());
    world
}

#[tokio::test]
async fn a_repeated_call_is_answered_from_the_store() {
    let world = world().await;
    let first = world.send(comment("c1")).await;
    assert_eq!(first.outcome(), "done", "{first:?}");
    assert_eq!(first.connection(), "", "the operator's credential is of no connection");
    let again = world.send(comment("c1")).await;
    assert_eq!((again.outcome(), &again.body), ("done", &first.body));
    assert_eq!(world.github.count(GitHubRoute::Comment), 1);
    let other = RawCall::exec(COMMENT, "c1", &json!({ "number": 1, "body": "Other." }));
    let other = world.send(other).await;
    assert_eq!((other.code(), other.outcome()), ("call_id_reused", "denied"));
    let of_other_tool = world.send(RawCall::exec("core__get_current_time", "c1", &json!({}))).await;
    assert_eq!(of_other_tool.code(), "call_id_reused");
    let control = world.send(comment("c2")).await;
    assert_eq!((control.outcome(), world.github.count(GitHubRoute::Comment)), ("done", 2));
}

#[tokio::test]
async fn calls_at_once_with_one_id_write_once() {
    let world = world().await;
    let all = futures_util::future::join_all((0..8).map(|_| world.send(comment("c1")))).await;
    let done = all.iter().filter(|answer| answer.outcome() == "done").count();
    assert!(done >= 1, "{all:?}");
    assert!(
        all.iter().all(|answer| answer.outcome() == "done" || answer.code() == "call_in_progress"),
        "{all:?}"
    );
    assert_eq!(world.github.count(GitHubRoute::Comment), 1);
}

#[tokio::test]
async fn a_failed_call_is_answered_from_the_store() {
    let world = world().await;
    world.github.script(GitHubRoute::Comment, [GitHubFault::Status(403, "Forbidden", Vec::new())]);
    let first = world.send(comment("c1")).await;
    assert_eq!((first.code(), first.outcome()), ("tool_failed", "failed"), "{first:?}");
    let again = world.send(comment("c1")).await;
    assert_eq!(again.body, first.body);
    assert_eq!(world.github.count(GitHubRoute::Comment), 1);
}

#[tokio::test]
async fn a_lost_answer_is_an_unknown_outcome() {
    let world = world().await;
    for (at, fault) in [GitHubFault::Lost, GitHubFault::Garbage, GitHubFault::Status(502, "Bad", Vec::new())]
        .into_iter()
        .enumerate()
    {
        world.github.script(GitHubRoute::Comment, [fault]);
        for _ in 0..2 {
            let answer = world.send(comment(&format!("c{at}"))).await;
            assert_eq!((answer.code(), answer.outcome()), ("outcome_unknown", "unknown"), "{answer:?}");
        }
        assert_eq!(world.github.count(GitHubRoute::Comment), at + 1, "it is not repeated");
    }
}

#[tokio::test]
async fn a_writing_call_outlives_client_and_run() {
    let world = world().await;
    let token = world.run("r5", "acct-1").await;
    world.github.script(GitHubRoute::Comment, [GitHubFault::Slow(Duration::from_millis(500))]);
    let body =
        json!({ "runId": "r5", "callId": "c1", "tool": COMMENT, "args": { "number": 1, "body": "x" } });
    let call = RawCall::of("/tool/exec", COMMENT, body.to_string().into_bytes()).with("x-sluice-run", "r5");
    let stored = async || world.store.tool_call(&id("r5"), 0, "c1").await.unwrap();
    {
        let calling = world.send(call);
        tokio::pin!(calling);
        let begun = eventually("the call is stored", async || stored().await);
        tokio::select! {
            answer = &mut calling => panic!("it is slow: {answer:?}"),
            begun = begun => assert_eq!(begun.state, ToolCallState::Executing),
        }
    }
    world.end(&token).await;
    let done =
        eventually("the call has ended", async || stored().await.filter(|call| call.ended.is_some())).await;
    assert_eq!(done.state, ToolCallState::Done);
    assert_eq!(world.github.issues()[0].comments.len(), 1);
}

/// A stop waits as long as the tool may take: the outcome of a call that it cut would be unknown.
#[tokio::test]
async fn a_writing_call_outlives_the_stop() {
    let world = world().await;
    world.github.script(GitHubRoute::Comment, [GitHubFault::Slow(Duration::from_secs(12))]);
    let begun = async {
        let stored = async || world.store.tool_call(&id("r1"), 0, "c1").await.unwrap();
        eventually("the call is stored", stored).await;
        world.stop();
    };
    let (answer, ()) = tokio::join!(world.send(comment("c1")), begun);
    assert_eq!(answer.outcome(), "done", "{answer:?}");
    assert_eq!(world.ended_call("c1").await.state, ToolCallState::Done);
}

/// Serves the tools in its own runtime, as another process does, until it is killed.
fn doomed(world: &World) -> (CancellationToken, thread::JoinHandle<()>) {
    let kill = CancellationToken::new();
    let killed = kill.clone();
    let (url, parts) = (world.store_url(), world.parts.clone());
    let serving = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let gateway = ToolGateway::new(open(&url).await, parts);
            drop(task::spawn("doomed", gateway.serve(CancellationToken::new())));
            killed.cancelled().await;
        });
        runtime.shutdown_background();
    });
    (kill, serving)
}

#[tokio::test]
async fn a_killed_writing_call_is_unknown() {
    let world = World::unserved("").await;
    world.github.add_issue(issue());
    // The comment is made, and its answer comes after the kill.
    world.github.script(GitHubRoute::Comment, [GitHubFault::Slow(Duration::from_secs(2))]);
    let (kill, serving) = doomed(&world);
    world.reachable().await;
    let socket = world.socket();
    let calling = task::spawn("call", async move {
        // The process that would answer is killed.
        task::spawn("killed call", async move { send(&socket, comment("c1")).await }).await.is_err()
    });
    eventually("the call is stored", async || world.store.tool_call(&id("r1"), 0, "c1").await.unwrap()).await;
    kill.cancel();
    serving.join().unwrap();
    assert!(calling.await.unwrap(), "there is no answer");
    std::fs::remove_file(world.socket()).ok();
    world.serve();
    world.reachable().await;
    for _ in 0..2 {
        let answer = world.send(comment("c1")).await;
        assert_eq!((answer.code(), answer.outcome()), ("outcome_unknown", "unknown"), "{answer:?}");
    }
    let stored = world.store.tool_call(&id("r1"), 0, "c1").await.unwrap().unwrap();
    assert_eq!(stored.state, ToolCallState::Unknown);
    let control: Value = world.send(comment("c2")).await.body;
    assert_eq!(control["ok"], json!(true), "the control");
    let comments = world.github.issues()[0].comments.len();
    assert!((1..=2).contains(&comments), "the first may have been made, and no second time: {comments}");
}
