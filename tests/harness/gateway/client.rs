//! Connects to gateways without the bridge: a minimal client, which only matches answers to requests.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{Message, protocol::WebSocketConfig},
};

/// An accepted connection to a gateway.
#[derive(Debug)]
pub struct GatewayClient {
    socket: WebSocketStream<TcpStream>,
    sent: u64,
    /// Every received frame.
    pub seen: Vec<Value>,
}

impl GatewayClient {
    /// Connects to `url` with all scopes.
    ///
    /// # Panics
    /// If the gateway refuses the connection.
    pub async fn connect(url: &str, token: &str) -> Self {
        let scopes = ["operator.admin", "operator.read", "operator.write"];
        let (client, answer) = Self::try_connect(url, token, &scopes).await;
        assert_eq!(answer["ok"], true, "{answer}");
        client
    }

    /// Connects and returns the gateway's answer, also if it is a refusal.
    ///
    /// # Panics
    /// If nothing listens, or the peer does not speak as gateways do.
    pub async fn try_connect(url: &str, token: &str, scopes: &[&str]) -> (Self, Value) {
        let stream = TcpStream::connect(url.strip_prefix("ws://").unwrap()).await.unwrap();
        let large = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let (socket, _) = client_async_with_config(url, stream, Some(large)).await.unwrap();
        let mut client = Self { socket, sent: 0, seen: Vec::new() };
        assert_eq!(client.next().await.unwrap()["event"], "connect.challenge");
        let params = json!({
            "minProtocol": 3, "maxProtocol": 4, "role": "operator", "scopes": scopes, "caps": ["tool-events"],
            "client": { "id": "gateway-client", "version": "0.1.0", "platform": "linux", "mode": "backend" },
            "auth": { "token": token },
        });
        let answer = client.call("connect", params).await;
        (client, answer)
    }

    /// Receives the next frame; `None` once the connection has ended.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Message::Text(text) = self.socket.next().await?.ok()? {
                let frame: Value = serde_json::from_str(text.as_str()).ok()?;
                self.seen.push(frame.clone());
                return Some(frame);
            }
        }
    }

    /// Sends a request and returns its id.
    ///
    /// # Panics
    /// If the connection has ended.
    pub async fn send(&mut self, method: &str, params: Value, traceparent: Option<&str>) -> String {
        self.sent += 1;
        let id = format!("c{}", self.sent);
        let mut frame = json!({ "type": "req", "id": id, "method": method, "params": params });
        if let Some(traceparent) = traceparent {
            frame["traceparent"] = json!(traceparent);
        }
        self.socket.send(Message::text(frame.to_string())).await.unwrap();
        id
    }

    /// Returns the final answer to a request, not its acceptance. The answer may have been received earlier.
    ///
    /// # Panics
    /// If the connection ends before.
    pub async fn answer(&mut self, id: &str) -> Value {
        let is_answer = |frame: &Value| {
            frame["type"] == "res" && frame["id"] == id && !super::recorded::is_acceptance(frame)
        };
        if let Some(found) = self.seen.iter().find(|frame| is_answer(frame)) {
            return found.clone();
        }
        loop {
            let frame = self.next().await.expect("the gateway ended the connection");
            if is_answer(&frame) {
                return frame;
            }
        }
    }

    /// Sends a request and returns its final answer.
    ///
    /// # Panics
    /// If the connection ends before.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params, None).await;
        self.answer(&id).await
    }
}

/// Returns the parameters of a request for a turn.
#[must_use]
pub fn turn(run: &str, session: &str, message: &str) -> Value {
    json!({
        "message": message, "agentId": "main", "sessionKey": session, "idempotencyKey": run, "deliver": false,
        "timeout": 60,
    })
}
