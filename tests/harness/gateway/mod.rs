//! A scripted gateway over TCP and a unix socket. Its frames have the shapes recorded from real gateways
//! (`tests/openclaw/frames`). It stands in for OpenClaw where a fault must come at one moment, or where Node would be
//! too slow. Tests in `tests/stack` cover real gateways.
//!
//! It is lenient where its clients' frames are concerned: their shape is checked against OpenClaw's own schema elsewhere.

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

use self::shared::{Order, Shared};
pub use self::{
    client::{GatewayClient, turn},
    model::{Made, Provider},
    script::{Abort, Cue, Dialect, Door, Step},
    shared::{Options, Seen},
};

/// The token that lets a client in.
pub const TOKEN: &str = "test-token";

/// A gateway, serving until it is dropped.
#[derive(Debug)]
pub struct ScriptedGateway {
    shared: Arc<Shared>,
    address: SocketAddr,
    dir: tempfile::TempDir,
    accepting: Vec<tokio::task::JoinHandle<()>>,
}

impl ScriptedGateway {
    /// Serves on a free port of the loopback interface and on a socket of its own. A turn without a script says hello.
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
                    accepted(&on_tcp, stream);
                }
            }),
            platform_runtime::task::spawn("scripted gateway", async move {
                while let Ok((stream, _)) = unix.accept().await {
                    accepted(&on_unix, stream);
                }
            }),
            platform_runtime::task::spawn("scripted ticks", tick(ticking)),
        ];
        Self { shared, address, dir, accepting }
    }

    /// `ws://127.0.0.1:PORT`
    #[must_use]
    pub fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    /// The socket that it listens on, too.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("gateway.sock")
    }

    /// Adds a script for the next turn of a session that has none yet.
    pub fn script(&self, session: &str, steps: Vec<Step>) {
        let key = self.shared.key(session);
        self.shared.inner().scripts.entry(key).or_default().push_back(steps);
    }

    /// Sets the steps of turns without a script.
    pub fn always(&self, steps: Vec<Step>) {
        self.shared.inner().always = steps;
    }

    /// Adds a handshake for the next connection that has none yet.
    pub fn door(&self, door: Door) {
        self.shared.inner().doors.push_back(door);
    }

    /// Starts one that takes headers of a turn.
    ///
    /// # Panics
    /// If it cannot listen.
    pub async fn with_headers(dialect: Dialect) -> Self {
        let gateway = Self::start(dialect).await;
        gateway.set(|options| options.takes_headers = true);
        gateway
    }

    /// Changes how it is set up.
    pub fn set(&self, change: impl FnOnce(&mut Options)) {
        change(&mut self.shared.options());
    }

    /// Its only provider is at `url` from now on: `http://HOST:PORT[/PATH]`, without `/v1`.
    pub fn provider_at(&self, url: &str) {
        self.set(|options| {
            options.providers = [("cogni".to_owned(), Provider::Url(url.to_owned()))].into();
        });
    }

    /// The same by a unix socket.
    pub fn provider_on(&self, socket: &Path) {
        self.set(|options| {
            options.providers =
                [("cogni".to_owned(), Provider::Unix(socket.to_owned(), String::new()))].into();
        });
    }

    /// Every frame of every client so far, `connect` included.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.inner().seen.clone()
    }

    /// The requests of one method so far.
    #[must_use]
    pub fn requests(&self, method: &str) -> Vec<Value> {
        let is_it = |seen: &Seen| seen.frame["method"] == method;
        self.seen().into_iter().filter(is_it).map(|seen| seen.frame).collect()
    }

    /// Returns the number of requests that begin a turn.
    #[must_use]
    pub fn turns(&self) -> usize {
        self.requests("agent").len() + self.requests("chat.send").len()
    }

    /// The calls of models that it made.
    #[must_use]
    pub fn calls(&self) -> Vec<Made> {
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

    /// An event to everybody.
    pub fn event(&self, event: &str, payload: Value) {
        self.shared.event(json!({ "type": "event", "event": event, "payload": payload }));
    }

    /// A frame to everybody, as it is.
    pub fn frame(&self, frame: Value) {
        self.shared.order_all(&Order::Frame(frame));
    }

    /// Closes every connection.
    pub fn close(&self, code: u16, reason: &str) {
        self.shared.order_all(&Order::Close(code, reason.to_owned()));
    }

    /// Cuts every connection without a word.
    pub fn cut(&self) {
        self.shared.order_all(&Order::Cut);
    }

    /// Ends and begins anew: it knows no turn any more.
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

fn accepted<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(shared: &Arc<Shared>, stream: S) {
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
        tokio::time::sleep(interval.unwrap_or(std::time::Duration::from_millis(10))).await;
        if interval.is_some() {
            shared.event(
                json!({ "type": "event", "event": "tick", "payload": { "ts": 1_795_200_000_000_u64 } }),
            );
        }
    }
}
