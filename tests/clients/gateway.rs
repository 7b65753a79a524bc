//! Tests the bridge with the real OpenClaw gateway. All cases share one gateway, because it takes long to start.

use std::time::Duration;

use bench::upstream::ScriptedUpstream;
use gateway_bridge::{Attribution, Ending, Error, Gateway, MessageRole, Turn, TurnFailure, Waited};
use harness::{
    eventually,
    gateway::bridged::{Told, asking, by_model, first_text, run, session, settings, to_openclaw, told},
    holds_for,
    openclaw::{OpenClaw, PROVIDER, Setup, Version},
};
use platform_core::id::GatewayProvider;
use tokio::time::Instant;

const LOOP: &str = "Please:\ncall: exec {\"command\":\"echo once\"}";

/// Returns a turn with a deadline that suits a real gateway.
fn turn(key: &str, message: &str) -> Turn {
    Turn { deadline: Instant::now() + Duration::from_secs(100), ..asking(&session(key), message) }
}

/// Returns the traces of the calls that a user's message caused.
fn traces(upstream: &ScriptedUpstream, message: &str) -> Vec<String> {
    let all = upstream.ledger().all();
    let own = all.iter().filter(|call| String::from_utf8_lossy(&call.body).contains(message));
    own.map(|call| call.header("traceparent")[0].split('-').nth(1).unwrap().to_owned()).collect()
}

fn trace(turn: &Turn) -> String {
    match &turn.attribution {
        Attribution::Trace(parent) => parent.trace.to_string(),
        other => panic!("{other:?}"),
    }
}

/// The gateway also stops on request.
#[tokio::test]
async fn a_real_gateway_keeps_turns_and_models_apart() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let models = ["fake-steps", "fake-words5", "fake-words400-gap50ms", "fake-status401", "fake-words0"];
    let gateway = OpenClaw::start(&Setup::new(&upstream.openai_base_url(), &models)).await;
    let bridge = to_openclaw(&gateway);
    let hello = bridge.ready().await.unwrap();
    assert!(hello.takes_traces(), "{hello:?}");

    a_wrong_token_is_named(&gateway).await;
    a_turn_is_waited_for_and_remembered(&bridge).await;
    tool_loops_that_run_at_once_never_mix(&bridge, &upstream).await;
    a_session_has_the_model_that_was_asked_for(&bridge, &upstream).await;
    a_turn_can_be_bound_to_a_provider(&bridge).await;
    an_abort_stops_what_is_spent(&bridge, &upstream).await;
    a_deadline_stops_it_too(&bridge, &upstream).await;
    an_upstream_that_fails_is_named(&bridge).await;
    bridge.close().await;
    gateway.stop().await;
}

async fn a_wrong_token_is_named(gateway: &OpenClaw) {
    let wrong = Gateway::open(settings(&gateway.url, "wrong"));
    assert!(matches!(wrong.ready().await, Err(Error::BadToken { .. })), "{:?}", wrong.trouble());
}

async fn a_turn_is_waited_for_and_remembered(bridge: &Gateway) {
    let turn = by_model(turn("told", "Say something."), "fake-words5");
    let (id, key) = (turn.run_id.clone(), turn.session.clone());
    let told = run(bridge, turn).await;
    assert_eq!(told.answer().split_whitespace().count(), 5, "{told:?}");
    assert_eq!(told.text().trim(), told.answer());
    let waited = bridge.wait(&id, Duration::from_secs(5)).await.unwrap();
    assert!(
        matches!(&waited, Waited::Completed { text } if text.as_deref().is_none_or(|t| t == told.answer()))
    );
    let history = bridge.history(&key).await.unwrap();
    let said: Vec<_> = history.iter().map(|message| (message.role, message.text.trim())).collect();
    assert_eq!(said, [(MessageRole::User, "Say something."), (MessageRole::Assistant, told.answer())]);
}

async fn tool_loops_that_run_at_once_never_mix(bridge: &Gateway, upstream: &ScriptedUpstream) {
    let turns = ["red", "green", "blue"].map(|name| (name, turn(name, &format!("I am {name}. {LOOP}"))));
    let all = turns.map(|(name, turn)| {
        let bridge = bridge.clone();
        async move {
            let trace = trace(&turn);
            (name, trace, run(&bridge, turn).await)
        }
    });
    for (name, trace, told) in futures_util::future::join_all(all).await {
        assert!(told.answer().contains("scripted upstream"), "{name}: {told:?}");
        assert_eq!(told.tools(), 1, "{name}: {told:?}");
        assert_eq!(traces(upstream, &format!("I am {name}.")), [trace.clone(), trace], "{name}");
    }
}

async fn a_session_has_the_model_that_was_asked_for(bridge: &Gateway, upstream: &ScriptedUpstream) {
    for (key, model) in [("five", "fake-words5"), ("steps", "fake-steps")] {
        assert_ne!(
            run(bridge, by_model(turn(key, &format!("By {model}, please.")), model)).await.answer(),
            ""
        );
        let call = upstream.ledger().last().unwrap();
        assert_eq!(call.json().unwrap()["model"], model);
    }
}

/// Checks that no call is open, and that none is made for a while.
async fn nothing_is_spent(upstream: &ScriptedUpstream) {
    let open = || async { upstream.ledger().all().iter().filter(|call| call.ending.is_open()).count() };
    eventually("no call is open", open, |open| *open == 0).await;
    let before = upstream.ledger().len();
    let calls = || async { upstream.ledger().len() };
    holds_for(Duration::from_secs(2), "no other call is made", calls, |calls| *calls == before).await;
}

fn failure(told: &Told) -> &TurnFailure {
    match &told.ending {
        Ending::Failed(failure) => failure,
        Ending::Completed { .. } => panic!("it did not fail: {told:?}"),
    }
}

async fn an_abort_stops_what_is_spent(bridge: &Gateway, upstream: &ScriptedUpstream) {
    let turn = by_model(turn("aborted", "Say much."), "fake-words400-gap50ms");
    let mut running = bridge.run(turn).await.unwrap();
    first_text(&mut running).await;
    running.cancel();
    assert_eq!(failure(&told(running).await), &TurnFailure::Aborted);
    nothing_is_spent(upstream).await;
}

async fn a_deadline_stops_it_too(bridge: &Gateway, upstream: &ScriptedUpstream) {
    let turn = by_model(turn("late", "Say much."), "fake-words400-gap50ms");
    let deadline = Instant::now() + Duration::from_secs(3);
    let told = run(bridge, Turn { deadline, ..turn }).await;
    assert_eq!(failure(&told), &TurnFailure::Deadline);
    nothing_is_spent(upstream).await;
}

/// Checks failing upstreams. The 401 comes last, because it locks the provider for a minute.
async fn an_upstream_that_fails_is_named(bridge: &Gateway) {
    for model in ["fake-words0", "fake-status401"] {
        let told = run(bridge, by_model(turn(model, "Say something."), model)).await;
        assert!(
            matches!(failure(&told), TurnFailure::Upstream { .. } | TurnFailure::NoAnswer),
            "{model}: {told:?}"
        );
    }
}

/// Checks a turn with a slot, which is its own provider.
async fn a_turn_can_be_bound_to_a_provider(bridge: &Gateway) {
    let told = run(bridge, by_slot(turn("slotted", "Say something."), "fake-words5")).await;
    assert_eq!(told.answer().split_whitespace().count(), 5, "{told:?}");
}

/// Returns `turn` for a gateway without traces, attributed by its only provider as if that were a slot.
fn by_slot(turn: Turn, model: &str) -> Turn {
    let provider = GatewayProvider::parse(PROVIDER).unwrap();
    by_model(Turn { attribution: Attribution::Slot { provider }, ..turn }, model)
}

#[tokio::test]
#[ignore = "needs the older OpenClaw: make test-openclaw VERSION=2026.2.6-3"]
async fn an_older_gateway_does_the_same() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let models = ["fake-steps", "fake-words5", "fake-words400-gap50ms", "fake-status401", "fake-words0"];
    let setup = Setup { version: Version::Old, ..Setup::new(&upstream.openai_base_url(), &models) };
    let gateway = OpenClaw::start(&setup).await;
    let bridge = to_openclaw(&gateway);
    let hello = bridge.ready().await.unwrap();
    assert!(!hello.takes_traces(), "{hello:?}");
    a_wrong_token_is_named(&gateway).await;

    let error = bridge.run(turn("traced", "hello")).await.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");
    let first = run(&bridge, by_slot(turn("told", "Say something."), "fake-words5")).await;
    assert_eq!(first.answer().split_whitespace().count(), 5, "{first:?}");
    assert_eq!(first.text().trim(), first.answer());
    let looped = run(&bridge, by_slot(turn("looped", LOOP), "fake-steps")).await;
    assert!(looped.answer().contains("scripted upstream"), "{looped:?}");

    let mut running =
        bridge.run(by_slot(turn("aborted", "Say much."), "fake-words400-gap50ms")).await.unwrap();
    first_text(&mut running).await;
    running.cancel();
    assert_eq!(failure(&told(running).await), &TurnFailure::Aborted);
    nothing_is_spent(&upstream).await;

    // The older gateway reports success for each of these.
    for model in ["fake-words0", "fake-status401"] {
        let told = run(&bridge, by_slot(turn(model, "Say something."), model)).await;
        assert!(
            matches!(failure(&told), TurnFailure::Upstream { .. } | TurnFailure::NoAnswer),
            "{model}: {told:?}"
        );
    }
    bridge.close().await;
    gateway.stop().await;
}
