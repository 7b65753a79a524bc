//! Tests calls of host tools: one begin for each id, ends, what other processes left, their events, and what is forgotten.

use platform_core::{
    event::AgentEvent,
    id::{AccountId, ToolName},
    limit::Millis,
};
use runner_model::lifecycle::Transition;
use runner_store::{
    AccountScope, ApprovalWait, NewToolCall, Store, ToolCallBegun, ToolCallEnd, ToolCallState, ToolDecision,
    ToolVerdict,
};

use crate::{
    database::{Database, cancelled, id},
    runs::ordered,
};

crate::on_both!(
    one_of_two_calls_begins,
    a_repeated_call_gets_the_stored_answer,
    a_call_of_a_lost_process_is_unknown,
    a_delayed_process_still_ends_its_call,
    a_recorded_call_has_its_duration,
    each_execution_of_a_reading_call_has_a_row,
    each_state_of_a_call_is_an_event,
    no_event_of_a_call_follows_the_end,
    calls_are_listed_in_pages_and_counted,
    each_attempt_has_calls_of_its_own,
    a_forgotten_run_keeps_calls_without_texts,
);

pub(crate) fn new(run: &str, call: &str) -> NewToolCall {
    NewToolCall {
        run_id: id(run),
        attempt: 0,
        id: call.to_owned(),
        call: format!("data-plane-{call}"),
        account: AccountId::parse("acct-1").unwrap(),
        tool: ToolName::parse("github__comment").unwrap(),
        effect: "writes",
        args_digest: "00ff".to_owned(),
        args_shown: "{}".to_owned(),
        owner: "host/1/00000001".to_owned(),
        gateway: None,
    }
}

pub(crate) fn done() -> ToolCallEnd {
    ToolCallEnd {
        state: ToolCallState::Done,
        code: None,
        message: None,
        result: Some(r#"{"url":"x"}"#.to_owned()),
        result_bytes: Some(11),
        connection: Some("github".to_owned()),
    }
}

async fn one_of_two_calls_begins(database: Database) {
    let clients = [database.open().await, database.open().await, database.open().await];
    let call = new("r1", "c1");
    let begin = async |at: usize| clients[at].begin_tool_call(&call).await.unwrap();
    let (a, b, c) = tokio::join!(begin(0), begin(1), begin(2));
    let begun = [a, b, c];
    let first = begun.iter().filter(|begun| **begun == ToolCallBegun::New).count();
    assert_eq!(first, 1, "{begun:?}");
}

async fn a_repeated_call_gets_the_stored_answer(database: Database) {
    let store = database.open().await;
    assert_eq!(store.begin_tool_call(&new("r1", "c1")).await.unwrap(), ToolCallBegun::New);
    store.end_tool_call(&new("r1", "c1"), &done()).await.unwrap();
    let ToolCallBegun::Existing(stored) = store.begin_tool_call(&new("r1", "c1")).await.unwrap() else {
        panic!("it begins twice")
    };
    assert_eq!((stored.state, stored.result), (ToolCallState::Done, done().result));
    let failed = ToolCallEnd { state: ToolCallState::Failed, ..done() };
    store.end_tool_call(&new("r1", "c1"), &failed).await.unwrap();
    let stored = store.tool_call(&id("r1"), 0, "c1").await.unwrap().unwrap();
    assert_eq!(stored.state, ToolCallState::Done, "it ends once");
    assert_eq!(store.tool_call(&id("r1"), 0, "c2").await.unwrap(), None);
}

async fn a_call_of_a_lost_process_is_unknown(database: Database) {
    let store = database.open().await;
    store.begin_tool_call(&new("r1", "c1")).await.unwrap();
    let again = async |owner: &str| {
        let repeated = NewToolCall { owner: owner.to_owned(), ..new("r1", "c1") };
        match store.begin_tool_call(&repeated).await.unwrap() {
            ToolCallBegun::Existing(stored) => stored.state,
            ToolCallBegun::New => panic!("it begins twice"),
        }
    };
    assert_eq!(again("host/1/00000001").await, ToolCallState::Executing, "its process is there");
    assert_eq!(again("host/2/00000002").await, ToolCallState::Unknown);
}

async fn a_delayed_process_still_ends_its_call(database: Database) {
    let store = database.open().await;
    store.begin_tool_call(&new("r1", "c1")).await.unwrap();
    let other = NewToolCall { owner: "other".to_owned(), ..new("r1", "c1") };
    store.begin_tool_call(&other).await.unwrap();
    store.end_tool_call(&other, &ToolCallEnd { state: ToolCallState::Failed, ..done() }).await.unwrap();
    let state = async || store.tool_call(&id("r1"), 0, "c1").await.unwrap().unwrap().state;
    assert_eq!(state().await, ToolCallState::Unknown, "another process does not know how it ended");
    store.end_tool_call(&new("r1", "c1"), &done()).await.unwrap();
    assert_eq!(state().await, ToolCallState::Done);
}

async fn a_recorded_call_has_its_duration(database: Database) {
    let store = database.open().await;
    store.record_tool_call(&new("r1", "c1"), &done(), 1500).await.unwrap();
    store.record_tool_call(&new("r1", "c1"), &done(), 9000).await.unwrap();
    let calls = store.tool_calls(&id("r1")).await.unwrap();
    let [call] = calls.as_slice() else { panic!("{calls:?}") };
    assert_eq!(call.began.until(call.ended.unwrap()).as_millis(), 1500);
}

async fn each_execution_of_a_reading_call_has_a_row(database: Database) {
    let store = database.open().await;
    let execution = |call: &str| NewToolCall { call: call.to_owned(), effect: "reads", ..new("r1", "c1") };
    let failed = ToolCallEnd { state: ToolCallState::Failed, ..done() };
    store.record_tool_call(&execution("dp-1"), &failed, 1).await.unwrap();
    store.record_tool_call(&execution("dp-2"), &done(), 1).await.unwrap();
    // The answer to the first try of the store was lost.
    store.record_tool_call(&execution("dp-2"), &done(), 1).await.unwrap();
    let calls = store.tool_calls(&id("r1")).await.unwrap();
    let mut rows: Vec<_> =
        calls.iter().map(|call| (call.id.as_str(), call.call.as_str(), call.state)).collect();
    rows.sort_unstable_by_key(|row| row.1);
    let expected = [("c1", "dp-1", ToolCallState::Failed), ("dp-2", "dp-2", ToolCallState::Done)];
    assert_eq!(rows, expected, "the first outcome stays");
}

/// Returns the events of calls of host tools of run `r1`: state, arguments, and whether there is a duration.
async fn reported(store: &Store) -> Vec<(ToolCallState, Option<String>, bool)> {
    let (_run, events) = store.events_after(&id("r1"), 0).await.unwrap();
    let of_tools = events.iter().filter_map(|stored| match stored.event().unwrap() {
        AgentEvent::HostTool { state, arguments, duration_ms, .. } => {
            Some((state, arguments, duration_ms.is_some()))
        }
        _ => None,
    });
    of_tools.collect()
}

async fn each_state_of_a_call_is_an_event(database: Database) {
    let store = database.open().await;
    ordered(&store, "r1").await;
    let shown = || Some("{}".to_owned());
    store.begin_tool_call(&new("r1", "c1")).await.unwrap();
    store.begin_tool_call(&new("r1", "c1")).await.unwrap();
    store.end_tool_call(&new("r1", "c1"), &done()).await.unwrap();
    store.end_tool_call(&new("r1", "c1"), &done()).await.unwrap();
    let written = [(ToolCallState::Executing, shown(), false), (ToolCallState::Done, None, true)];
    assert_eq!(reported(&store).await, written, "one for each change");
    store.record_tool_call(&new("r1", "c2"), &done(), 5).await.unwrap();
    assert_eq!(reported(&store).await[2..], [(ToolCallState::Done, shown(), true)]);
    let wait = ApprovalWait { args: r#"{"whole":1}"#.to_owned(), timeout: Millis::seconds(600) };
    store.propose_tool_call(&new("r1", "c3"), &wait).await.unwrap();
    let run = store.run(&id("r1")).await.unwrap();
    let decision = ToolDecision { verdict: ToolVerdict::Approve, by: "a".to_owned() };
    store.decide_tool_call(&run, "data-plane-c3", &decision).await.unwrap();
    assert!(store.begin_approved_tool_call(&new("r1", "c3")).await.unwrap());
    store.settle_abandoned_tool_calls("next").await.unwrap();
    let approved = [
        (ToolCallState::Waiting, shown(), false),
        (ToolCallState::Approved, None, false),
        (ToolCallState::Executing, None, false),
        (ToolCallState::Unknown, None, false),
    ];
    assert_eq!(reported(&store).await[3..], approved);
}

async fn no_event_of_a_call_follows_the_end(database: Database) {
    let store = database.open().await;
    let token = ordered(&store, "r1").await;
    store.begin_tool_call(&new("r1", "c1")).await.unwrap();
    store.step(&token, &Transition::Withdraw(cancelled()).into()).await.unwrap();
    store.end_tool_call(&new("r1", "c1"), &done()).await.unwrap();
    let (_run, events) = store.events_after(&id("r1"), 0).await.unwrap();
    assert_eq!(events.last().unwrap().kind, "error", "{events:?}");
    assert_eq!(reported(&store).await, [(ToolCallState::Executing, Some("{}".to_owned()), false)]);
    let call = store.tool_call(&id("r1"), 0, "c1").await.unwrap().unwrap();
    assert_eq!(call.state, ToolCallState::Done, "the row has the end");
}

async fn calls_are_listed_in_pages_and_counted(database: Database) {
    let store = database.open().await;
    for call in ["c1", "c2", "c3"] {
        store.begin_tool_call(&new("r1", call)).await.unwrap();
    }
    store.begin_tool_call(&new("r2", "c1")).await.unwrap();
    store.end_tool_call(&new("r1", "c2"), &done()).await.unwrap();
    let counts = store.tool_call_counts(&id("r1")).await.unwrap();
    assert_eq!(counts, [(ToolCallState::Done, 1), (ToolCallState::Executing, 2)]);
    let (mut after, mut listed) = (None, Vec::new());
    loop {
        let page = store.tool_calls_after(&id("r1"), after.as_ref(), 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.place());
        listed.extend(page.into_iter().map(|call| call.id));
    }
    assert_eq!(listed, ["c1", "c2", "c3"]);
}

async fn each_attempt_has_calls_of_its_own(database: Database) {
    let store = database.open().await;
    store.begin_tool_call(&new("r1", "c1")).await.unwrap();
    let second = NewToolCall { attempt: 1, ..new("r1", "c1") };
    assert_eq!(store.begin_tool_call(&second).await.unwrap(), ToolCallBegun::New);
    assert_eq!(store.begin_tool_call(&new("r2", "c1")).await.unwrap(), ToolCallBegun::New);
    assert_eq!(store.tool_calls(&id("r1")).await.unwrap().len(), 2);
}

async fn a_forgotten_run_keeps_calls_without_texts(database: Database) {
    let store = database.open().await;
    let token = ordered(&store, "r1").await;
    store.begin_tool_call(&new("r1", "c1")).await.unwrap();
    store.end_tool_call(&new("r1", "c1"), &done()).await.unwrap();
    store.step(&token, &Transition::Withdraw(cancelled()).into()).await.unwrap();
    store.forget_run(&id("r1"), &AccountScope::All).await.unwrap();
    let call = store.tool_call(&id("r1"), 0, "c1").await.unwrap().unwrap();
    assert_eq!((call.result, call.message, call.result_bytes), (None, None, Some(11)));
}
