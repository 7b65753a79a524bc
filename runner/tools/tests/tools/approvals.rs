//! approvals tests calls that wait for a person: what is approved runs once, and nothing else runs.

use platform_core::{host_tools::header, id::AccountId, limit::Millis};
use platform_runtime::task;
use runner_store::{
    AccountScope, ApprovalWait, DecideError, Error as StoreError, NewToolCall, StoredToolCall, ToolCallState,
    ToolDecision, ToolVerdict,
};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::{
    double::{GitHubRoute, StoredIssue},
    world::{Answer, RawCall, World, eventually, id, send, tool},
};

const COMMENT: &str = "github__comment";
const CLOCK: &str = "core__get_current_time";
const APPROVAL: &str = "[tools]\napproval = ['github__comment', 'core__get_current_time']\n";

fn comment(id: &str) -> RawCall {
    RawCall::exec(COMMENT, id, &json!({ "number": 1, "body": "Done." }))
}

async fn world(config: &str) -> World {
    let world = World::with_config(config).await;
    world.github.add_issue(StoredIssue {
        repository: "octo/hello".to_owned(),
        number: 1,
        ..StoredIssue::default()
    });
    world
}

fn comments(world: &World) -> usize {
    world.github.count(GitHubRoute::Comment)
}

/// Sends a call, and returns once it waits.
async fn asked(world: &World, call: RawCall, call_id: &str) -> JoinHandle<Answer> {
    let socket = world.socket();
    let answer = task::spawn("client", async move { send(&socket, call).await });
    eventually("the call waits", async || {
        let calls = world.store.waiting_tool_calls(&AccountScope::All, 10).await.unwrap();
        calls.into_iter().find(|call| call.id == call_id)
    })
    .await;
    answer
}

/// Returns the data plane's id of call `c1` of run `r1`; a text that is not an id if the call does not exist.
async fn call_of(world: &World) -> String {
    let call = world.store.tool_call(&id("r1"), 0, "c1").await.unwrap();
    call.map_or_else(|| "none".to_owned(), |call| call.call)
}

async fn decide(world: &World, verdict: ToolVerdict) -> Result<StoredToolCall, DecideError> {
    let run = world.store.run(&id("r1")).await.unwrap();
    world
        .store
        .decide_tool_call(&run, &call_of(world).await, &ToolDecision { verdict, by: "uid:0".to_owned() })
        .await
}

/// The control is in the same test: without the setting, the call runs at once.
#[tokio::test]
async fn an_approved_call_runs_once() {
    let world = world(APPROVAL).await;
    let answer = asked(&world, comment("c1"), "c1").await;
    assert_eq!(comments(&world), 0, "nothing runs before the approval");
    let waiting = &world.store.waiting_tool_calls(&AccountScope::All, 10).await.unwrap()[0];
    assert!(waiting.args.as_ref().unwrap().contains("Done."), "{waiting:?}");
    let meanwhile = world.send(comment("c1")).await;
    assert_eq!(meanwhile.code(), "call_in_progress");
    decide(&world, ToolVerdict::Approve).await.unwrap();
    let answer = answer.await.unwrap();
    assert_eq!((answer.outcome(), comments(&world)), ("done", 1), "{answer:?}");
    let second = decide(&world, ToolVerdict::Deny { reason: None }).await.unwrap_err();
    assert!(matches!(second, DecideError::NotWaiting(_)), "{second:?}");
    let repeated = world.send(comment("c1")).await;
    assert_eq!((repeated.body, comments(&world)), (answer.body, 1));
}

#[tokio::test]
async fn a_call_without_the_setting_runs_at_once() {
    let world = world("").await;
    let answer = world.send(comment("c1")).await;
    assert_eq!((answer.outcome(), comments(&world)), ("done", 1), "{answer:?}");
}

/// A call without a waiter is not a call that a person may approve: nothing would run.
#[tokio::test]
async fn a_call_is_withdrawn_once_the_store_works() {
    let world = world(APPROVAL).await;
    let answer = asked(&world, comment("c1"), "c1").await;
    world.sql("ALTER TABLE tool_calls RENAME TO away").await;
    // The client leaves, and the store takes no withdrawal.
    answer.abort();
    eventually("the call has ended here", async || {
        (world.send(comment("c1")).await.code() == "store_unavailable").then_some(())
    })
    .await;
    world.sql("ALTER TABLE away RENAME TO tool_calls").await;
    let denied = world.ended_call("c1").await;
    assert_eq!(denied.code.as_deref(), Some("store_unavailable"), "it was not withdrawn before: {denied:?}");
    assert_eq!(denied.state, ToolCallState::Denied);
    assert!(decide(&world, ToolVerdict::Approve).await.is_err());
    assert_eq!(comments(&world), 0);
}

#[tokio::test]
async fn a_reading_call_waits_too() {
    let world = world(APPROVAL).await;
    let answer = asked(&world, RawCall::exec(CLOCK, "c1", &json!({})), "c1").await;
    decide(&world, ToolVerdict::Approve).await.unwrap();
    assert_eq!(answer.await.unwrap().outcome(), "done");
}

#[tokio::test]
async fn waiting_calls_block_no_others() {
    let config = "max_calls_in_flight_per_account = 1\nmax_calls_waiting_per_account = 2\n";
    let world = world(&format!("{APPROVAL}{config}").replace(", 'core__get_current_time'", "")).await;
    let first = asked(&world, comment("c1"), "c1").await;
    let second = asked(&world, comment("c2"), "c2").await;
    let third = world.send(comment("c3")).await;
    assert_eq!((third.code(), third.outcome()), ("too_many_calls", "denied"), "{third:?}");
    assert!(third.body.to_string().contains("wait for an approval"), "{third:?}");
    let other = world.send(RawCall::exec(CLOCK, "c4", &json!({}))).await;
    assert_eq!(other.outcome(), "done", "{other:?}");
    decide(&world, ToolVerdict::Approve).await.unwrap();
    assert_eq!(first.await.unwrap().outcome(), "done");
    let fourth = asked(&world, comment("c5"), "c5").await;
    drop((second, fourth));
}

#[tokio::test]
async fn a_denied_call_says_why() {
    let world = world(APPROVAL).await;
    let answer = asked(&world, comment("c1"), "c1").await;
    decide(&world, ToolVerdict::Deny { reason: Some("too early".to_owned()) }).await.unwrap();
    let answer = answer.await.unwrap();
    assert_eq!((answer.code(), answer.outcome()), ("approval_denied", "denied"));
    assert!(answer.body.to_string().contains("too early"), "{answer:?}");
    let repeated = world.send(comment("c1")).await;
    assert_eq!((repeated.code(), comments(&world)), ("approval_denied", 0));
}

#[tokio::test]
async fn a_call_is_denied_after_the_timeout() {
    let world = world(&format!("{APPROVAL}approval_timeout = '1s'\n")).await;
    let answer = world.send(comment("c1")).await;
    assert_eq!((answer.code(), answer.outcome()), ("approval_timeout", "denied"), "{answer:?}");
    decide(&world, ToolVerdict::Approve).await.unwrap_err();
    assert_eq!(comments(&world), 0);
}

#[tokio::test]
async fn the_end_of_a_run_denies_its_waiting_call() {
    let world = World::unserved(APPROVAL).await;
    world.serve();
    world.reachable().await;
    let token = world.run("r2", "acct-1").await;
    let mut call = comment("c1").with(header::RUN, "r2");
    call.body =
        json!({ "runId": "r2", "callId": "c1", "tool": COMMENT, "args": { "number": 1, "body": "x" } })
            .to_string()
            .into_bytes();
    let answer = asked(&world, call, "c1").await;
    world.end(&token).await;
    let answer = answer.await.unwrap();
    assert_eq!((answer.code(), answer.outcome()), ("run_ended", "denied"), "{answer:?}");
    assert_eq!(comments(&world), 0);
}

#[tokio::test]
async fn a_client_that_leaves_denies_its_call() {
    let world = world(APPROVAL).await;
    let answer = asked(&world, comment("c1"), "c1").await;
    answer.abort();
    let call = world.ended_call("c1").await;
    assert_eq!((call.state, call.code.as_deref()), (ToolCallState::Denied, Some("cancelled")));
    decide(&world, ToolVerdict::Approve).await.unwrap_err();
    assert_eq!(comments(&world), 0);
}

#[tokio::test]
async fn a_stop_denies_calls_that_wait() {
    let world = world(APPROVAL).await;
    let answer = asked(&world, comment("c1"), "c1").await;
    world.stop();
    assert_eq!(answer.await.unwrap().code(), "approval_abandoned");
    assert_eq!(comments(&world), 0);
}

/// The row of a killed process is what is left of it.
#[tokio::test]
async fn a_killed_process_leaves_no_call_that_runs() {
    let world = World::unserved(APPROVAL).await;
    let wait = ApprovalWait { args: "{}".to_owned(), timeout: Millis::seconds(600) };
    let killed = killed_call();
    world.store.propose_tool_call(&killed, &wait).await.unwrap();
    decide(&world, ToolVerdict::Approve).await.unwrap();
    world.serve();
    world.reachable().await;
    let call = world.ended_call("c1").await;
    assert_eq!((call.state, call.code.as_deref()), (ToolCallState::Denied, Some("approval_abandoned")));
    decide(&world, ToolVerdict::Approve).await.unwrap_err();
    assert!(!world.store.begin_approved_tool_call(&killed).await.unwrap());
    assert_eq!(comments(&world), 0);
}

fn killed_call() -> NewToolCall {
    NewToolCall {
        run_id: id("r1"),
        attempt: 0,
        id: "c1".to_owned(),
        call: "dp-1".to_owned(),
        account: AccountId::parse("acct-1").unwrap(),
        tool: tool(COMMENT),
        effect: "writes",
        args_digest: "00".to_owned(),
        args_shown: "{}".to_owned(),
        owner: "killed".to_owned(),
        gateway: None,
    }
}

#[tokio::test]
async fn a_decision_is_for_the_run_that_calls() {
    let world = world(APPROVAL).await;
    world.run("r2", "acct-2").await;
    let answer = asked(&world, comment("c1"), "c1").await;
    let other = world.store.run(&id("r2")).await.unwrap();
    let decision = ToolDecision { verdict: ToolVerdict::Approve, by: "x".to_owned() };
    let unknown = world.store.decide_tool_call(&other, &call_of(&world).await, &decision).await.unwrap_err();
    assert!(matches!(unknown, DecideError::Unknown { .. }), "{unknown:?}");
    let account = AccountScope::Only(other.account.clone());
    let hidden = world.store.run_within(&id("r1"), &account).await.unwrap_err();
    assert!(matches!(hidden, StoreError::Unknown { .. }), "{hidden:?}");
    assert_eq!(comments(&world), 0);
    // Control.
    decide(&world, ToolVerdict::Approve).await.unwrap();
    assert_eq!((answer.await.unwrap().outcome(), comments(&world)), ("done", 1));
}
