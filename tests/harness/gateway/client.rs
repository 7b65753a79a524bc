//! Connects to gateways without the bridge: a minimal client, which only matches answers to requests.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{
        Error as HandshakeError, Message, client::IntoClientRequest, http::HeaderName,
        protocol::WebSocketConfig,
    },
};

/// An accepted connection to a gateway.
#[derive(Debug)]
pub struct GatewayClient {
    socket: WebSocketStream<TcpStream>,
    sent: u64,
    /// Every received frame.
    pub seen: Vec<Value>,
    /// Code and reason with which the gateway closed the connection.
    pub closed: Option<(u16, String)>,
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
        let mut client = Self::open(url, &[]).await.unwrap();
        let params = json!({
            "minProtocol": 3, "maxProtocol": 4, "role": "operator", "scopes": scopes, "caps": ["tool-events"],
            "client": { "id": "gateway-client", "version": "0.1.0", "platform": "linux", "mode": "backend" },
            "auth": { "token": token },
        });
        let answer = client.call("connect", params).await;
        (client, answer)
    }

    /// Opens a connection with these headers, and takes the challenge.
    ///
    /// # Errors
    /// The status of the answer, if the server refuses the connection.
    ///
    /// # Panics
    /// If nothing listens, or the peer does not speak as gateways do.
    pub async fn open(url: &str, headers: &[(&str, &str)]) -> Result<Self, u16> {
        let host = url.strip_prefix("ws://").unwrap().split('/').next().unwrap();
        let stream = TcpStream::connect(host).await.unwrap();
        let large = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let mut request = url.into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        let socket = match client_async_with_config(request, stream, Some(large)).await {
            Ok((socket, _)) => socket,
            Err(HandshakeError::Http(answer)) => return Err(answer.status().as_u16()),
            Err(other) => panic!("{other}"),
        };
        let mut client = Self { socket, sent: 0, seen: Vec::new(), closed: None };
        assert_eq!(client.next().await.unwrap()["event"], "connect.challenge");
        Ok(client)
    }

    /// Receives the next frame; `None` once the connection has ended.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            match self.socket.next().await?.ok()? {
                Message::Text(text) => {
                    let frame: Value = serde_json::from_str(text.as_str()).ok()?;
                    self.seen.push(frame.clone());
                    return Some(frame);
                }
                Message::Close(Some(close)) => {
                    self.closed = Some((close.code.into(), close.reason.as_str().to_owned()));
                }
                _ => {}
            }
        }
    }

    /// Receives until the connection ends; returns the code and the reason with which it was closed.
    pub async fn until_closed(&mut self) -> Option<(u16, String)> {
        while self.next().await.is_some() {}
        self.closed.clone()
    }

    /// Receives until a frame is as wanted; returns it.
    ///
    /// # Panics
    /// If the connection ends before.
    pub async fn until(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let frame = self.next().await;
            let frame = frame.unwrap_or_else(|| panic!("closed: {:?}, {:?}", self.closed, self.seen.last()));
            if is_wanted(&frame) {
                return frame;
            }
        }
    }

    /// Sends a text as it is.
    pub async fn send_text(&mut self, text: String) {
        // The gateway may have closed the connection.
        drop(self.socket.send(Message::text(text)).await);
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
            let Some(frame) = self.next().await else {
                panic!("the gateway ended the connection: {:?}", self.closed)
            };
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
