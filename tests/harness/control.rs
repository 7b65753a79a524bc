//! Speaks on the control socket as the control plane does.

use std::path::Path;

use http::Method;
use platform_core::{
    control::{Health, Problem, Register, Registered, RunView},
    grant::RunGrant,
    id::RunId,
    name::{CONTROL_PROTOCOL, header},
    record::JournalLine,
};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::{
    agent::{Agent, Answer, BoxError, Stream},
    lines::Lines,
};

/// A client of the control socket.
#[derive(Debug, Clone)]
pub struct Control(Agent);

impl Control {
    /// Creates a client of `socket` that speaks this build's version of the protocol.
    #[must_use]
    pub fn on(socket: &Path) -> Self {
        Self(Agent::on(socket).with_header(header::CONTROL_PROTOCOL, &CONTROL_PROTOCOL.to_string()))
    }

    /// Returns the health of the proxy.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn health(&self) -> Result<Health, BoxError> {
        Ok(serde_json::from_slice(&self.0.request(Method::GET, "/v1/health", Vec::new().into()).await?.body)?)
    }

    /// Registers a run.
    ///
    /// # Errors
    /// The proxy's answer, if it refuses.
    pub async fn register(&self, grant: &RunGrant) -> Result<Registered, Problem> {
        self.register_in(0, grant).await
    }

    /// Registers a run in the name of `epoch`.
    ///
    /// # Errors
    /// The proxy's answer, if it refuses.
    pub async fn register_in(&self, epoch: u64, grant: &RunGrant) -> Result<Registered, Problem> {
        let register = Register { grant: grant.clone(), epoch, socket_dir: None };
        result(
            self.send(Method::PUT, &format!("/v1/runs/{}", grant.run_id), json!(register).to_string()).await,
        )
    }

    /// Returns a run as the proxy reports it.
    ///
    /// # Errors
    /// The proxy's answer, if it refuses.
    pub async fn run(&self, run: &RunId) -> Result<RunView, Problem> {
        result(self.send(Method::GET, &format!("/v1/runs/{run}"), String::new()).await)
    }

    /// Closes a run after a drain of `drain_ms` milliseconds.
    ///
    /// # Errors
    /// The proxy's answer, if it refuses.
    pub async fn close(&self, run: &RunId, drain_ms: u64) -> Result<RunView, Problem> {
        self.close_in(0, run, drain_ms).await
    }

    /// Closes a run in the name of `epoch`, after a drain of `drain_ms` milliseconds.
    ///
    /// # Errors
    /// The proxy's answer, if it refuses.
    pub async fn close_in(&self, epoch: u64, run: &RunId, drain_ms: u64) -> Result<RunView, Problem> {
        let path = format!("/v1/runs/{run}?drain_ms={drain_ms}&epoch={epoch}");
        result(self.send(Method::DELETE, &path, String::new()).await)
    }

    /// Returns the lines of the journal after sequence number `after`.
    pub async fn journal(&self, after: u64) -> Vec<JournalLine> {
        let answer = self.send(Method::GET, &format!("/v1/journal?after={after}"), String::new()).await;
        answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Opens a stream of NDJSON.
    pub async fn follow(&self, path: &str) -> Stream {
        self.try_follow(path).await.unwrap()
    }

    /// Opens a stream of NDJSON at a proxy that may be down.
    ///
    /// # Errors
    /// If the proxy is down.
    pub async fn try_follow(&self, path: &str) -> Result<Stream, BoxError> {
        self.0.send(Method::GET, path, Vec::new().into()).await
    }

    /// Opens the live text of a run.
    pub async fn tap(&self, run: &RunId) -> Lines {
        Lines::of(self.follow(&format!("/v1/runs/{run}/tap")).await)
    }

    /// Sends any request and returns the answer.
    pub async fn send(&self, method: Method, path: &str, body: String) -> Answer {
        self.0.request(method, path, body.into()).await.unwrap()
    }
}

fn result<T: DeserializeOwned>(answer: Answer) -> Result<T, Problem> {
    if answer.status.is_success() {
        Ok(serde_json::from_slice(&answer.body).unwrap())
    } else {
        Err(serde_json::from_slice(&answer.body).unwrap())
    }
}
