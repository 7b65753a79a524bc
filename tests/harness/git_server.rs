//! Serves repositories over HTTP with a password: git's own program behind a small server.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, Response, StatusCode, body::Incoming, header, server::conn::http1, service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{io::AsyncWriteExt as _, net::TcpListener, process::Command};

use crate::pace::pace;

/// User of the server.
pub const USER: &str = "x-access-token";
/// Program of git that changes branches. It is part of the address of a push.
const PUSH_SERVICE: &str = "git-receive-pack";

/// Behaviour of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behaviour {
    /// Answers to the password.
    Serves,
    /// Answers every request with a status.
    Fails(StatusCode),
    /// Sends every request to another server.
    Redirects(String),
    /// Takes requests, and never answers.
    Hangs,
    /// Answers to the password, but late.
    Slow(Duration),
    /// Ends connections without an answer.
    Away,
}

/// Server that runs until the test ends.
#[derive(Debug, Clone)]
pub struct GitServer {
    /// Its address, `http://127.0.0.1:PORT`.
    pub origin: String,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    root: PathBuf,
    /// Password; absent if the server demands none.
    token: Option<String>,
    behaviour: Mutex<Behaviour>,
    /// Behaviour towards requests that change a branch, instead of the other.
    push_behaviour: Mutex<Option<Behaviour>>,
    requests: AtomicUsize,
    credentials: AtomicUsize,
    leaks: Mutex<Vec<String>>,
}

impl GitServer {
    /// Serves the repositories in `root`, with `token` as the password.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start(root: PathBuf, token: &str) -> Self {
        Self::start_at(IpAddr::V4(Ipv4Addr::LOCALHOST), root, Some(token.to_owned())).await
    }

    /// Serves the repositories in `root` at `address` to all who ask.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start_open(address: IpAddr, root: PathBuf) -> Self {
        Self::start_at(address, root, None).await
    }

    async fn start_at(address: IpAddr, root: PathBuf, token: Option<String>) -> Self {
        let listener = TcpListener::bind((address, 0)).await.expect("a port is free");
        let origin = format!("http://{}", listener.local_addr().expect("it has an address"));
        let shared = Arc::new(Shared {
            root,
            token,
            behaviour: Mutex::new(Behaviour::Serves),
            push_behaviour: Mutex::new(None),
            requests: AtomicUsize::new(0),
            credentials: AtomicUsize::new(0),
            leaks: Mutex::new(Vec::new()),
        });
        let server = Self { origin, shared: Arc::clone(&shared) };
        drop(platform_runtime::task::spawn("git-server", async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&shared);
                let service = service_fn(move |request| {
                    let shared = Arc::clone(&shared);
                    async move { shared.answer(request).await }
                });
                let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                drop(platform_runtime::task::spawn("git-connection", async move { drop(connection.await) }));
            }
        }));
        server
    }

    /// Sets the behaviour from now on.
    ///
    /// # Panics
    /// Never.
    pub fn behave(&self, behaviour: Behaviour) {
        *self.shared.behaviour.lock().expect("no test panics with it") = behaviour;
        *self.shared.push_behaviour.lock().expect("no test panics with it") = None;
    }

    /// Sets the behaviour towards requests that change a branch, until the next [`Self::behave`].
    ///
    /// # Panics
    /// Never.
    pub fn behave_to_pushes(&self, behaviour: Behaviour) {
        *self.shared.push_behaviour.lock().expect("no test panics with it") = Some(behaviour);
    }

    /// Returns how many requests there were.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Returns how many requests had a credential.
    #[must_use]
    pub fn credentials(&self) -> usize {
        self.shared.credentials.load(Ordering::Relaxed)
    }

    /// Returns where the token was seen in the list of processes while git waited for an answer.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn leaks(&self) -> Vec<String> {
        self.shared.leaks.lock().expect("no test panics with it").clone()
    }
}

impl Shared {
    /// Answers a request. An error ends the connection.
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, &'static str> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let given = request.headers().get(header::AUTHORIZATION);
        let is_known = self.token.as_ref().is_none_or(|token| {
            let expected = format!("Basic {}", BASE64_STANDARD.encode(format!("{USER}:{token}")));
            given.is_some_and(|given| given.as_bytes() == expected.as_bytes())
        });
        if given.is_some() {
            self.credentials.fetch_add(1, Ordering::Relaxed);
            let found = self.token.as_deref().map(processes_with).unwrap_or_default();
            self.leaks.lock().expect("no test panics with it").extend(found);
        }
        let behaviour = self.behaviour_to(&request);
        if let Behaviour::Slow(delay) = behaviour {
            pace(delay).await;
        }
        Ok(match behaviour {
            Behaviour::Fails(status) => empty(status),
            Behaviour::Hangs => std::future::pending().await,
            Behaviour::Away => return Err("no answer"),
            Behaviour::Redirects(to) => {
                let mut answer = empty(StatusCode::MOVED_PERMANENTLY);
                let to = format!("{to}{}", request.uri());
                answer.headers_mut().insert(header::LOCATION, to.parse().expect("it is an address"));
                answer
            }
            Behaviour::Serves | Behaviour::Slow(_) if !is_known => {
                let mut answer = empty(StatusCode::UNAUTHORIZED);
                let demand = header::HeaderValue::from_static("Basic realm=\"git\"");
                answer.headers_mut().insert(header::WWW_AUTHENTICATE, demand);
                answer
            }
            Behaviour::Serves | Behaviour::Slow(_) => self.serve(request).await,
        })
    }

    fn behaviour_to(&self, request: &Request<Incoming>) -> Behaviour {
        let is_push = request.uri().to_string().contains(PUSH_SERVICE);
        let to_pushes = self.push_behaviour.lock().expect("no test panics with it").clone();
        let behaviour = || self.behaviour.lock().expect("no test panics with it").clone();
        to_pushes.filter(|_| is_push).unwrap_or_else(behaviour)
    }

    /// Passes a request to git as a web server does.
    async fn serve(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let mut command = Command::new("git");
        command.arg("http-backend").env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("GIT_PROJECT_ROOT", &self.root).env("GIT_HTTP_EXPORT_ALL", "1").env("REMOTE_USER", USER);
        command.env("REQUEST_METHOD", request.method().as_str()).env("PATH_INFO", request.uri().path());
        command.env("QUERY_STRING", request.uri().query().unwrap_or_default());
        for (name, variable) in [
            ("content-type", "CONTENT_TYPE"),
            ("content-encoding", "HTTP_CONTENT_ENCODING"),
            ("git-protocol", "GIT_PROTOCOL"),
        ] {
            if let Some(value) = request.headers().get(name) {
                command.env(variable, value.to_str().expect("it is text"));
            }
        }
        let mut body = request.into_body();
        let mut input = Vec::new();
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return empty(StatusCode::BAD_REQUEST) };
            input.extend(frame.into_data().unwrap_or_default());
        }
        command.env("CONTENT_LENGTH", input.len().to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("git starts");
        let mut stdin = child.stdin.take().expect("it reads");
        let fed = async {
            drop(stdin.write_all(&input).await);
            drop(stdin);
        };
        let (output, ()) = tokio::join!(child.wait_with_output(), fed);
        from_cgi(&output.expect("git ends").stdout)
    }
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = status;
    answer
}

/// Reads headers, an empty line and a body.
fn from_cgi(output: &[u8]) -> Response<Full<Bytes>> {
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").expect("git answers with headers");
    let mut answer = Response::new(Full::from(Bytes::copy_from_slice(&output[end + 4..])));
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        let (name, value) = line.split_once(": ").expect("a header has a value");
        if name == "Status" {
            let status = value.split(' ').next().and_then(|code| code.parse().ok());
            *answer.status_mut() =
                status.and_then(|code| StatusCode::from_u16(code).ok()).expect("it is a status");
        } else {
            let name: header::HeaderName = name.parse().expect("it is a name");
            answer.headers_mut().insert(name, value.parse().expect("it is a value"));
        }
    }
    answer
}

/// Returns the processes that show `secret` in their arguments or variables.
///
/// # Panics
/// If `/proc` is missing.
#[must_use]
pub fn processes_with(secret: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("processes are listed").filter_map(Result::ok) {
        for name in ["cmdline", "environ"] {
            let path = entry.path().join(name);
            let shown = fs::read(&path).unwrap_or_default();
            if String::from_utf8_lossy(&shown).contains(secret) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}
