//! Plays the control plane on the tool socket: answers calls of host tools as a test says, and remembers what it saw.

use std::{
    collections::VecDeque,
    convert::Infallible,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    io::AsyncWriteExt,
    net::{UnixListener, UnixStream},
    task::JoinHandle,
};

/// A double of the control plane's tool socket.
#[derive(Debug)]
pub struct ToolSocket {
    path: PathBuf,
    state: Arc<State>,
    serving: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    seen: Mutex<Vec<SeenCall>>,
    plays: Mutex<VecDeque<Play>>,
    ended: AtomicUsize,
}

/// A call as it arrived.
#[derive(Debug, Clone)]
pub struct SeenCall {
    /// Path of its request.
    pub path: String,
    /// Headers of its request.
    pub headers: HeaderMap,
    /// Body of its request.
    pub body: Bytes,
}

impl SeenCall {
    /// Returns the value of the header `name`, or nothing.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// Behaviour for one call.
#[derive(Debug, Clone)]
pub enum Play {
    /// An answer with these headers.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// The call is never answered.
    Hang,
    /// The connection is closed without an answer.
    Close,
    /// These bytes come instead of an answer, then the connection is closed.
    Raw(Vec<u8>),
}

impl Play {
    /// Returns the answer of a tool that gave a result.
    #[must_use]
    pub fn done(body: &str) -> Self {
        let headers = vec![
            ("content-type", "application/json".to_owned()),
            ("x-sluice-tool-outcome", "done".to_owned()),
        ];
        Self::Answer(200, headers, body.to_owned())
    }
}

impl ToolSocket {
    /// Listens where the proxy with `run_dir` expects it.
    ///
    /// # Panics
    /// If it cannot.
    #[must_use]
    pub fn below(run_dir: &Path) -> Self {
        let path = run_dir.join("tools/tools.sock");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut socket = Self { path, state: Arc::default(), serving: None };
        socket.listen();
        socket
    }

    /// Listens, also again after [`Self::stop`].
    ///
    /// # Panics
    /// If it cannot.
    pub fn listen(&mut self) {
        drop(fs::remove_file(&self.path));
        let listener = UnixListener::bind(&self.path).unwrap();
        let state = Arc::clone(&self.state);
        self.serving = Some(platform_runtime::task::spawn("tool socket", async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&state);
                platform_runtime::task::spawn("tool call", async move { serve(stream, &state).await });
            }
        }));
    }

    /// Stops to listen. The socket stays, and refuses connections.
    pub fn stop(&mut self) {
        self.serving.take().inspect(JoinHandle::abort);
    }

    /// Path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Plays `play` for the next call that has none yet. Without one, a call is done.
    ///
    /// # Panics
    /// Never.
    pub fn play(&self, play: Play) {
        self.state.plays.lock().unwrap().push_back(play);
    }

    /// Returns the calls so far.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn seen(&self) -> Vec<SeenCall> {
        self.state.seen.lock().unwrap().clone()
    }

    /// Returns the number of connections that have ended.
    #[must_use]
    pub fn ended(&self) -> usize {
        self.state.ended.load(Ordering::SeqCst)
    }
}

impl Drop for ToolSocket {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn serve(stream: UnixStream, state: &State) {
    // Bytes that are not HTTP are written past hyper.
    let raw = stream.into_std().unwrap();
    let beside = raw.try_clone().unwrap();
    let beside = tokio::sync::Mutex::new(UnixStream::from_std(beside).unwrap());
    let service = service_fn(|request| answer(request, state, &beside));
    let io = TokioIo::new(UnixStream::from_std(raw).unwrap());
    drop(http1::Builder::new().serve_connection(io, service).await);
    state.ended.fetch_add(1, Ordering::SeqCst);
}

/// The call gets no answer.
#[derive(Debug)]
struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("closed")
    }
}

impl std::error::Error for Closed {}

async fn answer(
    request: Request<Incoming>,
    state: &State,
    beside: &tokio::sync::Mutex<UnixStream>,
) -> Result<Response<Full<Bytes>>, Closed> {
    let (head, body) = request.into_parts();
    #[expect(clippy::disallowed_methods, reason = "only programs under test send requests")]
    let body = body.collect().await.map_err(|_error| Closed)?.to_bytes();
    let seen = SeenCall { path: head.uri.path().to_owned(), headers: head.headers, body };
    state.seen.lock().unwrap().push(seen);
    let play = state.plays.lock().unwrap().pop_front();
    match play.unwrap_or_else(|| Play::done(r#"{"ok":true,"result":{"now":1}}"#)) {
        Play::Answer(status, headers, body) => {
            let mut response = Response::new(Full::from(body));
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            for (name, value) in headers {
                response
                    .headers_mut()
                    .append(HeaderName::from_static(name), HeaderValue::from_str(&value).unwrap());
            }
            Ok(response)
        }
        Play::Hang => {
            let forever: Infallible = std::future::pending().await;
            match forever {}
        }
        Play::Close => Err(Closed),
        Play::Raw(bytes) => {
            beside.lock().await.write_all(&bytes).await.unwrap();
            Err(Closed)
        }
    }
}
