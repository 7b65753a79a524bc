//! The upstream as all threads share it: how it is reached, whether it is up.

use std::{path::PathBuf, time::Duration};

use http::{HeaderValue, Request, Uri, header, uri::PathAndQuery};
use platform_runtime::report;
use tokio::time::timeout;

use super::{
    Connection,
    circuit::{Attempt, Circuit, Turn},
    connect::{Connector, Failure},
    resolve::Resolver,
    tls::{SetupError, Tls},
    wire::Stream,
};
use crate::pieces::Pieces;

/// What an upstream is made with.
#[derive(Debug)]
pub(crate) struct Config {
    /// Its name or address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// What the `host` header says.
    pub(crate) authority: HeaderValue,
    pub(crate) scheme: Scheme,
    /// Longest wait for a connection.
    pub(crate) connect: Duration,
    /// Longest wait for a TLS session on it.
    pub(crate) handshake: Duration,
    /// How long an idle connection is used again.
    pub(crate) idle: Duration,
    /// How many idle connections each thread keeps.
    pub(crate) most_idle: usize,
    /// What a probe asks for, if it does not only connect.
    pub(crate) probe: Option<PathAndQuery>,
}

/// How it is spoken to.
#[derive(Debug)]
pub(crate) enum Scheme {
    Http,
    /// Whose certificates are trusted: those in the file, or those the system trusts.
    Https {
        ca_file: Option<PathBuf>,
    },
}

/// The upstream.
#[derive(Debug)]
pub(crate) struct Target {
    connector: Connector,
    circuit: Circuit,
    pub(super) authority: HeaderValue,
    pub(super) idle: Duration,
    pub(super) most_idle: usize,
    probe: Option<PathAndQuery>,
}

impl Target {
    /// # Errors
    /// If TLS cannot be had.
    pub(crate) fn new(config: Config) -> Result<Self, SetupError> {
        let tls = match config.scheme {
            Scheme::Http => None,
            Scheme::Https { ca_file } => Some(Tls::new(&config.host, ca_file)?),
        };
        Ok(Self {
            connector: Connector {
                resolver: Resolver::new(config.host, config.port),
                tls,
                connect: config.connect,
                handshake: config.handshake,
            },
            circuit: Circuit::default(),
            authority: config.authority,
            idle: config.idle,
            most_idle: config.most_idle,
            probe: config.probe,
        })
    }

    /// Whether calls are sent to it.
    pub(crate) const fn circuit(&self) -> &Circuit {
        &self.circuit
    }

    #[cfg(test)]
    pub(super) const fn be_patient(&mut self, connect: Duration) {
        self.connector.connect = connect;
    }

    /// A new connection; the circuit hears what came of it.
    pub(super) async fn connect(&self) -> Result<Stream, Failure> {
        let attempt = Attempt::of(&self.circuit);
        let connected = self.connector.connect().await;
        attempt.end();
        match &connected {
            Ok(_) => self.circuit.connected(),
            Err(failure) if failure.is_ours() => {}
            Err(failure) => self.circuit.failed(|| report::chain(failure)),
        }
        connected
    }

    /// Whenever it goes down: probes it until it is up again. For ever.
    pub(super) async fn watch(&self) {
        loop {
            self.circuit.went_down().await;
            loop {
                match self.circuit.turn() {
                    Turn::Over => break,
                    Turn::Wait(wait) => tokio::time::sleep(wait).await,
                    Turn::Probe => match self.try_out().await {
                        Ok(()) => self.circuit.connected(),
                        Err(reason) => {
                            tracing::warn!(reason, "the upstream is still down");
                            self.circuit.probe_failed(reason);
                        }
                    },
                }
            }
        }
    }

    /// Connects, and asks what a probe is to ask.
    async fn try_out(&self) -> Result<(), String> {
        let stream = self.connector.connect().await.map_err(|failure| report::chain(&failure))?;
        let Some(path) = &self.probe else { return Ok(()) };
        let mut request = Request::new(Pieces::from(Vec::new()));
        *request.uri_mut() = Uri::from(path.clone());
        request.headers_mut().insert(header::HOST, self.authority.clone());
        let mut connection = Connection::over(stream).await.map_err(|error| report::chain(&error))?;
        let limit = self.connector.connect;
        let answer = timeout(limit, connection.send(request)).await;
        let answer = answer.map_err(|_elapsed| format!("no answer to GET {path} within {limit:?}"))?;
        let status = answer.map_err(|error| report::chain(&error.into_error()))?.status();
        if status.is_success() { Ok(()) } else { Err(format!("{status} to GET {path}")) }
    }
}
