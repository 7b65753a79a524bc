//! Scripts a gateway's side of one unix socket, frame by frame.

use std::{path::PathBuf, time::Duration};

use futures_util::{SinkExt, StreamExt};
use platform_core::secret::Secret;
use serde_json::{Value, json};
use tokio::net::{UnixListener, UnixStream};
use tokio_tungstenite::{
    WebSocketStream, accept_async,
    tungstenite::{
        Message,
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};

use crate::{Endpoint, Gateway, GatewayLimits, Settings};

/// Timeout, longer than anything here takes.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Listener {
    listener: UnixListener,
    dir: tempfile::TempDir,
}

/// Connection, from the gateway's side.
pub(super) struct Peer(WebSocketStream<UnixStream>);

impl Listener {
    pub(super) fn bind() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("gateway.sock")).unwrap();
        Self { listener, dir }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("gateway.sock")
    }

    /// Opens a handle with short pauses and timeouts.
    pub(super) fn open(&self) -> Gateway {
        let token = Some(Secret::new("t".into()));
        let limits = GatewayLimits {
            abort: Duration::from_millis(300),
            first_pause: Duration::from_millis(5),
            longest_pause: Duration::from_millis(50),
            ..GatewayLimits::default()
        };
        Gateway::open(Settings { limits, ..Settings::new(Endpoint::Unix(self.path()), token) })
    }

    /// Accepts the next connection, up to its `connect`.
    pub(super) async fn accept(&self) -> (Peer, Value) {
        let (stream, _) = self.listener.accept().await.unwrap();
        let mut peer = Peer(accept_async(stream).await.unwrap());
        peer.event("connect.challenge", json!({ "nonce": "n", "ts": 1 })).await;
        let connect = peer.next_request().await;
        (peer, connect)
    }

    /// Accepts the next connection, with a hello of protocol 4, `more` put into it.
    pub(super) async fn hello(&self, more: Value) -> Peer {
        let (mut peer, connect) = self.accept().await;
        let mut hello = json!({
            "type": "hello-ok", "protocol": 4, "server": { "version": "2026.9.6", "bootId": "b1", "connId": "c" },
            "policy": { "maxPayload": 65536, "tickIntervalMs": 30000 },
        });
        let fields = more.as_object().unwrap().clone();
        hello.as_object_mut().unwrap().extend(fields);
        peer.answer(&connect, hello).await;
        peer
    }
}

impl Peer {
    pub(super) async fn send_frame(&mut self, frame: Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    pub(super) async fn event(&mut self, name: &str, payload: Value) {
        self.send_frame(json!({ "type": "event", "event": name, "payload": payload, "seq": 1 })).await;
    }

    /// Sends an answer to `request`.
    pub(super) async fn answer(&mut self, request: &Value, payload: Value) {
        self.send_frame(json!({ "type": "res", "id": request["id"], "ok": true, "payload": payload })).await;
    }

    pub(super) async fn refuse(&mut self, request: &Value, error: Value) {
        self.send_frame(json!({ "type": "res", "id": request["id"], "ok": false, "error": error })).await;
    }

    /// Returns the next request.
    pub(super) async fn next_request(&mut self) -> Value {
        let next = async {
            loop {
                if let Message::Text(text) = self.0.next().await.unwrap().unwrap() {
                    return serde_json::from_str(&text).unwrap();
                }
            }
        };
        tokio::time::timeout(REQUEST_TIMEOUT, next).await.unwrap()
    }

    /// Returns the next request, which must be of `method`.
    pub(super) async fn expect(&mut self, method: &str) -> Value {
        let request = self.next_request().await;
        assert_eq!(request["method"], method, "{request}");
        request
    }

    /// Accepts the next request for a turn and returns it.
    pub(super) async fn accept_turn(&mut self) -> Value {
        let request = self.expect("agent").await;
        self.answer(&request, json!({ "runId": request["params"]["idempotencyKey"], "status": "accepted" }))
            .await;
        request
    }

    /// Answers that the turn is unknown, and that the conversation has only another turn in it.
    pub(super) async fn forget_turn(&mut self) {
        let wait = self.expect("agent.wait").await;
        self.answer(&wait, json!({ "status": "timeout" })).await;
        let history = self.expect("chat.history").await;
        let other = json!({ "role": "assistant", "content": "no", "stopReason": "stop", "__openclaw": { "runId": "r0" } });
        self.answer(&history, json!({ "messages": [other] })).await;
    }

    /// Sends text of the turn of `request`, with `changes` to the payload.
    pub(super) async fn text(&mut self, request: &Value, delta: &str, whole: &str, changes: Value) {
        let mut payload = json!({
            "runId": request["params"]["idempotencyKey"], "sessionKey": request["params"]["sessionKey"],
            "stream": "assistant", "data": { "delta": delta, "text": whole },
        });
        let fields = changes.as_object().unwrap().clone();
        payload.as_object_mut().unwrap().extend(fields);
        self.event("agent", payload).await;
    }

    /// Ends the turn of `request` well.
    pub(super) async fn complete_turn(&mut self, request: &Value, text: &str) {
        let usage = json!({ "input": 3, "output": 4 });
        let result = json!({ "payloads": [{ "text": text }], "meta": { "agentMeta": { "model": "fake", "usage": usage } } });
        self.answer(request, json!({ "status": "ok", "result": result })).await;
    }

    pub(super) async fn close(mut self, code: u16) {
        let frame = CloseFrame { code: CloseCode::from(code), reason: "".into() };
        self.0.close(Some(frame)).await.unwrap();
        while let Some(Ok(_)) = self.0.next().await {}
    }
}
