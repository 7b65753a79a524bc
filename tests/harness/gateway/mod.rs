//! Serves a scripted gateway over TCP and a unix socket. Its frames have the shapes recorded from real gateways
//! (`tests/openclaw/frames`). It stands in for OpenClaw where a fault must come at one moment, or where Node would be
//! too slow. Tests in `tests/clients` cover real gateways.
//!
//! It hardly checks its clients' frames: another test checks their shape against OpenClaw's own schema.

pub mod bridged;
mod client;
mod connection;
mod ending;
mod model;
mod recorded;
mod requests;
mod run;
mod script;
mod shared;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
};

use self::shared::{Command, Shared};

pub use self::{
    client::{GatewayClient, turn},
    model::{ModelCall, Provider},
    script::{Abort, Cue, Dialect, Door, Step},
    shared::{Options, Seen},
};
use crate::pace::pace;

/// Token that a client needs to connect.
pub const TOKEN: &str = "test-token";

/// A scripted gateway, which serves until it is dropped.
#[derive(Debug)]
pub struct ScriptedGateway {
    shared: Arc<Shared>,
    address: SocketAddr,
    dir: tempfile::TempDir,
    accepting: Vec<tokio::task::JoinHandle<()>>,
}

impl ScriptedGateway {
    /// Starts to serve on a free port of the loopback interface and on its own socket. A turn without a script
    /// says hello.
    ///
    /// # Panics
    /// If it cannot listen.
    pub async fn start(dialect: Dialect) -> Self {
        let dir = tempfile::Builder::new().prefix("sw-gateway-").tempdir_in("/tmp").unwrap();
        let tcp = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let unix = UnixListener::bind(dir.path().join("gateway.sock")).unwrap();
        let shared = Arc::new(Shared::new(dialect));
        shared.inner().always = vec![Step::say("Hello "), Step::say("there.")];
        let address = tcp.local_addr().unwrap();
        let (on_tcp, on_unix, ticking) = (Arc::clone(&shared), Arc::clone(&shared), Arc::clone(&shared));
        let accepting = vec![
            platform_runtime::task::spawn("scripted gateway", async move {
                while let Ok((stream, _)) = tcp.accept().await {
                    serve(&on_tcp, stream);
                }
            }),
            platform_runtime::task::spawn("scripted gateway", async move {
                while let Ok((stream, _)) = unix.accept().await {
                    serve(&on_unix, stream);
                }
            }),
            platform_runtime::task::spawn("scripted ticks", tick(ticking)),
        ];
        Self { shared, address, dir, accepting }
    }

    /// Returns `ws://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    /// Returns the path of its unix socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("gateway.sock")
    }

    /// Adds a script for the session's next turn without one.
    pub fn script(&self, session: &str, steps: Vec<Step>) {
        let key = self.shared.key(session);
        self.shared.inner().scripts.entry(key).or_default().push_back(steps);
    }

    /// Sets the steps of turns without a script.
    pub fn always(&self, steps: Vec<Step>) {
        self.shared.inner().always = steps;
    }

    /// Sets the handshake of the next connection without one.
    pub fn door(&self, door: Door) {
        self.shared.inner().doors.push_back(door);
    }

    /// Starts a gateway that accepts the headers of a turn.
    ///
    /// # Panics
    /// If it cannot listen.
    pub async fn with_headers(dialect: Dialect) -> Self {
        let gateway = Self::start(dialect).await;
        gateway.set(|options| options.takes_headers = true);
        gateway
    }

    /// Changes its options.
    pub fn set(&self, change: impl FnOnce(&mut Options)) {
        change(&mut self.shared.options());
    }

    /// Sets its only provider: `http://HOST:PORT[/PATH]`, without `/v1`.
    pub fn provider_at(&self, url: &str) {
        self.set(|options| {
            options.providers = [("cogni".to_owned(), Provider::Url(url.to_owned()))].into();
        });
    }

    /// Sets its only provider, which is reached through a unix socket.
    pub fn provider_on(&self, socket: &Path) {
        self.set(|options| {
            options.providers =
                [("cogni".to_owned(), Provider::Unix(socket.to_owned(), String::new()))].into();
        });
    }

    /// Returns every frame of every client so far, `connect` included.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.inner().seen.clone()
    }

    /// Returns the requests of one method so far.
    #[must_use]
    pub fn requests(&self, method: &str) -> Vec<Value> {
        let has_method = |seen: &Seen| seen.frame["method"] == method;
        self.seen().into_iter().filter(has_method).map(|seen| seen.frame).collect()
    }

    /// Returns the number of requests that begin a turn.
    #[must_use]
    pub fn turns(&self) -> usize {
        self.requests("agent").len() + self.requests("chat.send").len()
    }

    /// Returns the model calls that it made.
    #[must_use]
    pub fn calls(&self) -> Vec<ModelCall> {
        self.shared.inner().calls.clone()
    }

    /// Returns the number of connected clients.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.inner().connections.len()
    }

    /// Returns the number of connections accepted so far.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.shared.inner().accepted
    }

    /// Sends an event to all clients.
    pub fn event(&self, event: &str, payload: Value) {
        self.shared.event(json!({ "type": "event", "event": event, "payload": payload }));
    }

    /// Sends a frame unchanged to all clients.
    pub fn frame(&self, frame: Value) {
        self.shared.command_all(&Command::Frame(frame));
    }

    /// Closes every connection.
    pub fn close(&self, code: u16, reason: &str) {
        self.shared.command_all(&Command::Close(code, reason.to_owned()));
    }

    /// Cuts every connection without a close frame.
    pub fn cut(&self) {
        self.shared.command_all(&Command::Cut);
    }

    /// Restarts it; it forgets all turns.
    pub fn restart(&self) {
        self.shared.restart();
    }
}

impl Drop for ScriptedGateway {
    fn drop(&mut self) {
        self.accepting.iter().for_each(tokio::task::JoinHandle::abort);
        self.cut();
    }
}

fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(shared: &Arc<Shared>, stream: S) {
    let number = {
        let mut inner = shared.inner();
        inner.accepted += 1;
        inner.accepted
    };
    platform_runtime::task::spawn(
        "scripted connection",
        connection::serve(Arc::clone(shared), number, stream),
    );
}

async fn tick(shared: Arc<Shared>) {
    loop {
        let interval = shared.options().tick;
        pace(interval.unwrap_or(std::time::Duration::from_millis(10))).await;
        if interval.is_some() {
            shared.event(
                json!({ "type": "event", "event": "tick", "payload": { "ts": 1_795_200_000_000_u64 } }),
            );
        }
    }
}
