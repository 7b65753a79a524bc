//! Tests how turns end: each failure has one name in both dialects. Every end of a turn also ends its spending.

use std::time::Duration;

use bench::upstream::ScriptedUpstream;
use gateway_bridge::{Attribution, Ending, Error, Turn, TurnFailure};
use harness::{
    eventually,
    gateway::{
        Abort, Cue, Dialect, ScriptedGateway, Step,
        bridged::{
            Told, asking, by_model, first_text, run, session, to_scripted, told, turn_in, without_trace,
        },
    },
    holds_for,
};
use platform_core::id::GatewayProvider;
use tokio::time::Instant;

fn failure(told: &Told) -> &TurnFailure {
    match &told.ending {
        Ending::Failed(failure) => failure,
        completed => panic!("it did not fail: {completed:?}"),
    }
}

#[tokio::test]
async fn recorded_failures_fail_in_both_dialects() {
    for dialect in Dialect::ALL {
        let gateway = ScriptedGateway::with_headers(dialect).await;
        let bridge = to_scripted(&gateway);
        for story in [
            "status-401",
            "status-402",
            "status-403",
            "status-429",
            "status-500",
            "cut",
            "refused",
            "empty",
            "overflow",
        ] {
            gateway.always(vec![Step::Recorded(story)]);
            let told = run(&bridge, turn_in(dialect, story)).await;
            let is_named = matches!(
                failure(&told),
                TurnFailure::Upstream { .. } | TurnFailure::NoAnswer | TurnFailure::TimedOut
            );
            assert!(is_named, "{dialect:?} {story}: {:?}", told.ending);
        }
        gateway.always(vec![Step::Recorded("timeout")]);
        let told = run(&bridge, turn_in(dialect, "timeout")).await;
        let is_named =
            matches!(failure(&told), TurnFailure::TimedOut | TurnFailure::NoAnswer | TurnFailure::Aborted);
        assert!(is_named, "{dialect:?}: {:?}", told.ending);

        // The control: a recorded success is one.
        for story in ["success", "tool", "words"] {
            gateway.always(vec![Step::Recorded(story)]);
            let told = run(&bridge, turn_in(dialect, story)).await;
            assert!(!told.answer().is_empty(), "{dialect:?} {story}");
        }
        bridge.close().await;
    }
}

/// The gateway may pretend to abort the turn, or not answer the request.
#[tokio::test]
async fn a_deadline_ends_a_turn_despite_the_gateway() {
    for dialect in Dialect::ALL {
        for abort in [Abort::AsRecorded, Abort::Pretended, Abort::Unanswered] {
            let gateway = ScriptedGateway::with_headers(dialect).await;
            gateway.set(|options| options.abort = abort);
            gateway.always(vec![Step::say("One "), Step::Never]);
            let bridge = to_scripted(&gateway);
            bridge.ready().await.unwrap();
            let (began, patience) = (Instant::now(), Duration::from_millis(300));
            let told = run(&bridge, Turn { deadline: began + patience, ..turn_in(dialect, "a") }).await;
            assert_eq!(failure(&told), &TurnFailure::Deadline, "{dialect:?} {abort:?}");
            // An abort may take two seconds.
            let took = began.elapsed();
            assert!(
                took >= patience && took < patience + Duration::from_secs(20),
                "{dialect:?} {abort:?}: {took:?}"
            );
            assert!(!gateway.requests("chat.abort").is_empty(), "{dialect:?} {abort:?}");
            bridge.close().await;
        }
    }
}

#[tokio::test]
async fn cancelling_or_dropping_a_turn_aborts_it() {
    for dialect in Dialect::ALL {
        let gateway = ScriptedGateway::with_headers(dialect).await;
        gateway.always(vec![Step::say("One "), Step::Never]);
        let bridge = to_scripted(&gateway);
        let mut running = bridge.run(turn_in(dialect, "cancelled")).await.unwrap();
        first_text(&mut running).await;
        running.cancel();
        assert_eq!(failure(&told(running).await), &TurnFailure::Aborted, "{dialect:?}");

        let mut running = bridge.run(turn_in(dialect, "dropped")).await.unwrap();
        first_text(&mut running).await;
        let id = running.id().as_str().to_owned();
        drop(running);
        let aborts = || async {
            gateway
                .requests("chat.abort")
                .into_iter()
                .filter(|frame| frame["params"]["runId"] == id.as_str())
                .count()
        };
        eventually("a dropped turn is aborted", aborts, |count| *count > 0).await;

        // The control: a turn that is read is not.
        gateway.always(vec![Step::say("One "), Step::Pause(Duration::from_millis(50)), Step::say("two.")]);
        let before = gateway.requests("chat.abort").len();
        assert_eq!(run(&bridge, turn_in(dialect, "kept")).await.answer(), "One two.");
        assert_eq!(gateway.requests("chat.abort").len(), before, "{dialect:?}");
        bridge.close().await;
    }
}

#[tokio::test]
async fn an_aborted_turn_asks_its_model_nothing_more() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    for dialect in Dialect::ALL {
        let gateway = ScriptedGateway::with_headers(dialect).await;
        gateway.provider_at(&upstream.base_url());
        let cue = Cue::default();
        let bridge = to_scripted(&gateway);
        for (key, calls) in [("aborted", 1), ("kept", 2)] {
            upstream.ledger().clear();
            gateway.always(vec![Step::Ask("fake"), Step::Until(cue.clone()), Step::Ask("fake")]);
            let mut running = bridge.run(turn_in(dialect, key)).await.unwrap();
            first_text(&mut running).await;
            if key == "aborted" {
                running.cancel();
                told(running).await;
                cue.give();
            } else {
                told(running).await;
            }
            let asked = || async { upstream.ledger().len() };
            holds_for(Duration::from_millis(100), key, asked, |asked| *asked == calls).await;
        }
        bridge.close().await;
    }
}

#[tokio::test]
async fn an_oversized_message_is_refused_unsent() {
    for (dialect, too_large) in [(Dialect::Three, true), (Dialect::Four, false)] {
        let gateway = ScriptedGateway::with_headers(dialect).await;
        let bridge = to_scripted(&gateway);
        bridge.ready().await.unwrap();
        let large = Turn { message: "x".repeat(600 << 10), ..turn_in(dialect, "a") };
        match bridge.run(large).await {
            Err(Error::TooLarge { size, limit, .. }) => {
                assert!(too_large && size > limit && limit == 512 << 10, "{dialect:?}: {size} {limit}");
            }
            Ok(running) => assert_eq!((told(running).await.answer(), too_large), ("Hello there.", false)),
            Err(error) => panic!("{dialect:?}: {error:?}"),
        }
        assert_eq!(gateway.accepted(), 1, "{dialect:?}: the connection was lost");
        bridge.close().await;
    }
}

/// The turn goes on over the next connection.
#[tokio::test]
async fn an_oversized_frame_costs_only_its_connection() {
    let gateway = ScriptedGateway::with_headers(Dialect::Four).await;
    let bridge = to_scripted(&gateway);
    gateway.always(vec![
        Step::Oversize(27 << 20),
        Step::Pause(Duration::from_millis(100)),
        Step::EndAs("Short.".to_owned()),
    ]);
    assert_eq!(run(&bridge, turn_in(Dialect::Four, "a")).await.answer(), "Short.");
    assert_eq!(bridge.counts().oversize, 1);
}

#[tokio::test]
async fn not_now_is_no_upstream_failure() {
    let gateway = ScriptedGateway::with_headers(Dialect::Four).await;
    let bridge = to_scripted(&gateway);
    gateway.script(session("a").as_str(), vec![Step::NotNow(Duration::from_millis(20))]);
    let told = run(&bridge, turn_in(Dialect::Four, "a")).await;
    match &told.ending {
        Ending::Completed { text, .. } => assert_eq!(text, "Hello there."),
        Ending::Failed(failure) => assert!(matches!(failure, TurnFailure::Refused { .. }), "{failure:?}"),
    }
}

/// A gateway that cannot carry an attribution refuses the turn; a slot works everywhere.
#[tokio::test]
async fn attributions_are_sent_or_refused() {
    let gateway = ScriptedGateway::start(Dialect::Four).await;
    let bridge = to_scripted(&gateway);
    let traced = asking(&session("a"), "hello");
    let Attribution::Trace(trace) = &traced.attribution else { panic!() };
    let trace = trace.trace.to_string();
    assert_ne!(run(&bridge, traced).await.answer(), "");
    let frame = gateway.requests("agent").pop().unwrap();
    assert_eq!(frame["traceparent"].as_str().unwrap().split('-').nth(1), Some(trace.as_str()));

    // A stock gateway takes no headers in its frames.
    let refused = run(&bridge, without_trace(asking(&session("a"), "hello"))).await;
    assert!(matches!(failure(&refused), TurnFailure::Refused { .. }), "{:?}", refused.ending);

    gateway.set(|options| options.version = Some("2026.7.35".to_owned()));
    let older = to_scripted(&gateway);
    let before = gateway.requests("agent").len();
    let error = older.run(asking(&session("a"), "hello")).await.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");
    let slot = Attribution::Slot { provider: GatewayProvider::parse("cogni-s1").unwrap() };
    let slotted = by_model(Turn { attribution: slot, ..asking(&session("b"), "hello") }, "fake");
    assert_ne!(run(&older, slotted).await.answer(), "");
    assert_eq!(gateway.requests("agent").len() - before, 1);
    let frames = gateway.seen();
    assert!(frames.iter().any(|seen| seen.frame.to_string().contains("cogni-s1")), "the slot was not chosen");
}

#[tokio::test]
async fn status_events_carry_no_text() {
    let gateway = ScriptedGateway::with_headers(Dialect::Four).await;
    let bridge = to_scripted(&gateway);
    let turn = turn_in(Dialect::Four, "a");
    let status = serde_json::json!({
        "type": "event", "event": "chat",
        "payload": {
            "runId": turn.run_id.as_str(), "sessionKey": turn.session.as_str(), "agentId": "main", "seq": 1,
            "state": "status", "phase": "preparing_context",
            "message": { "role": "assistant", "content": [{ "type": "text", "text": "STATUS" }] },
        },
    });
    gateway.always(vec![Step::Frame(status), Step::say("One.")]);
    let told = run(&bridge, turn).await;
    assert_eq!((told.answer(), told.text().as_str()), ("One.", "One."), "{:?}", told.events);
}
