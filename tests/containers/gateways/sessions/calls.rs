//! Tests the attribution of calls of a gateway's sessions.

use std::time::Duration;

use futures_util::future::join_all;
use harness::{
    agent::{Agent, Answering, chat_body},
    eventually,
    gateway::{Dialect, Step},
    pace,
};
use http::Method;
use platform_core::{control::RunState, record::Identity};
use serde_json::json;

use super::{Sessions, answer, code};

/// Holds in every way of attribution, and in both protocol versions.
#[tokio::test]
async fn calls_of_a_turn_belong_to_its_run() {
    for (dialect, attribution, identity) in [
        (Dialect::Four, "trace", Identity::Trace),
        (Dialect::Four, "slot", Identity::Slot),
        (Dialect::Three, "slot", Identity::Slot),
        (Dialect::Four, "headers", Identity::Token),
        (Dialect::Four, "plugin", Identity::Token),
    ] {
        let there = Sessions::of(dialect, attribution, "").await;
        there.gateway.always(vec![Step::Ask("fake-echo"), Step::Ask("fake-echo")]);
        let outcome = there.run("r1", "acct-7", "Is anybody there?").await;
        assert_eq!(outcome.code, Some(0), "{attribution} {:?} {outcome:?}", there.gateway.calls());
        assert_eq!(answer(&outcome), "Is anybody there?Is anybody there?", "{attribution}");
        for line in there.world.records(2).await {
            let record = line.record;
            assert_eq!((record.run_id.as_str(), record.account.as_str()), ("r1", "acct-7"), "{attribution}");
            assert_eq!((record.identity, record.status), (identity, 200), "{attribution}");
        }
        // The same proof is worth nothing after the end.
        let runs = there.world.control.run(&"r1".parse().unwrap()).await.unwrap();
        assert_eq!(runs.state, RunState::Closed);
        let frame =
            there.gateway.requests(if dialect == Dialect::Three { "chat.send" } else { "agent" }).remove(0);
        assert_eq!(frame["params"]["idempotencyKey"], "r1");
    }
}

#[tokio::test]
async fn eight_at_once_of_four_accounts_never_mix() {
    let there = Sessions::of(Dialect::Four, "trace", "").await;
    there.gateway.always(vec![Step::Ask("fake-echo-gap5ms"), Step::Tool, Step::Ask("fake-echo-gap5ms")]);
    let runs: Vec<_> =
        (0..8).map(|n| (format!("r{n}"), format!("acct-{}", n % 4), format!("word-{n} "))).collect();
    let outcomes = join_all(runs.iter().map(|(run, account, word)| there.run(run, account, word))).await;
    for ((_, _, word), outcome) in runs.iter().zip(&outcomes) {
        assert_eq!(answer(outcome), word.repeat(2), "its own words, and nobody else's");
        for event in outcome.events().iter().filter(|event| event["type"] == "text_delta") {
            assert!(word.repeat(2).contains(event["delta"].as_str().unwrap()), "{event}");
        }
    }
    let mut calls = there.calls(16).await;
    calls.sort();
    let expected = runs.iter().flat_map(|(run, account, _)| {
        let call = (run.clone(), account.clone(), 200);
        [call.clone(), call]
    });
    assert_eq!(calls, expected.collect::<Vec<_>>());
    // The upstream billed what the journal has.
    let billed = there.world.upstream.ledger().all();
    assert_eq!(billed.len(), 16);
}

/// Its refusal does not disturb runs of the gateway.
#[tokio::test]
async fn a_gateways_own_call_is_unattributed() {
    let there = Sessions::of(Dialect::Four, "trace", "").await;
    there.gateway.always(vec![Step::Ask("fake-echo")]);
    let address = there.gateway.calls();
    assert!(address.is_empty());
    let own = register(&there, "again").await;
    let trace = "00-ffffffffffffffffffffffffffffffff-00f067aa0ba902b7-01";
    let heartbeat = own
        .with_header("traceparent", trace)
        .post("/v1/chat/completions", &chat_body("fake", Answering::Streamed))
        .await;
    assert_eq!(
        (heartbeat.status.as_u16(), heartbeat.json()["error"]["code"].clone()),
        (400, json!("unattributed"))
    );
    assert_eq!(answer(&there.run("r1", "acct-1", "still").await), "still");
    let calls = there.calls(2).await;
    assert_eq!((calls[0].0.as_str(), calls[1].0.as_str()), ("unattributed", "r1"), "{calls:?}");
}

/// Returns a client of the shared listener without a credential or correlation.
async fn register(there: &Sessions, run: &str) -> Agent {
    let address = harness::shared::register_shared(&there.world, harness::grant(run, "nobody")).await;
    Agent::over_tcp(address).searched()
}

/// Returns the status of a call that a sub-agent makes `later` than the end of its turn: 200 if it still is the run's.
async fn is_heard(there: &Sessions, asks: &'static str, run: &str, later: impl Future<Output = ()>) -> u16 {
    there.gateway.always(vec![Step::Ask(asks), Step::EndAs("done".to_owned())]);
    let running = there.world.sluice().spawn(&[
        "run",
        "--json",
        "--agent",
        super::AGENT,
        "--run-id",
        run,
        "call: sessions_spawn {}",
    ]);
    let ended = || async { there.gateway.calls().iter().filter(|call| call.session.ends_with(run)).count() };
    eventually("the turn has asked", ended, |calls| *calls > 0).await;
    later.await;
    let frame = there.gateway.requests("agent").pop().unwrap();
    let own = register(there, &format!("at-{run}")).await;
    let sub_agent = own.with_header("traceparent", frame["traceparent"].as_str().unwrap());
    let status =
        sub_agent.post("/v1/chat/completions", &chat_body("fake", Answering::Streamed)).await.status.as_u16();
    assert!(running.wait_with_output().await.unwrap().status.success());
    status
}

/// Waits until a run is over for the proxy.
async fn closed(there: &Sessions, run: &str) {
    let id = run.parse().unwrap();
    let state = || async { there.world.control.run(&id).await.unwrap().state };
    eventually("the run is closed", state, |state| *state == RunState::Closed).await;
}

/// Without sub-agents, attribution ends with the turn.
#[tokio::test]
async fn late_sub_agent_calls_belong_to_the_run() {
    let there = Sessions::of(Dialect::Four, "trace", "").await;
    // Longer than a run without sub-agents stays open, and shorter than one with them does.
    let later = pace(Duration::from_millis(1500));
    assert_eq!(is_heard(&there, "fake-steps", "r1", later).await, 200);
    let calls = there.calls(2).await;
    assert!(calls.iter().all(|(run, _, _)| run == "r1"), "{calls:?}");
    // The control: a turn that has started no sub-agent.
    assert_eq!(is_heard(&there, "fake-words2", "r2", closed(&there, "r2")).await, 400);
}

/// Counts the slots that another run could have now.
async fn free_slots(there: &Sessions, run: &str) -> usize {
    register(there, run).await;
    let mut free = 0;
    for slot in super::slots() {
        let path = format!("/v1/runs/{run}/slots/{slot}");
        free += usize::from(there.world.control.send(Method::PUT, &path, String::new()).await.status == 200);
    }
    there.world.control.close(&run.parse().unwrap(), 0).await.unwrap();
    free
}

/// The gateway may still call with it, since the end of the turn is unknown.
#[tokio::test]
async fn the_slot_of_a_lost_turn_is_quarantined() {
    let there = Sessions::of(Dialect::Four, "slot", "run_timeout = '20s'").await;
    there.gateway.always(vec![Step::Ask("fake-echo"), Step::Restart]);
    assert_eq!(code(&there.run("r1", "acct-1", "gone").await), "session_lost");
    assert_eq!(free_slots(&there, "others").await, super::slots().count() - 1);
}

/// Sub-agents may go on after the turn and call with its slot.
#[tokio::test]
async fn the_slot_of_sub_agents_is_quarantined() {
    let there = Sessions::of(Dialect::Four, "slot", "").await;
    there.gateway.always(vec![Step::Ask("fake-steps"), Step::EndAs("done".to_owned())]);
    let outcome = there.run("r1", "acct-1", "call: sessions_spawn {}").await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(free_slots(&there, "others").await, super::slots().count() - 1);
}

#[tokio::test]
async fn the_slot_of_a_run_that_is_over_is_free() {
    let there = Sessions::of(Dialect::Four, "slot", "").await;
    there.gateway.always(vec![Step::Ask("fake-steps"), Step::EndAs("done".to_owned())]);
    let outcome = there.run("r1", "acct-1", "call: exec {}").await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(free_slots(&there, "others").await, super::slots().count());
}
