//! Calls the data plane's control socket: registers and closes runs, follows taps and the journal, changes limits.
//! Opens a connection per request, because requests are rare. Does not decide when to send a request, and never holds
//! the upstream's key.
//!
//! Start reading at [`DataPlane`]; the protocol is [`platform_core::control`].
//!
//! Invariants: every error says whether the data plane was unavailable or refused.

mod error_code;
mod spend;

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use platform_core::{
    budget::Budget,
    control::{
        AccountBudget, AccountView, Consumer, Correlation, Cursor, ExhaustedAccounts, FreezeChange, Frozen,
        GatewayListener, Health, Problem, Readiness, Register, Registered, Reloaded, Revoked, RunView,
        SocketDir, UpstreamHealth, run_path,
    },
    id::{GatewayId, RunId, SocketDirName},
    json::{self, Bounds},
    limit::Millis,
    name::{self, CONTROL_PROTOCOL, header as own},
};
use platform_outbound::OpenAnswer;
use platform_runtime::retry::Transient;
use serde::{Serialize, de::DeserializeOwned};
use tokio::{net::UnixStream, time::timeout};

/// Longest wait for an answer to begin. The answer to closing a run comes after its drain, which is shorter.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest single answer that is not a stream. The list of 10,000 runs fits.
const MAX_ANSWER: usize = 32 << 20;
/// Longest line of a stream.
const MAX_LINE: usize = 1 << 20;

/// Reason why a request to the data plane failed.
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
    /// The system denies this user the socket.
    #[error(
        "this user may not open the control socket {}: use root, or join its group `{}` and add this uid to proxy.control_uids",
        socket.display(),
        name::CONTROL_GROUP
    )]
    NotPermitted {
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
    /// The proxy accepted the connection and does not answer.
    #[error("the proxy did not answer within {} s", ANSWER_TIMEOUT.as_secs())]
    Silent,
    /// The proxy ended a stream that it keeps open as long as it runs.
    #[error("the connection to the proxy broke")]
    Gone,
    /// The answer does not follow the protocol.
    #[error("the proxy's answer is not in the protocol: {0}")]
    Unexpected(String),
}

impl Error {
    /// Returns whether the proxy does not know the run: it never did, or has forgotten it.
    pub fn is_unknown_run(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "run_unknown")
    }

    /// Returns whether another run already has the correlation.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "correlation_taken")
    }

    /// Returns whether the requested part of the journal was removed.
    pub fn is_removed(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "journal_removed")
    }

    /// Returns whether the consumer has acknowledged a later line already.
    pub fn is_acknowledged_before(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "acknowledged_before")
    }

    /// Returns whether the proxy refused, and so did no part of the request. A proxy that failed midway may have done
    /// some.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code != "proxy_failed")
    }
}

impl Transient for Error {
    /// Longest wait for the proxy: longer than the drain of a proxy that is being replaced.
    const RETRY_TIMEOUT: Duration = Duration::from_secs(40);

    fn is_transient(&self) -> bool {
        matches!(self, Self::NotRunning { .. } | Self::Broken(_) | Self::Silent | Self::Gone)
    }
}

/// Answer that only confirms the request.
#[derive(serde::Deserialize)]
struct Confirmation {}

/// Returns the path of a correlation of the run `run_id`.
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

/// Holder of a run that asks to close it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Attempt that it executes, which is closed for good.
    pub attempt: u32,
    /// Epoch of its lease.
    pub epoch: u64,
}

/// Stream of JSON lines from the proxy.
#[derive(Debug)]
pub struct Lines {
    answer: OpenAnswer,
    pending: Vec<u8>,
    /// Number of bytes of `pending` that were returned.
    returned: usize,
    /// Offset in `pending` of the line that was returned last.
    last: usize,
}

impl DataPlane {
    /// Returns a client of the control socket at the path `socket`. It connects for each request, not here.
    pub fn at(socket: &Path) -> Self {
        Self { socket: socket.to_owned() }
    }

    /// Returns the path of the control socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns the health of the proxy: its version, open runs, calls in flight and journal.
    pub async fn health(&self) -> Result<Health, Error> {
        self.request(Method::GET, "/v1/health", None::<&()>).await
    }

    /// Returns the proxy's metrics as Prometheus' text.
    pub async fn metrics(&self) -> Result<String, Error> {
        let text = read_body(self.send(Method::GET, "/v1/metrics", Bytes::new()).await?).await?;
        String::from_utf8(text.into()).map_err(|error| Error::Unexpected(error.to_string()))
    }

    /// Returns the upstream's answer to a health check, with the models that it offers.
    pub async fn upstream(&self) -> Result<UpstreamHealth, Error> {
        self.request(Method::GET, "/v1/upstream", None::<&()>).await
    }

    /// Registers a run, and returns the socket directory or the shared listener for its calls.
    pub async fn register(&self, register: &Register) -> Result<Registered, Error> {
        self.request(Method::PUT, &run_path(&register.grant.run_id), Some(register)).await
    }

    /// Reserves a socket directory for a run that is registered later.
    pub async fn reserve(&self, dir: &SocketDirName) -> Result<SocketDir, Error> {
        self.request(Method::PUT, &format!("/v1/sockets/{dir}"), None::<&()>).await
    }

    /// Removes a reserved socket directory that no run has used.
    pub async fn release(&self, dir: &SocketDirName) -> Result<(), Error> {
        self.request(Method::DELETE, &format!("/v1/sockets/{dir}"), None::<&()>)
            .await
            .map(|Confirmation {}| ())
    }

    /// Registers `correlation` for a run, as long as the run is open.
    pub async fn correlate(&self, run_id: &RunId, correlation: Correlation) -> Result<(), Error> {
        let path = correlation_path(run_id, correlation);
        self.request(Method::PUT, &path, None::<&()>).await.map(|Confirmation {}| ())
    }

    /// Opens a listener for a gateway, on its own socket.
    pub async fn open_gateway(
        &self,
        gateway: &GatewayId,
        listener: &GatewayListener,
    ) -> Result<SocketDir, Error> {
        self.request(Method::PUT, &format!("/v1/gateways/{gateway}"), Some(listener)).await
    }

    /// Closes a gateway's listener. Does nothing for a gateway without one.
    pub async fn close_gateway(&self, gateway: &GatewayId) -> Result<(), Error> {
        self.request(Method::DELETE, &format!("/v1/gateways/{gateway}"), None::<&()>)
            .await
            .map(|Confirmation {}| ())
    }

    /// Withdraws `correlation` from a run.
    pub async fn withdraw(&self, run_id: &RunId, correlation: Correlation) -> Result<(), Error> {
        let path = correlation_path(run_id, correlation);
        self.request(Method::DELETE, &path, None::<&()>).await.map(|Confirmation {}| ())
    }

    /// Closes a run in the name of its `holder`, and returns its final view with its usage. Calls in flight have `drain`
    /// to end.
    pub async fn close(&self, run_id: &RunId, holder: Holder, drain: Millis) -> Result<RunView, Error> {
        let Holder { attempt, epoch } = holder;
        let path = format!("{}?drain_ms={}&attempt={attempt}&epoch={epoch}", run_path(run_id), drain.0);
        self.request(Method::DELETE, &path, None::<&()>).await
    }

    /// Returns the run, even for a while after it was closed.
    pub async fn run(&self, run_id: &RunId) -> Result<RunView, Error> {
        self.request(Method::GET, &run_path(run_id), None::<&()>).await
    }

    /// Returns all runs that are open or closing.
    pub async fn runs(&self) -> Result<Vec<RunView>, Error> {
        self.request(Method::GET, "/v1/runs", None::<&()>).await
    }

    /// Returns all accounts that are configured or had a run.
    pub async fn accounts(&self) -> Result<Vec<AccountView>, Error> {
        self.request(Method::GET, "/v1/accounts", None::<&()>).await
    }

    /// Replaces the limits of a run.
    pub async fn limit_run(&self, run_id: &RunId, budget: &Budget) -> Result<RunView, Error> {
        self.request(Method::PUT, &format!("{}/budget", run_path(run_id)), Some(budget)).await
    }

    /// Replaces the limits of an account.
    pub async fn limit_account(&self, budget: &AccountBudget) -> Result<AccountView, Error> {
        self.request(Method::PUT, "/v1/accounts", Some(budget)).await
    }

    /// Revokes all tokens of the run `run_id`.
    pub async fn revoke(&self, run_id: &RunId) -> Result<Revoked, Error> {
        self.request(Method::PUT, &format!("{}/revoked", run_path(run_id)), None::<&()>).await
    }

    /// Reloads the configuration, key and token secrets included.
    pub async fn reload(&self) -> Result<Reloaded, Error> {
        self.request(Method::POST, "/v1/reload", None::<&()>).await
    }

    /// Returns whether the proxy serves calls, and if not, why.
    pub async fn ready(&self) -> Result<Readiness, Error> {
        let answer = timeout(ANSWER_TIMEOUT, self.exchange(Method::GET, "/v1/ready", Bytes::new()))
            .await
            .unwrap_or(Err(Error::Silent))?;
        read_json(&read_body(answer).await?)
    }

    /// Returns everything that is frozen.
    pub async fn frozen(&self) -> Result<Vec<Frozen>, Error> {
        self.request(Method::GET, "/v1/frozen", None::<&()>).await
    }

    /// Replaces the accounts with a balance below its floor, and returns them.
    pub async fn set_exhausted(&self, lists: &ExhaustedAccounts) -> Result<ExhaustedAccounts, Error> {
        self.request(Method::PUT, "/v1/exhausted", Some(lists)).await
    }

    /// Freezes `targets`, and returns everything that is frozen afterwards.
    pub async fn freeze(&self, targets: &[Frozen]) -> Result<FreezeChange, Error> {
        self.request(Method::POST, "/v1/freeze", Some(&targets)).await
    }

    /// Thaws `targets`, and returns everything that is still frozen.
    pub async fn thaw(&self, targets: &[Frozen]) -> Result<FreezeChange, Error> {
        self.request(Method::POST, "/v1/thaw", Some(&targets)).await
    }

    /// Returns the tap's lines for a run, after the line with the number `after`.
    pub async fn tap(&self, run_id: &RunId, after: u64) -> Result<Lines, Error> {
        self.lines(&format!("{}/tap?after={after}", run_path(run_id))).await
    }

    /// Returns the journal's lines after the sequence number `after`, or from the oldest line. `follow` decides whether
    /// new lines follow.
    pub async fn journal(&self, after: Option<u64>, follow: Follow) -> Result<Lines, Error> {
        let after = after.map(|after| format!("after={after}"));
        let follow = (follow == Follow::On).then(|| "follow".to_owned());
        let query: Vec<_> = after.into_iter().chain(follow).collect();
        self.lines(&format!("/v1/journal?{}", query.join("&"))).await
    }

    /// Returns the journal's lines after `cursor`, and then new lines. Refused if the proxy has another journal.
    pub async fn follow_journal(&self, cursor: &Cursor) -> Result<Lines, Error> {
        let Cursor { journal, seq, .. } = cursor;
        self.lines(&format!("/v1/journal?after={seq}&journal={journal}&follow")).await
    }

    /// Returns the steps of a run's calls as they happen, until the run is closed.
    pub async fn trace(&self, run_id: &RunId) -> Result<Lines, Error> {
        self.lines(&format!("{}/trace", run_path(run_id))).await
    }

    /// Returns the consumers that acknowledge the journal.
    pub async fn consumers(&self) -> Result<Vec<Consumer>, Error> {
        self.request(Method::GET, "/v1/consumers", None::<&()>).await
    }

    /// Acknowledges everything up to `cursor` in the name of a consumer: lines after it are kept for that consumer.
    pub async fn acknowledge(&self, consumer: &str, cursor: &Cursor) -> Result<Consumer, Error> {
        self.request(Method::PUT, &format!("/v1/consumers/{consumer}"), Some(cursor)).await
    }

    /// Sends a request that is answered with a stream of lines.
    async fn lines(&self, path: &str) -> Result<Lines, Error> {
        let answer = self.send(Method::GET, path, Bytes::new()).await?;
        Ok(Lines { answer, pending: Vec::new(), returned: 0, last: 0 })
    }

    /// Sends a request with a JSON body, and parses the JSON answer.
    async fn request<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, Error> {
        let unexpected = |error: serde_json::Error| Error::Unexpected(error.to_string());
        let body = body.map(serde_json::to_vec).transpose().map_err(unexpected)?.unwrap_or_default();
        read_json(&read_body(self.send(method, path, body.into()).await?).await?)
    }

    /// Sends a request; returns the answer if it is a success.
    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<OpenAnswer, Error> {
        timeout(ANSWER_TIMEOUT, self.send_without_timeout(method, path, body))
            .await
            .unwrap_or(Err(Error::Silent))
    }

    async fn send_without_timeout(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<OpenAnswer, Error> {
        let answer = self.exchange(method, path, body).await?;
        let status = answer.status();
        if status.is_success() { Ok(answer) } else { Err(answer_error(status, &read_body(answer).await?)) }
    }

    /// Sends a request on a new connection; returns the answer, whatever its status.
    async fn exchange(&self, method: Method, path: &str, body: Bytes) -> Result<OpenAnswer, Error> {
        let unconnected = |source| unconnected(&self.socket, source);
        let stream = UnixStream::connect(&self.socket).await.map_err(unconnected)?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::HOST, "control")
            .header(own::CONTROL_PROTOCOL, CONTROL_PROTOCOL)
            .body(body)
            .map_err(|error| Error::Unexpected(error.to_string()))?;
        platform_outbound::send(stream, request).await.map_err(Error::Broken)
    }
}

/// Behaviour of a stream after the last line that exists now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// The stream ends.
    UntilEnd,
    /// The stream continues with each new line.
    On,
}

impl Lines {
    /// Returns the line that [`Lines::next`] returned last.
    pub fn last(&self) -> &[u8] {
        self.pending.get(self.last..self.returned.saturating_sub(1)).unwrap_or_default()
    }

    /// Returns whether another whole line was received already.
    pub fn has_next(&self) -> bool {
        memchr::memchr(b'\n', &self.pending[self.returned..]).is_some()
    }

    /// Returns the next line, without its line feed; `None` at the end of the stream. Cancel safe.
    pub async fn next(&mut self) -> Result<Option<&[u8]>, Error> {
        loop {
            if let Some(length) = memchr::memchr(b'\n', &self.pending[self.returned..]) {
                self.last = self.returned;
                self.returned += length + 1;
                return Ok(Some(self.last()));
            }
            self.pending.drain(..self.returned);
            self.returned = 0;
            self.last = 0;
            if self.pending.len() > MAX_LINE {
                return Err(Error::Unexpected("a line of more than 1 MiB".to_owned()));
            }
            match self.answer.next().await.map_err(Error::Broken)? {
                None => return Ok(None),
                Some(piece) => self.pending.extend_from_slice(&piece),
            }
        }
    }
}

/// Returns the error of a connection that failed with `source`. A proxy may well run where permission is denied.
fn unconnected(socket: &Path, source: io::Error) -> Error {
    let socket = socket.to_owned();
    match source.kind() {
        io::ErrorKind::PermissionDenied => Error::NotPermitted { socket, source },
        _ => Error::NotRunning { socket, source },
    }
}

/// Returns the error that an unsuccessful answer describes.
fn answer_error(status: StatusCode, body: &[u8]) -> Error {
    let Ok(Problem { error }) = read_json(body) else { return Error::Unexpected(format!("status {status}")) };
    Error::Refused { code: error.code, message: error.message }
}

/// Reads a JSON answer. The proxy is a part of this installation.
fn read_json<T: DeserializeOwned>(answer: &[u8]) -> Result<T, Error> {
    json::from_slice(answer, Bounds::STORED).map_err(|error| Error::Unexpected(error.to_string()))
}

/// Reads an answer to its end, up to [`MAX_ANSWER`].
async fn read_body(answer: OpenAnswer) -> Result<Bytes, Error> {
    let whole = answer.read(MAX_ANSWER).await.map_err(|error| match error {
        platform_outbound::Error::Broken(error) => Error::Broken(error),
        _ => Error::Unexpected("an answer of more than 32 MiB".to_owned()),
    })?;
    Ok(whole.into_body())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denied_permission_names_its_cure() {
        let socket = Path::new("/run/control.sock");
        let denied = unconnected(socket, io::ErrorKind::PermissionDenied.into());
        let message = denied.to_string();
        assert!(message.contains("/run/control.sock") && message.contains("proxy.control_uids"), "{message}");
        assert!(!denied.is_transient(), "waiting does not help");
        for kind in [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused] {
            let absent = unconnected(socket, kind.into());
            assert!(absent.is_transient() && absent.to_string().contains("`sluice up`"), "{absent}");
        }
    }
}
