//! Holds the upstream as all threads share it: how it is reached, and whether it is up.

use std::{io, path::PathBuf, time::Duration};

use http::{HeaderValue, Request, StatusCode, Uri, header, uri::PathAndQuery};
use platform_runtime::{accept::RateLimitedLog, report};
use tokio::time::timeout;

use super::{
    Connection,
    circuit::{Circuit, ConnectAttempt, ProbeStep},
    connect::{ConnectError, Connector},
    io::TransportStream,
    resolve::Resolver,
    tls::{SetupError, Tls},
};
use crate::pieces::Pieces;

/// Shortest interval between two log lines about access that the upstream refused.
const REFUSED_ACCESS_LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Settings of an upstream.
#[derive(Debug)]
pub(crate) struct Config {
    /// Name or address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Value of the `host` header.
    pub(crate) authority: HeaderValue,
    /// Path below which the API is: empty, or one that begins with a slash and does not end with one.
    pub(crate) path: String,
    pub(crate) scheme: Scheme,
    /// Longest wait for a connection.
    pub(crate) connect_timeout: Duration,
    /// Longest wait for a TLS session on a connection.
    pub(crate) tls_timeout: Duration,
    /// Time for which an idle connection is used again.
    pub(crate) idle_timeout: Duration,
    /// Most idle connections that each thread keeps.
    pub(crate) max_idle: usize,
    /// Path, below `path`, that a probe requests; without it a probe only connects.
    pub(crate) probe_path: Option<PathAndQuery>,
}

/// Protocol to the upstream.
#[derive(Debug)]
pub(crate) enum Scheme {
    Http,
    /// HTTPS, which trusts the certificates in the file, or else those the system trusts.
    Https {
        ca_file: Option<PathBuf>,
    },
}

/// Upstream, shared by all threads.
#[derive(Debug)]
pub(crate) struct Target {
    connector: Connector,
    circuit: Circuit,
    authority: HeaderValue,
    path: String,
    pub(super) idle_timeout: Duration,
    pub(super) max_idle: usize,
    probe_path: Option<PathAndQuery>,
    refused_access: RateLimitedLog,
}

impl Target {
    /// Creates the upstream of `config`.
    ///
    /// # Errors
    /// If TLS cannot be set up.
    pub(crate) fn new(config: Config) -> Result<Self, SetupError> {
        let tls = match config.scheme {
            Scheme::Http => None,
            Scheme::Https { ca_file } => Some(Tls::new(&config.host, ca_file)?),
        };
        Ok(Self {
            connector: Connector {
                resolver: Resolver::new(config.host, config.port),
                tls,
                connect_timeout: config.connect_timeout,
                tls_timeout: config.tls_timeout,
            },
            circuit: Circuit::default(),
            authority: config.authority,
            path: config.path,
            idle_timeout: config.idle_timeout,
            max_idle: config.max_idle,
            probe_path: config.probe_path,
            refused_access: RateLimitedLog::every(REFUSED_ACCESS_LOG_INTERVAL),
        })
    }

    /// Returns the circuit, which decides whether calls are sent.
    pub(crate) const fn circuit(&self) -> &Circuit {
        &self.circuit
    }

    /// Logs that the upstream refused this proxy's own key or budget with `status`. Does so at most once a minute,
    /// because every call meets the same refusal.
    pub(crate) fn log_refused_access(&self, status: StatusCode) {
        self.refused_access.write(|suppressed| {
            tracing::error!(
                status = status.as_u16(),
                suppressed,
                "the upstream refuses this proxy's key, or its budget there is used up: check upstream.key_file"
            );
        });
    }

    /// Addresses `request` to this upstream: to its host, below its path.
    pub(super) fn address(&self, request: &mut Request<Pieces>) {
        request.headers_mut().insert(header::HOST, self.authority.clone());
        if self.path.is_empty() {
            return;
        }
        let below = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        // Both parts are paths, so the whole is one. If it is too long for one, the upstream knows no such path.
        if let Ok(uri) = format!("{}{below}", self.path).parse() {
            *request.uri_mut() = uri;
        }
    }

    #[cfg(test)]
    pub(super) const fn set_connect_timeout(&mut self, timeout: Duration) {
        self.connector.connect_timeout = timeout;
    }

    /// Opens a new connection, and reports the result to the circuit.
    pub(super) async fn connect(&self) -> Result<TransportStream, ConnectError> {
        let attempt = ConnectAttempt::of(&self.circuit);
        let connected = self.connector.connect().await;
        attempt.end();
        match &connected {
            Ok(_) => self.circuit.connected(),
            Err(failure) if failure.is_local() => {}
            Err(failure) => self.circuit.failed(|| report::chain(failure)),
        }
        connected
    }

    /// Probes the upstream whenever it goes down, until it is up again. Runs for ever.
    pub(super) async fn watch(&self) {
        loop {
            self.circuit.went_down().await;
            loop {
                match self.circuit.next_probe_step() {
                    ProbeStep::Stop => break,
                    ProbeStep::Wait(wait) => tokio::time::sleep(wait).await,
                    ProbeStep::Probe => match self.probe_once().await {
                        Ok(()) => self.circuit.connected(),
                        Err(error) => {
                            let reason = report::chain(&error);
                            tracing::warn!(reason, "the upstream is still down");
                            self.circuit.probe_failed(reason);
                        }
                    },
                }
            }
        }
    }

    /// Connects, and sends the probe's request if there is one.
    async fn probe_once(&self) -> io::Result<()> {
        let stream = self.connector.connect().await.map_err(io::Error::other)?;
        let Some(path) = &self.probe_path else { return Ok(()) };
        let mut request = Request::new(Pieces::from(Vec::new()));
        *request.uri_mut() = Uri::from(path.clone());
        self.address(&mut request);
        let mut connection = Connection::over(stream).await.map_err(io::Error::other)?;
        let limit = self.connector.connect_timeout;
        let answer = timeout(limit, connection.send(request)).await;
        let silent = |_elapsed| io::Error::other(format!("no answer to GET {path} within {limit:?}"));
        let status = answer.map_err(silent)?.map_err(|error| io::Error::other(error.into_error()))?.status();
        if status.is_success() { Ok(()) } else { Err(io::Error::other(format!("{status} to GET {path}"))) }
    }
}
