//! Tests the whole client against a gateway that each test scripts.
//!
//! The whole-system tests cover real gateways and their faults.

mod peer;
mod three;
mod tls;

use std::time::Duration;

use platform_core::id::{AccountId, GatewayProvider, ModelName, RunId};
use serde_json::json;
use tokio::time::{Instant, timeout};

use self::peer::{Listener, Peer};
use crate::{
    Attribution, Begun, BootId, Code, Decision, Delivery, Ending, Error, Gateway, OutboundHeaders, Running,
    SessionKey, SubscriptionItem, Turn, TurnEvent, TurnFailure,
};

fn turn(id: &str) -> Turn {
    let account = AccountId::parse("a").unwrap();
    Turn {
        run_id: RunId::parse(id).unwrap(),
        session: SessionKey::new("main", &account, id).unwrap(),
        message: "Hello".into(),
        model: Some(ModelName::parse("fake").unwrap()),
        directory: None,
        attribution: Attribution::Slot { provider: GatewayProvider::parse("s1").unwrap() },
        deadline: Instant::now() + Duration::from_secs(60),
    }
}

/// Returns a connection with one turn that the gateway has accepted.
async fn begun(listener: &Listener, turn: Turn) -> (Gateway, Running, Peer, serde_json::Value) {
    let gateway = listener.open();
    let mut peer = listener.hello(json!({})).await;
    let running = gateway.run(turn).await.unwrap();
    let request = peer.accept_turn().await;
    (gateway, running, peer, request)
}

/// Returns a text in which each layer is written in a string beside a name that serde_json reserves.
pub(crate) fn raw_nest(layers: usize) -> String {
    let escaped = |text: &str| text.replace('\\', "\\u005c").replace('"', "\\u0022");
    (0..layers).fold("1".to_owned(), |inner, _| {
        format!(r#"{{"$serde_json::private::RawValue":"{}"}}"#, escaped(&inner))
    })
}

async fn texts(running: &mut Running) -> String {
    let mut streamed = String::new();
    while let Some(event) = running.next().await {
        if let TurnEvent::Text(text) = event {
            streamed += &text;
        }
    }
    streamed
}

fn failed(ending: &Ending) -> &TurnFailure {
    let Ending::Failed(failure) = ending else { panic!("{ending:?}") };
    failure
}

#[tokio::test]
async fn a_turn_streams_pieces_and_ends_with_its_text() {
    let listener = Listener::bind();
    let (gateway, mut running, mut peer, request) = begun(&listener, turn("r1")).await;
    assert_eq!(request["params"]["provider"], "s1");
    peer.text(&request, "Hel", "Hel", json!({})).await;
    peer.text(&request, "no", "no", json!({ "sessionKey": "agent:main:acctb:kr1" })).await;
    peer.text(&request, "no", "no", json!({ "runId": "r2" })).await;
    peer.text(&request, "no", "no", json!({ "sessionKey": null })).await;
    peer.text(&request, "lo", "Hello", json!({})).await;
    peer.complete_turn(&request, "Hello!").await;
    assert_eq!(texts(&mut running).await, "Hello");
    let Ending::Completed { text, usage, model } = running.ending().await else { panic!() };
    assert_eq!((text.as_str(), usage.unwrap().output, model.unwrap().as_str()), ("Hello!", 4, "fake"));
    peer.text(&request, "late", "late", json!({})).await;
    peer.event("tick", json!({})).await;
    peer.send_frame(json!({ "type": "res", "id": "999", "ok": true, "payload": {} })).await;
    peer.send_frame(json!({ "type": "event" })).await;
    let known = async {
        let request = peer.expect("health").await;
        peer.answer(&request, json!({})).await;
    };
    let (called, ()) = tokio::join!(gateway.call("health", json!({})), known);
    called.unwrap();
    let counts = gateway.counts();
    assert_eq!((counts.unattributed, counts.late, counts.malformed, counts.connections), (4, 1, 1, 1));
}

#[tokio::test]
async fn a_stalled_reader_delays_no_other_turn() {
    let listener = Listener::bind();
    let (gateway, slow, mut peer, request) = begun(&listener, turn("slow")).await;
    let mut other = gateway.run(turn("other")).await.unwrap();
    let second = peer.accept_turn().await;
    let piece = "x".repeat(60_000);
    for number in 0..100 {
        let part = json!({ "data": { "delta": piece, "itemId": format!("m:{number}") } });
        peer.text(&request, "", "", part).await;
    }
    peer.text(&second, "Here", "Here", json!({})).await;
    peer.complete_turn(&second, "Here").await;
    assert_eq!(timeout(Duration::from_secs(5), texts(&mut other)).await.unwrap(), "Here");
    peer.complete_turn(&request, "All of it.").await;
    let mut slow = slow;
    let mut kept = 0;
    let mut missed = 0;
    while let Some(event) = slow.next().await {
        match event {
            TurnEvent::Text(text) => kept += text.len(),
            TurnEvent::Missed { bytes } => missed += bytes,
            _ => {}
        }
    }
    assert!(kept <= 256 << 10 && kept + missed >= 6_000_000, "{kept} {missed}");
    assert_eq!(gateway.counts().slow_readers, 1);
    assert!(matches!(slow.ending().await, Ending::Completed { text, .. } if text == "All of it."));
}

#[tokio::test]
async fn deadline_cancel_and_drop_abort_the_turn() {
    let listener = Listener::bind();
    let soon = Turn { deadline: Instant::now() + Duration::from_millis(50), ..turn("deadline") };
    let (_gateway, running, mut peer, _) = begun(&listener, soon).await;
    let abort = peer.expect("chat.abort").await;
    assert_eq!(abort["params"], json!({ "sessionKey": "agent:main:accta:kdeadline", "runId": "deadline" }));
    // The gateway never answers, and the ending comes all the same.
    assert_eq!(failed(&running.ending().await), &TurnFailure::Deadline);

    let (_gateway, running, mut peer, request) = begun(&listener, turn("cancelled")).await;
    running.cancel();
    let abort = peer.expect("chat.abort").await;
    peer.answer(&abort, json!({ "ok": true, "aborted": false, "runIds": [] })).await;
    // The gateway did not know the turn yet: the abort is sent again.
    let abort = peer.expect("chat.abort").await;
    peer.answer(
        &abort,
        json!({ "ok": true, "aborted": true, "runIds": [request["params"]["idempotencyKey"]] }),
    )
    .await;
    assert_eq!(failed(&running.ending().await), &TurnFailure::Aborted);

    let (gateway, running, mut peer, _) = begun(&listener, turn("dropped")).await;
    drop((running, gateway));
    let abort = peer.expect("chat.abort").await;
    peer.answer(&abort, json!({ "ok": true, "aborted": true })).await;
}

#[tokio::test]
async fn a_turn_outlives_its_connection() {
    let listener = Listener::bind();
    let (gateway, mut running, mut peer, request) = begun(&listener, turn("r1")).await;
    peer.text(&request, "One", "One", json!({})).await;
    peer.close(1006).await;
    let mut peer = listener.hello(json!({})).await;
    let wait = peer.expect("agent.wait").await;
    peer.text(&request, " more", "One two more", json!({})).await;
    peer.answer(&wait, json!({ "status": "ok", "endedAt": 2, "terminalReply": { "text": "One two more." } }))
        .await;
    assert_eq!(texts(&mut running).await, "One two more");
    assert!(matches!(running.ending().await, Ending::Completed { text, .. } if text == "One two more."));
    assert_eq!(gateway.counts().connections, 2);
}

#[tokio::test]
async fn a_restarted_gateway_loses_its_turns() {
    let listener = Listener::bind();
    let (_gateway, running, peer, _) = begun(&listener, turn("r1")).await;
    peer.close(1012).await;
    let mut peer = listener.hello(json!({ "server": { "version": "2026.9.6", "bootId": "b2" } })).await;
    peer.forget_turn().await;
    assert_eq!(failed(&running.ending().await), &TurnFailure::Lost);

    // The turn was not accepted when the connection broke. The same start of the gateway receives it again; another
    // start is only asked for it.
    let gateway = listener.open();
    let mut peer = listener.hello(json!({})).await;
    let running = gateway.run(turn("r2")).await.unwrap();
    peer.expect("agent").await;
    peer.close(1006).await;
    let mut peer = listener.hello(json!({})).await;
    peer.expect("agent").await;
    peer.close(1012).await;
    let mut peer = listener.hello(json!({})).await;
    peer.forget_turn().await;
    assert_eq!(failed(&running.ending().await), &TurnFailure::Lost);
}

#[tokio::test]
async fn a_taken_up_turn_is_resent_to_its_boot_only() {
    let first = "b1@".parse::<BootId>().unwrap();
    let second = "b0@".parse::<BootId>().unwrap();
    for (at, delivery) in [
        (&first, Delivery::Confirmed),
        (&first, Delivery::Unconfirmed),
        (&second, Delivery::Confirmed),
        (&second, Delivery::Unconfirmed),
    ] {
        let listener = Listener::bind();
        let gateway = listener.open();
        let mut peer = listener.hello(json!({})).await;
        let running = gateway.resume(turn("r1"), Begun { at: at.clone(), delivery }).await.unwrap();
        match (at == &first, delivery) {
            (true, Delivery::Unconfirmed) => {
                let request = peer.expect("agent").await;
                peer.complete_turn(&request, "as it was").await;
            }
            (true, Delivery::Confirmed) => {
                let wait = peer.expect("agent.wait").await;
                peer.answer(&wait, json!({ "status": "ok" })).await;
                let history = peer.expect("chat.history").await;
                let answer = json!({ "role": "assistant", "content": "as it was", "stopReason": "stop" });
                peer.answer(&history, json!({ "messages": [answer] })).await;
            }
            (false, _) => {
                peer.forget_turn().await;
                assert_eq!(failed(&running.ending().await), &TurnFailure::Lost, "{delivery:?}");
                continue;
            }
        }
        let ending = running.ending().await;
        assert!(matches!(&ending, Ending::Completed { text, .. } if text == "as it was"), "{ending:?}");
    }
}

#[tokio::test]
async fn a_session_gets_its_directory_first() {
    let listener = Listener::bind();
    let gateway = listener.open();
    let mut peer = listener.hello(json!({ "server": { "version": "2026.9.6", "connId": "c" } })).await;
    let in_directory = |id| Turn { directory: Some("/workspace/sessions/1".into()), ..turn(id) };
    let running = gateway.run(in_directory("r1")).await.unwrap();
    let create = peer.expect("sessions.create").await;
    assert_eq!(
        create["params"],
        json!({ "key": "agent:main:accta:kr1", "agentId": "main", "cwd": "/workspace/sessions/1" })
    );
    peer.answer(&create, json!({ "ok": true })).await;
    let request = peer.accept_turn().await;
    peer.complete_turn(&request, "Done").await;
    assert!(matches!(running.ending().await, Ending::Completed { .. }));

    // A turn does without one that is refused.
    let running = gateway.run(in_directory("r3")).await.unwrap();
    let create = peer.expect("sessions.create").await;
    peer.refuse(&create, json!({ "code": "INVALID_REQUEST", "message": "no such parameter" })).await;
    let request = peer.accept_turn().await;
    peer.complete_turn(&request, "Done").await;
    assert!(matches!(running.ending().await, Ending::Completed { .. }));

    // An older one has no such parameter.
    let listener = Listener::bind();
    let gateway = listener.open();
    let mut peer = listener.hello(json!({ "server": { "version": "2026.8.2", "connId": "c" } })).await;
    let _running = gateway.run(in_directory("r2")).await.unwrap();
    peer.accept_turn().await;
}

#[tokio::test]
async fn headers_are_set_and_cleared_around_a_turn() {
    let listener = Listener::bind();
    let gateway = listener.open();
    let mut peer = listener.hello(json!({})).await;
    let headers = OutboundHeaders::new([("x-run-token", "t")]).unwrap();
    let running =
        gateway.run(Turn { attribution: Attribution::Plugin(headers), ..turn("r1") }).await.unwrap();
    let patch = peer.expect("sessions.patch").await;
    assert_eq!(patch["params"], json!({ "key": "agent:main:accta:kr1" }));
    peer.answer(&patch, json!({ "entry": { "sessionId": "s-1" } })).await;
    let set = peer.expect("sluicegate.headers.set").await;
    assert_eq!(set["params"], json!({ "sessionId": "s-1", "headers": { "x-run-token": "t" } }));
    peer.answer(&set, json!({ "ok": true })).await;
    let request = peer.accept_turn().await;
    assert_eq!(request["params"].get("outboundHeaders"), None);
    peer.complete_turn(&request, "Done").await;
    let clear = peer.expect("sluicegate.headers.clear").await;
    assert_eq!(clear["params"], json!({ "sessionId": "s-1" }));
    let busy = gateway.run(turn("r1")).await;
    assert!(matches!(busy, Err(Error::Busy { .. })), "{busy:?}");
    peer.answer(&clear, json!({ "ok": true })).await;
    assert!(matches!(running.ending().await, Ending::Completed { .. }));
    drop(gateway.run(turn("r1")).await.unwrap());
}

#[tokio::test]
async fn invalid_turns_are_refused_before_sending() {
    let listener = Listener::bind();
    let gateway = listener.open();
    let mut peer = listener.hello(json!({ "server": { "version": "2026.7.35" } })).await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap();
    let refusals = [
        (
            Turn { attribution: Attribution::Trace(trace), ..turn("r") },
            "gateway version 2026.7.35 cannot pass a trace id",
        ),
        (Turn { model: None, ..turn("r") }, "a slot needs the model"),
        (Turn { message: String::new(), ..turn("r") }, "there is no message"),
        (Turn { message: "x".repeat(70_000), ..turn("r") }, "agent has 70"),
    ];
    for (turn, reason) in refusals {
        let error = gateway.run(turn).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    let call = gateway.call("x", json!({ "y": "z".repeat(70_000) })).await;
    assert!(matches!(call, Err(Error::TooLarge { limit: 65536, .. })), "{call:?}");
    assert_eq!(gateway.counts().too_large, 2);
    // The control: a valid turn is sent, and nothing was sent before it.
    drop(gateway.run(turn("r")).await.unwrap());
    peer.expect("agent").await;
}

#[tokio::test]
async fn silence_reconnects_and_a_final_refusal_ends() {
    let listener = Listener::bind();
    let gateway = listener.open();
    let peer = listener.hello(json!({ "policy": { "tickIntervalMs": 20 } })).await;
    let (mut peer2, connect) = listener.accept().await;
    drop(peer);
    assert_eq!(gateway.counts().silent, 1);
    peer2
        .refuse(&connect, json!({ "code": "INVALID_REQUEST", "details": { "code": "AUTH_TOKEN_MISMATCH" } }))
        .await;
    let error = gateway.ready().await.unwrap_err();
    assert!(
        matches!(&error, Error::BadToken { code } if *code == Code::new("AUTH_TOKEN_MISMATCH")),
        "{error}"
    );
    let call = gateway.call("health", json!({})).await;
    assert!(matches!(call, Err(Error::BadToken { .. })), "{call:?}");
}

#[tokio::test]
async fn subscribers_receive_events_of_no_run() {
    let listener = Listener::bind();
    let gateway = listener.open();
    let mut subscription = gateway.subscribe();
    let mut peer = listener.hello(json!({})).await;
    peer.event("session.message", json!({ "text": "of another session" })).await;
    peer.event("health", json!({ "$serde_json::private::RawValue": raw_nest(14) })).await;
    peer.event("health", (0..70).fold(json!({}), |inner, _| json!([inner]))).await;
    peer.event("exec.approval.requested", json!({ "id": "a1" })).await;
    let Some(SubscriptionItem::Notice(notice)) = subscription.next().await else { panic!() };
    assert!(
        notice.name.as_ref() == "health" && notice.payload.read::<serde_json::Value>().is_err(),
        "{notice:?}"
    );
    let Some(SubscriptionItem::Notice(notice)) = subscription.next().await else { panic!() };
    assert_eq!((notice.name.as_ref(), notice.payload.get()), ("exec.approval.requested", r#"{"id":"a1"}"#));
    let decided = async {
        let request = peer.expect("exec.approval.resolve").await;
        assert_eq!(request["params"], json!({ "id": "a1", "decision": "deny" }));
        peer.answer(&request, json!({ "ok": true })).await;
    };
    let (resolved, ()) = tokio::join!(gateway.resolve_approval("a1", Decision::Deny), decided);
    resolved.unwrap();
    for _ in 0..300 {
        peer.event("presence", json!({})).await;
    }
    let known = async {
        let request = peer.expect("health").await;
        peer.answer(&request, json!({})).await;
    };
    let (called, ()) = tokio::join!(gateway.call("health", json!({})), known);
    called.unwrap();
    assert_eq!(subscription.next().await, Some(SubscriptionItem::Missed(300 - 256)));
    assert_eq!(gateway.counts().connections, 1, "no event ends the connection");
    gateway.close().await;
    let mut last = subscription.next().await;
    while last.is_some() {
        last = subscription.next().await;
    }
}
