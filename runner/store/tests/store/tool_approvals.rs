//! Tests calls of host tools that wait for a person: one decision each, timeouts, withdrawals, and processes that are gone.

use platform_core::{id::AccountId, limit::Millis};
use runner_model::lifecycle::Transition;
use runner_store::{
    AccountScope, ApprovalWait, DecideError, FencingToken, NewToolCall, Run, Store, StoredToolCall,
    ToolCallBegun, ToolCallState, ToolDecision, ToolVerdict, Withdrawal,
};

use crate::{
    database::{Database, cancelled, eventually, id},
    gateway_agents,
    runs::ordered,
    tool_calls::{done, new},
};

crate::on_both!(
    an_approved_call_begins_once,
    of_several_decisions_one_is_stored,
    a_decision_beside_a_timeout_has_one_winner,
    a_withdrawn_call_never_begins,
    calls_of_a_gone_process_are_denied,
    a_late_decision_denies,
    a_call_of_an_ended_run_is_not_decided,
    waiting_calls_are_listed_within_accounts,
    a_forgotten_run_keeps_no_arguments,
    a_command_is_allowed_for_good_by_its_approval,
    a_runs_end_closes_requests_of_gateways,
);

const LONG: Millis = Millis::seconds(600);

fn wait(timeout: Millis) -> ApprovalWait {
    ApprovalWait { args: r#"{"body":"x"}"#.to_owned(), timeout }
}

fn approval(by: &str) -> ToolDecision {
    ToolDecision { verdict: ToolVerdict::Approve, by: by.to_owned() }
}

fn denial(by: &str) -> ToolDecision {
    ToolDecision { verdict: ToolVerdict::Deny { reason: Some("no".to_owned()) }, by: by.to_owned() }
}

/// Orders run `r1`, and stores that its call `c1` waits.
async fn waiting(store: &Store) -> (FencingToken, NewToolCall) {
    let token = ordered(store, "r1").await;
    let call = new("r1", "c1");
    assert_eq!(store.propose_tool_call(&call, &wait(LONG)).await.unwrap(), ToolCallBegun::New);
    (token, call)
}

async fn run(store: &Store) -> Run {
    store.run(&id("r1")).await.unwrap()
}

async fn stored(store: &Store) -> StoredToolCall {
    store.tool_call(&id("r1"), 0, "c1").await.unwrap().unwrap()
}

async fn an_approved_call_begins_once(database: Database) {
    let store = database.open().await;
    let (_token, call) = waiting(&store).await;
    assert!(!store.begin_approved_tool_call(&call).await.unwrap(), "it waits");
    let decided =
        store.decide_tool_call(&run(&store).await, "data-plane-c1", &approval("uid:7")).await.unwrap();
    assert_eq!((decided.state, decided.decided_by.as_deref()), (ToolCallState::Approved, Some("uid:7")));
    let other = NewToolCall { owner: "other".to_owned(), ..call.clone() };
    assert!(!store.begin_approved_tool_call(&other).await.unwrap(), "it is the call of another process");
    assert!(store.begin_approved_tool_call(&call).await.unwrap());
    assert!(!store.begin_approved_tool_call(&call).await.unwrap(), "it has begun");
    store.end_tool_call(&call, &done()).await.unwrap();
    let ended = stored(&store).await;
    assert_eq!((ended.state, ended.args.as_deref()), (ToolCallState::Done, Some(r#"{"body":"x"}"#)));
    assert!(ended.decided.is_some() && ended.ended.is_some());
}

async fn of_several_decisions_one_is_stored(database: Database) {
    let clients = [database.open().await, database.open().await, database.open().await];
    waiting(&clients[0]).await;
    let run = run(&clients[0]).await;
    let decisions = [approval("a"), denial("b"), approval("c")];
    let decide = async |at: usize| clients[at].decide_tool_call(&run, "data-plane-c1", &decisions[at]).await;
    let (a, b, c) = tokio::join!(decide(0), decide(1), decide(2));
    let stored = stored(&clients[0]).await;
    let all = [a, b, c];
    let winners: Vec<_> = all.iter().flatten().collect();
    assert_eq!(winners.len(), 1, "{all:?}");
    assert_eq!(winners[0].decided_by, stored.decided_by);
    for loser in all.iter().filter_map(|decided| decided.as_ref().err()) {
        assert!(matches!(loser, DecideError::NotWaiting(_)), "{loser:?}");
        assert!(loser.to_string().contains(&format!("decided by {}", stored.decided_by.clone().unwrap())));
    }
}

async fn a_decision_beside_a_timeout_has_one_winner(database: Database) {
    let [store, other] = [database.open().await, database.open().await];
    let (_token, call) = waiting(&store).await;
    let run = run(&store).await;
    let approve = approval("a");
    let (decided, expired) =
        tokio::join!(other.decide_tool_call(&run, "data-plane-c1", &approve), store.expire_tool_call(&call));
    let expired = expired.unwrap();
    match decided {
        Ok(_) => assert_eq!(expired.state, ToolCallState::Approved, "the timeout came later"),
        Err(error) => {
            assert!(matches!(error, DecideError::NotWaiting(_)), "{error:?}");
            assert_eq!(expired.code.as_deref(), Some("approval_timeout"));
        }
    }
    assert_eq!(stored(&store).await.state, expired.state);
    assert_eq!(
        store.begin_approved_tool_call(&call).await.unwrap(),
        expired.state == ToolCallState::Approved
    );
}

async fn a_withdrawn_call_never_begins(database: Database) {
    let store = database.open().await;
    let (_token, call) = waiting(&store).await;
    store.decide_tool_call(&run(&store).await, "data-plane-c1", &approval("a")).await.unwrap();
    let kept = store.expire_tool_call(&call).await.unwrap();
    assert_eq!(kept.state, ToolCallState::Approved, "control: a timeout does not undo an approval");
    let withdrawal = Withdrawal { code: "run_ended".to_owned(), message: "over".to_owned() };
    let withdrawn = store.withdraw_tool_call(&call, &withdrawal).await.unwrap();
    assert_eq!((withdrawn.state, withdrawn.code.as_deref()), (ToolCallState::Denied, Some("run_ended")));
    assert!(!store.begin_approved_tool_call(&call).await.unwrap());
    store.end_tool_call(&call, &done()).await.unwrap();
    assert_eq!(stored(&store).await.state, ToolCallState::Denied, "no end is stored of what never began");
}

async fn calls_of_a_gone_process_are_denied(database: Database) {
    let store = database.open().await;
    let (_token, call) = waiting(&store).await;
    let executing = new("r1", "c2");
    store.begin_tool_call(&executing).await.unwrap();
    assert_eq!(store.settle_abandoned_tool_calls(&call.owner).await.unwrap(), [], "its process is there");
    store.decide_tool_call(&run(&store).await, "data-plane-c1", &approval("a")).await.unwrap();
    let settled = store.settle_abandoned_tool_calls("next").await.unwrap();
    assert_eq!(settled.len(), 2, "also one that was approved: {settled:?}");
    let denied = stored(&store).await;
    assert_eq!((denied.state, denied.code.as_deref()), (ToolCallState::Denied, Some("approval_abandoned")));
    assert!(!store.begin_approved_tool_call(&call).await.unwrap(), "its process is too late");
    let other = store.tool_call(&id("r1"), 0, "c2").await.unwrap().unwrap();
    assert_eq!(other.state, ToolCallState::Unknown, "it may have had its effect");
    store.end_tool_call(&executing, &done()).await.unwrap();
    let other = store.tool_call(&id("r1"), 0, "c2").await.unwrap().unwrap();
    assert_eq!(other.state, ToolCallState::Done, "its process was only late");
    // A repeated call finds one that is left waiting, too.
    store.propose_tool_call(&new("r1", "c3"), &wait(LONG)).await.unwrap();
    let repeated = NewToolCall { owner: "next".to_owned(), ..new("r1", "c3") };
    match store.propose_tool_call(&repeated, &wait(LONG)).await.unwrap() {
        ToolCallBegun::Existing(stored) => assert_eq!(stored.state, ToolCallState::Denied),
        ToolCallBegun::New => panic!("it begins twice"),
    }
}

async fn a_late_decision_denies(database: Database) {
    let store = database.open().await;
    ordered(&store, "r1").await;
    let call = new("r1", "c1");
    store.propose_tool_call(&call, &wait(Millis(1))).await.unwrap();
    eventually("the wait is over", async || {
        store.waiting_tool_calls(&AccountScope::All, 10).await.unwrap().is_empty().then_some(())
    })
    .await;
    let late = store.decide_tool_call(&run(&store).await, "data-plane-c1", &approval("a")).await.unwrap_err();
    assert!(late.to_string().contains("approval_timeout"), "{late}");
    assert_eq!(stored(&store).await.state, ToolCallState::Denied);
    assert!(!store.begin_approved_tool_call(&call).await.unwrap());
}

async fn a_call_of_an_ended_run_is_not_decided(database: Database) {
    let store = database.open().await;
    let (token, _call) = waiting(&store).await;
    let unknown =
        store.decide_tool_call(&run(&store).await, "data-plane-c9", &approval("a")).await.unwrap_err();
    assert!(matches!(unknown, DecideError::Unknown { .. }), "{unknown:?}");
    store.step(&token, &Transition::Withdraw(cancelled()).into()).await.unwrap();
    let ended =
        store.decide_tool_call(&run(&store).await, "data-plane-c1", &approval("a")).await.unwrap_err();
    assert!(matches!(ended, DecideError::RunEnded { .. }), "{ended:?}");
    assert_eq!(stored(&store).await.state, ToolCallState::Waiting, "its process denies it");
    assert_eq!(store.waiting_tool_calls(&AccountScope::All, 10).await.unwrap(), []);
}

async fn waiting_calls_are_listed_within_accounts(database: Database) {
    let store = database.open().await;
    waiting(&store).await;
    store.begin_tool_call(&new("r1", "c2")).await.unwrap();
    let ids = async |scope: AccountScope| {
        let calls = store.waiting_tool_calls(&scope, 10).await.unwrap();
        calls.into_iter().map(|call| call.id).collect::<Vec<_>>()
    };
    let account = |text: &str| AccountScope::Only(AccountId::parse(text).unwrap());
    assert_eq!(ids(AccountScope::All).await, ["c1"]);
    assert_eq!(ids(account("acct-1")).await, ["c1"]);
    assert_eq!(ids(account("acct-2")).await, Vec::<String>::new());
}

async fn a_forgotten_run_keeps_no_arguments(database: Database) {
    let store = database.open().await;
    let (token, call) = waiting(&store).await;
    store.expire_tool_call(&call).await.unwrap();
    assert!(stored(&store).await.args.is_some());
    store.step(&token, &Transition::Withdraw(cancelled()).into()).await.unwrap();
    store.forget_run(&id("r1"), &AccountScope::All).await.unwrap();
    assert_eq!(stored(&store).await.args, None);
}

/// Orders run `r1`, and stores that a gateway asks whether its agent may run `command`.
async fn asking(store: &Store, command: &str) -> NewToolCall {
    ordered(store, "r1").await;
    store.add_gateway_agent(&gateway_agents::new("Bot")).await.unwrap();
    let call = NewToolCall { gateway: Some(gateway_agents::key("bot")), ..new("r1", "c1") };
    let args = asked(command, "here", &[]);
    store.propose_tool_call(&call, &ApprovalWait { args, timeout: LONG }).await.unwrap();
    call
}

/// Returns what a person sees of a request of a session that works in the directory `here`.
fn asked(command: &str, directory: &str, environment: &[&str]) -> String {
    serde_json::json!({
        "command": command, "directory": directory, "in_own_directory": directory == "here",
        "environment": environment, "host": "gateway",
    })
    .to_string()
}

async fn allowed(store: &Store) -> Vec<String> {
    let bot = store.gateway_agent(&gateway_agents::key("bot")).await.unwrap().unwrap();
    bot.agent.settings.capabilities.allowed_commands.into_iter().map(String::from).collect()
}

/// A rule comes with the decision, or not at all.
async fn a_command_is_allowed_for_good_by_its_approval(database: Database) {
    let store = database.open().await;
    let always = ToolDecision { verdict: ToolVerdict::ApproveAlways, by: "uid:7".to_owned() };
    let call = asking(&store, "curl -H 'Authorization: ***'").await;
    let run = run(&store).await;
    let refused = store.decide_tool_call(&run, &call.call, &always).await.unwrap_err();
    assert!(matches!(refused, DecideError::NotForGood(_)), "{refused:?}");
    assert_eq!((stored(&store).await.state, allowed(&store).await), (ToolCallState::Waiting, vec![]));

    store.decide_tool_call(&run, &call.call, &denial("b")).await.unwrap();
    let late = store.decide_tool_call(&run, &call.call, &always).await.unwrap_err();
    assert!(matches!(late, DecideError::NotWaiting(_)), "{late:?}");

    // A rule is for the session's own directory and environment, so it cannot come from another one.
    for (id, args, is_allowed) in [
        ("c4", asked("rm -rf *", "elsewhere", &[]), false),
        ("c5", asked("make", "here", &["PATH"]), false),
        ("c6", asked("make test", "here", &[]), true),
    ] {
        let new = NewToolCall { id: id.to_owned(), call: id.to_owned(), ..call.clone() };
        store.propose_tool_call(&new, &ApprovalWait { args, timeout: LONG }).await.unwrap();
        let decided = store.decide_tool_call(&run, id, &always).await;
        assert_eq!(decided.is_ok(), is_allowed, "{id}: {decided:?}");
    }
    assert_eq!(allowed(&store).await, ["make test"]);
    // A call of a host tool has no such rule.
    let tool = new("r1", "c3");
    store.propose_tool_call(&tool, &wait(LONG)).await.unwrap();
    let refused = store.decide_tool_call(&run, &tool.call, &always).await.unwrap_err();
    assert!(matches!(refused, DecideError::NotForGood(_)), "{refused:?}");
}

async fn a_runs_end_closes_requests_of_gateways(database: Database) {
    let store = database.open().await;
    let call = asking(&store, "ls").await;
    // What another process leaves is denied, but for a gateway's request: the next worker goes on with it.
    assert_eq!(store.settle_abandoned_tool_calls("next").await.unwrap(), []);
    let begun = NewToolCall { id: "c2".to_owned(), call: "c2".to_owned(), ..call };
    store.propose_tool_call(&begun, &wait(LONG)).await.unwrap();
    store.decide_tool_call(&run(&store).await, "c2", &approval("a")).await.unwrap();
    assert!(store.begin_approved_tool_call(&begun).await.unwrap());
    let tool = new("r1", "c3");
    store.propose_tool_call(&tool, &wait(LONG)).await.unwrap();
    store.close_gateway_calls(&id("r1")).await.unwrap();
    let states = store.tool_call_counts(&id("r1")).await.unwrap();
    let expected = [ToolCallState::Denied, ToolCallState::Unknown, ToolCallState::Waiting];
    assert_eq!(states.into_iter().map(|(state, _)| state).collect::<Vec<_>>(), expected);
}
