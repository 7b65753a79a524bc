//! Serves one connection: its handshake, then the frames read and written on it.

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
};
use tokio_tungstenite::{
    WebSocketStream, accept_async_with_config,
    tungstenite::{
        Message,
        protocol::{CloseFrame, WebSocketConfig},
    },
};

use super::{
    TOKEN,
    recorded::Recording,
    requests,
    script::{Dialect, Door},
    shared::{BACKLOG, Command, Seen, Shared},
};

/// Largest message accepted. It is far above the announced size, so that the gateway itself refuses larger messages.
const LARGEST: usize = 64 << 20;

struct Connection<S> {
    shared: Arc<Shared>,
    number: u64,
    socket: WebSocketStream<S>,
}

/// Serves a connection until either side ends it.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(shared: Arc<Shared>, number: u64, stream: S) {
    let config = WebSocketConfig::default().max_message_size(Some(LARGEST)).max_frame_size(Some(LARGEST));
    let door = shared.inner().doors.pop_front();
    if matches!(door, Some(Door::Shut)) {
        return;
    }
    let Ok(socket) = accept_async_with_config(stream, Some(config)).await else { return };
    let mut connection = Connection { shared, number, socket };
    if connection.shake_hands(door).await.is_some() {
        connection.exchange_frames().await;
        connection.shared.inner().connections.remove(&number);
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    async fn send(&mut self, frame: &Value) -> Option<()> {
        self.socket.send(Message::text(frame.to_string())).await.ok()
    }

    /// Closes the connection with a code and a reason. Returns `None`, which ends the connection.
    async fn close(&mut self, code: u16, reason: &str) -> Option<()> {
        let frame = CloseFrame { code: code.into(), reason: reason.to_owned().into() };
        self.socket.close(Some(frame)).await.ok()?;
        while let Some(Ok(_)) = self.socket.next().await {}
        None
    }

    /// Receives the next text and records it.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Message::Text(text) = self.socket.next().await?.ok()? {
                return Some(self.record(text.as_str()));
            }
        }
    }

    fn record(&self, text: &str) -> Value {
        let frame = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
        self.shared.inner().seen.push(Seen { connection: self.number, frame: frame.clone() });
        frame
    }

    async fn shake_hands(&mut self, door: Option<Door>) -> Option<()> {
        let dialect = self.shared.dialect;
        if matches!(door, Some(Door::Silent)) {
            return self.next().await.and(None);
        }
        let handshake = Recording::of(dialect, "handshake");
        self.send(&handshake.event(|frame| frame["event"] == "connect.challenge").unwrap()).await?;
        let request = self.next().await?;
        let refused = match door {
            Some(Door::Closed(code, reason)) => return self.close(code, reason).await,
            Some(Door::Text(text)) => {
                self.socket.send(Message::text(text)).await.ok()?;
                return self.next().await.and(None);
            }
            Some(Door::NotYet(after)) => {
                // A refusal during start could be recorded only of the newer version.
                let recording = Recording::of(Dialect::Four, "starting");
                let mut answer = recording.answers("connect").remove(0);
                answer["error"]["retryAfterMs"] = json!(after.as_millis());
                Some((answer, recording.close()))
            }
            Some(Door::Recorded(name)) => {
                let recording = Recording::of(dialect, name);
                let answer = recording.answers("connect").remove(0);
                if answer["ok"] == true {
                    return self.welcome(answer, &request).await;
                }
                Some((answer, recording.close()))
            }
            _ => refusal(dialect, &request),
        };
        if let Some((mut answer, (code, reason))) = refused {
            answer["id"] = request["id"].clone();
            self.send(&answer).await?;
            return self.close(code, &reason).await;
        }
        let answer = handshake.answers("connect").remove(0);
        let scopes = request["params"]["scopes"].clone();
        self.welcome(granting(answer, scopes), &request).await
    }

    async fn welcome(&mut self, mut answer: Value, request: &Value) -> Option<()> {
        answer["id"] = request["id"].clone();
        if self.shared.dialect == Dialect::Four {
            let restarts = self.shared.inner().restarts;
            answer["payload"]["server"]["bootId"] = json!(format!("boot-{restarts}"));
        }
        answer["payload"]["snapshot"]["uptimeMs"] = json!(self.shared.uptime().as_millis());
        {
            let options = self.shared.options();
            answer["payload"]["policy"]["tickIntervalMs"] = json!(options.announced_tick.as_millis());
            if options.has_plugin {
                let methods = answer["payload"]["features"]["methods"].as_array_mut().unwrap();
                methods.extend(["sluicegate.headers.set", "sluicegate.headers.clear"].map(Value::from));
            }
            if let Some(version) = &options.version {
                answer["payload"]["server"]["version"] = json!(version);
            }
        }
        self.send(&answer).await
    }

    /// Reads and writes frames until the connection ends.
    async fn exchange_frames(&mut self) {
        let (sender, mut commands) = mpsc::channel(BACKLOG);
        self.shared.inner().connections.insert(self.number, sender);
        let limit = match self.shared.dialect {
            Dialect::Three => 512 << 10,
            Dialect::Four => 25 << 20,
        };
        loop {
            let continued = tokio::select! {
                command = commands.recv() => self.execute(command).await,
                message = self.socket.next() => match message {
                    Some(Ok(Message::Text(text))) if text.len() > limit => self.close(1009, "").await,
                    Some(Ok(Message::Text(text))) => {
                        let frame = self.record(text.as_str());
                        requests::handle(&self.shared, self.number, &frame);
                        Some(())
                    }
                    Some(Ok(Message::Close(_)) | Err(_)) | None => None,
                    Some(Ok(_)) => Some(()),
                },
            };
            if continued.is_none() {
                return;
            }
        }
    }

    async fn execute(&mut self, command: Option<Command>) -> Option<()> {
        match command {
            Some(Command::Frame(frame)) => self.send(&frame).await,
            Some(Command::Text(text)) => self.socket.send(Message::text(text)).await.ok(),
            Some(Command::Close(code, reason)) => self.close(code, &reason).await,
            Some(Command::Cut) => None,
            None => self.close(1008, "slow consumer").await,
        }
    }
}

fn granting(mut answer: Value, scopes: Value) -> Value {
    if let Some(auth) = answer["payload"].get_mut("auth") {
        auth["scopes"] = scopes;
    }
    answer
}

/// Returns the refusal with which a real gateway answers `request`, if it refuses the client.
fn refusal(dialect: Dialect, request: &Value) -> Option<(Value, (u16, String))> {
    let params = &request["params"];
    let number = |name: &str| params[name].as_u64().unwrap_or(0);
    let is_spoken = (number("minProtocol")..=number("maxProtocol")).contains(&dialect.number());
    let name = match params["auth"]["token"].as_str() {
        _ if request["method"] != "connect" => "not-connect-first",
        _ if !is_spoken => "protocol-too-new",
        None => "no-token",
        Some(token) if token != TOKEN => "bad-token",
        Some(_) => return None,
    };
    let recording = Recording::of(dialect, name);
    let method = if name == "not-connect-first" { "health" } else { "connect" };
    Some((recording.answers(method).remove(0), recording.close()))
}
