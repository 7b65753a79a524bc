//! Sends and receives frames of one client. A frame is sent before the next one is made, and nothing waits in a queue. So a
//! client that does not read costs one frame.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use gateway_bridge::client_frame::MAX_FRAME;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error as SocketError, Message,
        protocol::{CloseFrame, Role, WebSocketConfig},
    },
};

use super::refusal::{Farewell, SocketRefusal};

/// Largest frame to a client, in bytes. Answers are cut to less.
const MAX_UNSENT: usize = 8 << 20;
/// Largest answer, in bytes: beside it, the frame has its head, and a pong may wait to be sent.
const MAX_ANSWER: usize = MAX_UNSENT - 1024;
/// Longest wait for a client to take a close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Connection to a client.
pub(super) struct SocketChannel {
    stream: WebSocketStream<TokioIo<Upgraded>>,
    /// Number of the last event.
    seq: u64,
}

/// Message of a client.
pub(super) enum FromClient {
    Text(String),
    /// A sign of life without a meaning.
    Pulse,
}

impl SocketChannel {
    /// Speaks the WebSocket protocol on a connection that has left HTTP.
    pub(super) async fn of(upgraded: Upgraded) -> Self {
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_FRAME))
            .max_frame_size(Some(MAX_FRAME))
            .write_buffer_size(0)
            .max_write_buffer_size(MAX_UNSENT);
        let io = TokioIo::new(upgraded);
        Self { stream: WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await, seq: 0 }
    }

    /// Waits for what the client sends next. Cancel safe.
    pub(super) async fn receive(&mut self) -> Result<FromClient, Farewell> {
        match self.stream.next().await {
            Some(Ok(Message::Text(text))) => Ok(FromClient::Text(text.as_str().to_owned())),
            Some(Ok(Message::Binary(_))) => Err(Farewell::policy("frames are text: binary ones are refused")),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(FromClient::Pulse),
            Some(Err(SocketError::Capacity(_))) => Err(Farewell::too_large()),
            Some(Err(SocketError::Utf8(_))) => Err(Farewell::policy("frames are UTF-8")),
            Some(Ok(Message::Close(_)) | Err(_)) | None => Err(Farewell::gone()),
        }
    }

    /// Sends an event.
    pub(super) async fn send_event(&mut self, event: &ClientEvent) -> Result<(), Farewell> {
        self.seq += 1;
        let ClientEvent { name, payload } = event;
        let frame = json!({ "type": "event", "event": name, "payload": payload, "seq": self.seq });
        self.send(Message::text(frame.to_string())).await
    }

    /// Leaves out a number: clients then read again what they may lack.
    pub(super) const fn skip_event(&mut self) {
        self.seq += 1;
    }

    /// Sends the challenge, which has no number.
    pub(super) async fn send_challenge(&mut self, payload: &Value) -> Result<(), Farewell> {
        let frame = json!({ "type": "event", "event": "connect.challenge", "payload": payload });
        self.send(Message::text(frame.to_string())).await
    }

    /// Answers a request.
    pub(super) async fn respond(
        &mut self,
        id: &str,
        answer: &Result<Value, SocketRefusal>,
    ) -> Result<(), Farewell> {
        self.send(Message::text(response(id, answer))).await
    }

    /// Asks the client for a sign of life.
    pub(super) async fn ping(&mut self) -> Result<(), Farewell> {
        self.send(Message::Ping(Vec::new().into())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Farewell> {
        self.stream.send(message).await.map_err(|error| match error {
            SocketError::WriteBufferFull(_) => Farewell::internal("a frame is too large to be sent"),
            _ => Farewell::gone(),
        })
    }

    /// Says why the connection ends, and ends it.
    pub(super) async fn close(mut self, farewell: &Farewell) {
        let frame = CloseFrame { code: farewell.code.into(), reason: farewell.reason().to_owned().into() };
        let closing = async {
            if self.stream.close(Some(frame)).await.is_ok() {
                // The client answers, and so knows the reason before the connection is cut.
                while let Some(Ok(_)) = self.stream.next().await {}
            }
        };
        if timeout(CLOSE_TIMEOUT, closing).await.is_err() {
            tracing::debug!("a client of a gateway did not take the end of its connection");
        }
    }
}

/// Returns the frame of an answer. One that is too large to be sent becomes a refusal.
fn response(id: &str, answer: &Result<Value, SocketRefusal>) -> String {
    let refused = |refusal: &SocketRefusal| {
        json!({ "type": "res", "id": id, "ok": false, "error": refusal.to_json() }).to_string()
    };
    let payload = match answer {
        Ok(payload) => payload,
        Err(refusal) => return refused(refusal),
    };
    let frame = json!({ "type": "res", "id": id, "ok": true, "payload": payload }).to_string();
    if frame.len() <= MAX_ANSWER {
        return frame;
    }
    let message = format!("the answer has {} bytes, more than {MAX_ANSWER}: ask for less", frame.len());
    refused(&SocketRefusal::invalid("ANSWER_TOO_LARGE", message))
}

/// Event for a client.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ClientEvent {
    pub(super) name: &'static str,
    pub(super) payload: Value,
}

impl ClientEvent {
    pub(super) const fn new(name: &'static str, payload: Value) -> Self {
        Self { name, payload }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_cannot_be_sent_is_refused() {
        let frame = |bytes: usize| -> Value {
            let text = response("7", &Ok(Value::from("x".repeat(bytes))));
            assert!(text.len() < MAX_UNSENT, "it can be sent");
            text.parse().unwrap()
        };
        assert_eq!(frame(MAX_ANSWER - 100)["ok"], true);
        for bytes in [MAX_ANSWER, MAX_UNSENT, 2 * MAX_UNSENT] {
            let refused = frame(bytes);
            assert_eq!((&refused["id"], &refused["ok"]), (&json!("7"), &json!(false)));
            assert_eq!(refused["error"]["details"]["code"], "ANSWER_TOO_LARGE");
        }
    }
}
