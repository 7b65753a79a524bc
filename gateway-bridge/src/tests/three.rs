//! Tests turns of protocol 3, which reports `final` after the first attempt.

use serde_json::{Value, json};

use super::{Listener, Peer, failed, texts, turn};
use crate::{Code, Ending, Gateway, Running, TurnFailure};

/// Begins a turn that the gateway accepts: its model is the session's, and its method can be aborted.
async fn begun(listener: &Listener) -> (Gateway, Running, Peer, Value) {
    let gateway = listener.open();
    let mut peer = listener.hello(json!({ "protocol": 3, "server": { "version": "dev" } })).await;
    let running = gateway.run(turn("r1")).await.unwrap();
    let patch = peer.expect("sessions.patch").await;
    assert_eq!(patch["params"], json!({ "key": "agent:main:accta:kr1", "model": "s1/fake" }));
    peer.answer(&patch, json!({ "entry": { "sessionId": "s" } })).await;
    let request = peer.expect("chat.send").await;
    peer.answer(&request, json!({ "runId": "r1", "status": "started" })).await;
    (gateway, running, peer, request)
}

impl Peer {
    async fn finals(&mut self, text: Option<&str>) {
        let message =
            text.map(|text| json!({ "role": "assistant", "content": [{ "type": "text", "text": text }] }));
        let mut payload = json!({ "runId": "r1", "sessionKey": "agent:main:accta:kr1", "state": "final" });
        if let Some(message) = message {
            payload["message"] = message;
        }
        self.event("chat", payload).await;
    }

    /// Answers whether the turn continues.
    async fn status(&mut self, status: &str) {
        let again = self.expect("chat.send").await;
        assert_eq!(again["params"]["idempotencyKey"], "r1");
        self.answer(&again, json!({ "runId": "r1", "status": status })).await;
    }

    /// Sends that one more attempt begins: the event names its run alone.
    async fn begins_again(&mut self) {
        let data = json!({ "phase": "start" });
        self.event("agent", json!({ "runId": "r1", "stream": "lifecycle", "data": data })).await;
        let data = json!({ "delta": "not told", "text": "not told" });
        self.event("agent", json!({ "runId": "r1", "stream": "assistant", "data": data })).await;
    }

    async fn transcript(&mut self, stop_reason: &str) {
        let history = self.expect("chat.history").await;
        let usage = json!({ "input": 1, "output": 2 });
        let messages = json!([
            { "role": "assistant", "content": "of an earlier turn", "stopReason": "stop" },
            { "role": "user", "content": "Hello" },
            { "role": "assistant", "content": "At last.", "stopReason": stop_reason, "usage": usage, "model": "fake" },
        ]);
        self.answer(&history, json!({ "messages": messages })).await;
    }
}

#[tokio::test]
async fn a_turn_is_over_when_its_call_says_so() {
    let listener = Listener::bind();
    let (gateway, mut running, mut peer, request) = begun(&listener).await;
    peer.text(&request, "Well", "Well", json!({})).await;
    peer.finals(Some("Well done.")).await;
    peer.status("in_flight").await;
    peer.status("ok").await;
    assert_eq!(texts(&mut running).await, "Well");
    assert!(matches!(running.ending().await, Ending::Completed { text, .. } if text == "Well done."));
    drop(gateway);
}

#[tokio::test]
async fn only_the_last_attempts_answer_counts() {
    for (first, stop_reason, expected) in [
        (Some("Cut"), "stop", None),
        (None, "stop", None),
        (Some("Cut"), "error", Some(TurnFailure::Upstream { code: Code::new("retried") })),
        (None, "error", Some(TurnFailure::NoAnswer)),
    ] {
        let listener = Listener::bind();
        let (gateway, mut running, mut peer, _) = begun(&listener).await;
        peer.finals(first).await;
        peer.status("in_flight").await;
        peer.begins_again().await;
        peer.status("ok").await;
        peer.transcript(stop_reason).await;
        assert_eq!(texts(&mut running).await, "", "events without a session are unattributed");
        assert_eq!(gateway.counts().unattributed, 2);
        match (running.ending().await, expected) {
            (Ending::Completed { text, usage, .. }, None) => {
                assert_eq!((text.as_str(), usage.unwrap().output), ("At last.", 2));
            }
            (ending, expected) => assert_eq!(Some(failed(&ending)), expected.as_ref()),
        }
    }
}

#[tokio::test]
async fn a_turn_that_was_refused_at_once_has_no_answer() {
    let listener = Listener::bind();
    let (_gateway, running, mut peer, _) = begun(&listener).await;
    peer.finals(None).await;
    peer.status("ok").await;
    assert_eq!(failed(&running.ending().await), &TurnFailure::NoAnswer);
}
