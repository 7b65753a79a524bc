//! Connections to a gateway: refused for good, refused for now, broken at any moment, and made again.

use std::time::Duration;

use gateway_bridge::{Ending, Error, Gateway, GatewayLimits, TurnFailure};
use harness::{
    eventually,
    eventually::PATIENCE,
    gateway::{
        Cue, Dialect, Door, ScriptedGateway, Step, TOKEN,
        bridged::{asking, first_text, run, session, settings, to_scripted, told, turn_in, without_trace},
    },
    holds_for,
};

#[tokio::test]
async fn final_connection_errors_are_not_retried() {
    for dialect in Dialect::ALL {
        let gateway = ScriptedGateway::start(dialect).await;
        let wrong = Gateway::open(settings(&gateway.url(), "wrong"));
        let error = wrong.ready().await.unwrap_err();
        assert!(matches!(error, Error::BadToken { .. }), "{dialect:?}: {error:?}");
        assert!(!error.to_string().contains("wrong"), "the token is told: {error}");
        assert!(matches!(wrong.run(asking(&session("a"), "hello")).await, Err(Error::BadToken { .. })));

        gateway.door(Door::Recorded("protocol-too-new"));
        let mismatch = to_scripted(&gateway);
        let error = mismatch.ready().await.unwrap_err();
        assert!(matches!(error, Error::ProtocolMismatch { .. }), "{dialect:?}: {error:?}");
        let attempts = || async { gateway.accepted() };
        holds_for(Duration::from_millis(300), "it is not tried again", attempts, |count| *count == 2).await;

        // The control: a failure that may pass is tried again in that time.
        gateway.door(Door::Closed(1013, "gateway starting"));
        to_scripted(&gateway).ready().await.unwrap();
        assert_eq!(gateway.accepted(), 4, "{dialect:?}");
    }
}

#[tokio::test]
async fn rights_and_pairing_that_are_missing_are_named() {
    let gateway = ScriptedGateway::start(Dialect::Four).await;
    gateway.door(Door::Recorded("handshake-no-scopes"));
    let error = to_scripted(&gateway).ready().await.unwrap_err();
    assert!(
        matches!(&error, Error::MissingScopes { missing } if missing.contains(&"operator.write")),
        "{error:?}"
    );
    gateway.door(Door::Recorded("remote-unpaired"));
    let error = to_scripted(&gateway).ready().await.unwrap_err();
    assert!(matches!(error, Error::PairingRequired { .. }), "{error:?}");
}

#[tokio::test]
async fn transient_connection_errors_are_retried() {
    let doors = [
        Door::NotYet(Duration::from_millis(30)),
        Door::Shut,
        Door::Closed(1008, "slow consumer"),
        Door::Closed(1009, ""),
        Door::Closed(1011, "internal error"),
        Door::Closed(1012, "service restart"),
        Door::Closed(1013, "try again later"),
        Door::Text("no JSON"),
    ];
    let count = doors.len() as u64;
    let gateway = ScriptedGateway::start(Dialect::Four).await;
    doors.into_iter().for_each(|door| gateway.door(door));
    let mut settings = settings(&gateway.url(), TOKEN);
    settings.limits = GatewayLimits { handshake: Duration::from_millis(300), ..settings.limits };
    let bridge = Gateway::open(settings);
    let hello = tokio::time::timeout(PATIENCE, bridge.ready()).await.unwrap().unwrap();
    assert_eq!(hello.version.as_str(), "2026.9.6");
    assert_eq!((gateway.accepted(), bridge.counts().failed_attempts), (count + 1, count));
}

#[tokio::test]
async fn a_silent_door_is_left_after_a_while() {
    let gateway = ScriptedGateway::start(Dialect::Four).await;
    gateway.door(Door::Silent);
    let mut settings = settings(&gateway.url(), TOKEN);
    settings.limits = GatewayLimits { handshake: Duration::from_millis(100), ..settings.limits };
    let bridge = Gateway::open(settings);
    bridge.ready().await.unwrap();
    assert_eq!((gateway.accepted(), bridge.counts().failed_attempts), (2, 1));
}

#[tokio::test]
async fn a_unix_socket_is_as_good() {
    let gateway = ScriptedGateway::start(Dialect::Four).await;
    let bridge = Gateway::open(settings(&format!("unix:{}", gateway.socket().display()), TOKEN));
    assert_eq!(run(&bridge, asking(&session("a"), "hello")).await.answer(), "Hello there.");
}

#[tokio::test]
async fn a_turn_survives_any_end_of_its_connection() {
    let ends = [
        Step::Cut,
        Step::Close(1000, ""),
        Step::Close(1001, "going away"),
        Step::Close(1002, "protocol error"),
        Step::Close(1008, "slow consumer"),
        Step::Close(1009, ""),
        Step::Close(1011, "internal error"),
        Step::Close(1012, "service restart"),
        Step::Close(1013, "try again later"),
    ];
    for dialect in Dialect::ALL {
        for end in ends.clone() {
            let gateway = ScriptedGateway::with_headers(dialect).await;
            let bridge = to_scripted(&gateway);
            let cue = Cue::default();
            let steps = vec![
                Step::say("One "),
                Step::Until(cue.clone()),
                end.clone(),
                Step::Pause(Duration::from_millis(50)),
            ];
            gateway.always([steps, vec![Step::say("two.")]].concat());
            let mut running = bridge.run(turn_in(dialect, "a")).await.unwrap();
            first_text(&mut running).await;
            cue.give();
            let told = told(running).await;
            assert_eq!(told.answer(), "One two.", "{dialect:?} {end:?}");
            assert!(
                !told.text().contains("One"),
                "{dialect:?} {end:?}: it was told again: {:?}",
                told.events
            );
            // On protocol 3 the bridge asks by the turn's own key whether it is over; that is not a second turn.
            let sent = [gateway.requests("agent"), gateway.requests("chat.send")].concat();
            let runs = sent.iter().filter(|frame| frame["params"]["message"] != "again").count();
            assert_eq!((runs, bridge.counts().connections), (1, 2), "{dialect:?} {end:?}");
        }
    }
}

/// The next turn succeeds.
#[tokio::test]
async fn a_turn_that_a_restart_lost_fails_alone() {
    for dialect in Dialect::ALL {
        let gateway = ScriptedGateway::with_headers(dialect).await;
        let bridge = to_scripted(&gateway);
        gateway.script(session("a").as_str(), vec![Step::say("One "), Step::Restart]);
        let mut turn = without_trace(asking(&session("a"), "hello"));
        turn.deadline = tokio::time::Instant::now() + Duration::from_secs(3);
        let lost = run(&bridge, turn).await;
        let is_named = matches!(lost.ending, Ending::Failed(TurnFailure::Lost | TurnFailure::Deadline));
        assert!(is_named, "{dialect:?}: {:?}", lost.ending);
        let next = run(&bridge, without_trace(asking(&session("a"), "hello"))).await;
        assert_eq!(next.answer(), "Hello there.", "{dialect:?}");
    }
}

#[tokio::test]
async fn a_gateway_that_falls_silent_is_left() {
    let tick = Duration::from_millis(500);
    for (ticks, connections) in [(None, 2), (Some(tick), 1)] {
        let gateway = ScriptedGateway::start(Dialect::Four).await;
        gateway.set(|options| (options.announced_tick, options.tick) = (tick, ticks));
        let bridge = to_scripted(&gateway);
        bridge.ready().await.unwrap();
        if connections == 2 {
            let count = || async { bridge.counts().silent };
            eventually("silence is noticed", count, |silent| *silent > 0).await;
            eventually("and left", || async { bridge.counts().connections }, |count| *count > 1).await;
        } else {
            // The control: it is kept as long while it ticks.
            let counts = || async { (bridge.counts().silent, bridge.counts().connections) };
            holds_for(5 * tick, "it is kept", counts, |counts| *counts == (0, 1)).await;
        }
    }
}
