//! Client of the proxy's control socket: registers runs, closes them, follows taps and the journal, changes limits.
//!
//! Opens a connection per request, because control is rare. Does not decide when something is asked, and never holds
//! the upstream's key.
//!
//! Start reading at [`DataPlane`]; the protocol is [`platform_core::control`].
//!
//! Invariants: every error says whether the data plane was unavailable or refused.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use platform_core::{
    budget::Budget,
    control::{
        AccountBudget, AccountView, Consumer, Correlation, FreezeChange, Frozen, GatewayListener, Health,
        Problem, Readiness, Register, Registered, Reloaded, Revoked, RunView, SocketDir, UpstreamHealth,
        run_path,
    },
    id::{GatewayId, RunId, SocketDirName},
    limit::Millis,
    name::{CONTROL_PROTOCOL, header as own},
};
use platform_runtime::{report, retry::Transient, task};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{net::UnixStream, time::timeout};

/// Longest wait for an answer to begin. Closing a run waits for its drain, which is shorter.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest single answer that is not a stream. The list of 10,000 runs fits.
const MAX_ANSWER: usize = 32 << 20;
/// Longest line of a stream.
const MAX_LINE: usize = 1 << 20;

/// Reason why the data plane did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No proxy serves the socket.
    #[error("no proxy answers on {}: start one with `sluice up`", socket.display())]
    NotRunning {
        /// Path of the socket.
        socket: PathBuf,
        /// Cause of the failure.
        #[source]
        source: io::Error,
    },
    /// The proxy refused the request.
    #[error("the proxy refused: {message}")]
    Refused {
        /// Code of the refusal.
        code: String,
        /// Message of the refusal.
        message: String,
    },
    /// The connection broke.
    #[error("the connection to the proxy broke")]
    Broken(#[source] hyper::Error),
    /// The proxy is there and does not answer.
    #[error("the proxy did not answer within {} s", ANSWER_TIMEOUT.as_secs())]
    Silent,
    /// The proxy ended a stream that goes on for as long as it lives.
    #[error("the connection to the proxy broke")]
    Gone,
    /// The answer is not in the protocol.
    #[error("the proxy's answer is not in the protocol: {0}")]
    Unexpected(String),
}

impl Error {
    /// Returns whether the proxy does not know the run: it never did, or does not any more.
    pub fn is_unknown_run(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "run_unknown")
    }

    /// Returns whether another run has the correlation by now.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "correlation_taken")
    }

    /// Returns whether the requested part of the journal is not kept any more.
    pub fn is_removed(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "journal_removed")
    }

    /// Returns whether the proxy refused, and so has nothing of what was requested: unlike one that failed midway.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code != "proxy_failed")
    }
}

impl Transient for Error {
    /// Longer than a proxy drains before the next one comes.
    const RETRY_TIMEOUT: Duration = Duration::from_secs(40);

    fn is_transient(&self) -> bool {
        matches!(self, Self::NotRunning { .. } | Self::Broken(_) | Self::Silent | Self::Gone)
    }
}

/// Answer that only confirms the request.
#[derive(serde::Deserialize)]
struct Confirmation {}

fn correlation_path(run_id: &RunId, correlation: Correlation) -> String {
    let (kind, id) = match correlation {
        Correlation::Trace(id) => ("traces", id),
        Correlation::Slot(id) => ("slots", id),
    };
    format!("{}/{kind}/{id:032x}", run_path(run_id))
}

/// Client of the data plane's control socket.
#[derive(Debug, Clone)]
pub struct DataPlane {
    socket: PathBuf,
}

/// Lines of JSON that come as long as the proxy sends them.
#[derive(Debug)]
pub struct Lines {
    body: Incoming,
    pending: Vec<u8>,
    /// Number of bytes of `pending` that were handed out.
    taken: usize,
    /// Offset in `pending` of the line that was handed out last.
    last: usize,
}

impl DataPlane {
    /// Returns a client of the control socket at the path `socket`. It connects with each request, not here.
    pub fn at(socket: &Path) -> Self {
        Self { socket: socket.to_owned() }
    }

    /// Returns the path of its control socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns the health of the proxy: its version, open runs, calls in flight and journal.
    pub async fn health(&self) -> Result<Health, Error> {
        self.ask(Method::GET, "/v1/health", None::<&()>).await
    }

    /// Returns the metrics as Prometheus' text.
    pub async fn metrics(&self) -> Result<String, Error> {
        let text = read(self.send(Method::GET, "/v1/metrics", Bytes::new()).await?).await?;
        String::from_utf8(text).map_err(|error| Error::Unexpected(error.to_string()))
    }

    /// Returns the upstream's answer to a health check, with the models that it offers.
    pub async fn upstream(&self) -> Result<UpstreamHealth, Error> {
        self.ask(Method::GET, "/v1/upstream", None::<&()>).await
    }

    /// Registers a run, and returns the socket directory or the shared listener at which its calls come in.
    pub async fn register(&self, register: &Register) -> Result<Registered, Error> {
        self.ask(Method::PUT, &run_path(&register.grant.run_id), Some(register)).await
    }

    /// Reserves a socket directory for a run to come.
    pub async fn reserve(&self, dir: &SocketDirName) -> Result<SocketDir, Error> {
        self.ask(Method::PUT, &format!("/v1/sockets/{dir}"), None::<&()>).await
    }

    /// Removes a socket directory that no run came for.
    pub async fn release(&self, dir: &SocketDirName) -> Result<(), Error> {
        self.ask(Method::DELETE, &format!("/v1/sockets/{dir}"), None::<&()>).await.map(|Confirmation {}| ())
    }

    /// Registers `correlation` for a run, as long as the run is open.
    pub async fn correlate(&self, run_id: &RunId, correlation: Correlation) -> Result<(), Error> {
        let path = correlation_path(run_id, correlation);
        self.ask(Method::PUT, &path, None::<&()>).await.map(|Confirmation {}| ())
    }

    /// Opens a listener for a gateway, at a socket of its own.
    pub async fn open_gateway(
        &self,
        gateway: &GatewayId,
        listener: &GatewayListener,
    ) -> Result<SocketDir, Error> {
        self.ask(Method::PUT, &format!("/v1/gateways/{gateway}"), Some(listener)).await
    }

    /// Closes a gateway's listener. A gateway without one is no error.
    pub async fn close_gateway(&self, gateway: &GatewayId) -> Result<(), Error> {
        self.ask(Method::DELETE, &format!("/v1/gateways/{gateway}"), None::<&()>)
            .await
            .map(|Confirmation {}| ())
    }

    /// Withdraws `correlation` from a run.
    pub async fn withdraw(&self, run_id: &RunId, correlation: Correlation) -> Result<(), Error> {
        let path = correlation_path(run_id, correlation);
        self.ask(Method::DELETE, &path, None::<&()>).await.map(|Confirmation {}| ())
    }

    /// Closes a run in the name of `epoch`, and returns what it used. Calls in flight have `drain` to end.
    pub async fn close(&self, run_id: &RunId, epoch: u64, drain: Millis) -> Result<RunView, Error> {
        let path = format!("{}?drain_ms={}&epoch={epoch}", run_path(run_id), drain.0);
        self.ask(Method::DELETE, &path, None::<&()>).await
    }

    /// Returns the run, also for a while after it was closed.
    pub async fn run(&self, run_id: &RunId) -> Result<RunView, Error> {
        self.ask(Method::GET, &run_path(run_id), None::<&()>).await
    }

    /// Returns all runs that are open or closing.
    pub async fn runs(&self) -> Result<Vec<RunView>, Error> {
        self.ask(Method::GET, "/v1/runs", None::<&()>).await
    }

    /// Returns all accounts that are configured or had a run.
    pub async fn accounts(&self) -> Result<Vec<AccountView>, Error> {
        self.ask(Method::GET, "/v1/accounts", None::<&()>).await
    }

    /// Replaces the limits of a run.
    pub async fn limit_run(&self, run_id: &RunId, budget: &Budget) -> Result<RunView, Error> {
        self.ask(Method::PUT, &format!("{}/budget", run_path(run_id)), Some(budget)).await
    }

    /// Replaces the limits of an account.
    pub async fn limit_account(&self, budget: &AccountBudget) -> Result<AccountView, Error> {
        self.ask(Method::PUT, "/v1/accounts", Some(budget)).await
    }

    /// Revokes all tokens of the run `run_id`.
    pub async fn revoke(&self, run_id: &RunId) -> Result<Revoked, Error> {
        self.ask(Method::PUT, &format!("{}/revoked", run_path(run_id)), None::<&()>).await
    }

    /// Reloads the configuration, key and token secrets included.
    pub async fn reload(&self) -> Result<Reloaded, Error> {
        self.ask(Method::POST, "/v1/reload", None::<&()>).await
    }

    /// Returns whether the proxy serves calls, and if not, why.
    pub async fn ready(&self) -> Result<Readiness, Error> {
        let (_, body) = timeout(ANSWER_TIMEOUT, self.exchange(Method::GET, "/v1/ready", Bytes::new()))
            .await
            .unwrap_or(Err(Error::Silent))?;
        let unexpected = |error: serde_json::Error| Error::Unexpected(error.to_string());
        serde_json::from_slice(&read(body).await?).map_err(unexpected)
    }

    /// Returns what an operator has frozen.
    pub async fn frozen(&self) -> Result<Vec<Frozen>, Error> {
        self.ask(Method::GET, "/v1/frozen", None::<&()>).await
    }

    /// Freezes what is named, and returns all that is frozen then.
    pub async fn freeze(&self, named: &[Frozen]) -> Result<FreezeChange, Error> {
        self.ask(Method::POST, "/v1/freeze", Some(&named)).await
    }

    /// Thaws what is named, and returns all that is still frozen.
    pub async fn thaw(&self, named: &[Frozen]) -> Result<FreezeChange, Error> {
        self.ask(Method::POST, "/v1/thaw", Some(&named)).await
    }

    /// Returns the tap's lines for a run, after the line numbered `after`.
    pub async fn tap(&self, run_id: &RunId, after: u64) -> Result<Lines, Error> {
        self.lines(&format!("{}/tap?after={after}", run_path(run_id))).await
    }

    /// Returns the journal's lines after `after`, or from the oldest that is kept; goes on with new ones if `follow`
    /// says so.
    pub async fn journal(&self, after: Option<u64>, follow: Follow) -> Result<Lines, Error> {
        let after = after.map(|after| format!("after={after}"));
        let follow = (follow == Follow::On).then(|| "follow".to_owned());
        let query: Vec<_> = after.into_iter().chain(follow).collect();
        self.lines(&format!("/v1/journal?{}", query.join("&"))).await
    }

    /// Returns the steps of a run's calls from now on, until the run is closed.
    pub async fn trace(&self, run_id: &RunId) -> Result<Lines, Error> {
        self.lines(&format!("{}/trace", run_path(run_id))).await
    }

    /// Returns the consumers that acknowledge the journal.
    pub async fn consumers(&self) -> Result<Vec<Consumer>, Error> {
        self.ask(Method::GET, "/v1/consumers", None::<&()>).await
    }

    async fn lines(&self, path: &str) -> Result<Lines, Error> {
        let body = self.send(Method::GET, path, Bytes::new()).await?;
        Ok(Lines { body, pending: Vec::new(), taken: 0, last: 0 })
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, Error> {
        let unexpected = |error: serde_json::Error| Error::Unexpected(error.to_string());
        let body = body.map(serde_json::to_vec).transpose().map_err(unexpected)?.unwrap_or_default();
        let answer = read(self.send(method, path, body.into()).await?).await?;
        serde_json::from_slice(&answer).map_err(unexpected)
    }

    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Incoming, Error> {
        timeout(ANSWER_TIMEOUT, self.send_now(method, path, body)).await.unwrap_or(Err(Error::Silent))
    }

    async fn send_now(&self, method: Method, path: &str, body: Bytes) -> Result<Incoming, Error> {
        let (status, body) = self.exchange(method, path, body).await?;
        if status.is_success() { Ok(body) } else { Err(refused(status, &read(body).await?)) }
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Incoming), Error> {
        let not_running = |source| Error::NotRunning { socket: self.socket.clone(), source };
        let stream = UnixStream::connect(&self.socket).await.map_err(not_running)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(Error::Broken)?;
        task::spawn("control client", async move {
            if let Err(error) = connection.await {
                tracing::debug!(error = report::chain(&error), "control connection ended");
            }
        });
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::HOST, "control")
            .header(own::CONTROL_PROTOCOL, CONTROL_PROTOCOL)
            .body(Full::new(body))
            .map_err(|error| Error::Unexpected(error.to_string()))?;
        let answer = sender.send_request(request).await.map_err(Error::Broken)?;
        Ok((answer.status(), answer.into_body()))
    }
}

/// Behaviour of a stream at its present end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// The stream ends there.
    UntilEnd,
    /// The stream goes on with what will come.
    On,
}

impl Lines {
    /// Returns the line that was handed out last, until the next one is asked for.
    pub fn last(&self) -> &[u8] {
        self.pending.get(self.last..self.taken.saturating_sub(1)).unwrap_or_default()
    }

    /// Returns whether another line has come already.
    pub fn has_next(&self) -> bool {
        memchr::memchr(b'\n', &self.pending[self.taken..]).is_some()
    }

    /// Returns the next line, without its line feed; `None` at the end of the stream. Cancel safe.
    pub async fn next(&mut self) -> Result<Option<&[u8]>, Error> {
        loop {
            if let Some(length) = memchr::memchr(b'\n', &self.pending[self.taken..]) {
                self.last = self.taken;
                self.taken += length + 1;
                return Ok(Some(self.last()));
            }
            self.pending.drain(..self.taken);
            self.taken = 0;
            self.last = 0;
            if self.pending.len() > MAX_LINE {
                return Err(Error::Unexpected("a line of more than 1 MiB".to_owned()));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(piece) = frame.map_err(Error::Broken)?.into_data() {
                        self.pending.extend_from_slice(&piece);
                    }
                }
            }
        }
    }
}

fn refused(status: StatusCode, body: &[u8]) -> Error {
    match serde_json::from_slice::<Problem>(body) {
        Ok(Problem { error }) => Error::Refused { code: error.code, message: error.message },
        Err(_) => Error::Unexpected(format!("status {status}")),
    }
}

async fn read(mut body: Incoming) -> Result<Vec<u8>, Error> {
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(piece) = frame.map_err(Error::Broken)?.into_data() {
            whole.extend_from_slice(&piece);
        }
        if whole.len() > MAX_ANSWER {
            return Err(Error::Unexpected("an answer of more than 32 MiB".to_owned()));
        }
    }
    Ok(whole)
}
