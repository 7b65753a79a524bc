//! Serves a scripted model provider. It speaks the APIs of OpenAI and Anthropic, follows the script in the model's
//! name, and keeps a ledger of every request.
//!
//! It stands in for a provider in tests, demonstrations and benchmarks. It is not a model and judges no request. It must
//! never be reachable from outside: its ledger holds credentials as they came.

mod answer;
mod api;
mod ask;
mod ledger;
mod model_info;
mod playback;
mod respond;
mod script;
mod server;
mod staging;
mod steps;
mod usage;

use std::{io, net::SocketAddr};

use bytes::Bytes;
use http::StatusCode;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

use self::{model_info::ModelInfo, respond::Responder};
use crate::spawn;

pub use ledger::{Ending, Entry, Ledger, Reported, WaitTimedOut};
pub use script::{Content, DIRECTIVES, Directive, Fate, Figures, Script, ScriptError};

/// A serving upstream, stopped on drop.
#[derive(Debug)]
pub struct ScriptedUpstream {
    address: SocketAddr,
    ledger: Ledger,
    model_info: ModelInfo,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl ScriptedUpstream {
    /// Starts to serve on a free port of the loopback interface, in the current tokio runtime.
    ///
    /// # Errors
    /// If no port can be bound.
    pub async fn start() -> io::Result<Self> {
        Self::start_on(SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Starts to serve on `address`, in the current tokio runtime.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub async fn start_on(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (ledger, stop) = (Ledger::new(), watch::Sender::new(false));
        let model_info = ModelInfo::default();
        let respond = Responder { ledger: ledger.clone(), model_info: model_info.clone() };
        let serving = spawn(server::accept(listener, respond, stop.subscribe()));
        Ok(Self { address, ledger, model_info, stop, serving })
    }

    /// Returns `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns `http://127.0.0.1:PORT/v1`, as OpenAI's SDKs expect it.
    #[must_use]
    pub fn openai_base_url(&self) -> String {
        self.base_url() + "/v1"
    }

    /// Returns the address it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the ledger of its requests.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.ledger.clone()
    }

    /// Answers `GET /model/info` with this from now on. Before, the path does not exist.
    pub fn show_model_info(&self, status: StatusCode, body: impl Into<Bytes>) {
        self.model_info.set(status, body.into());
    }

    /// Closes the listener and every connection abruptly, like a provider that dies. When this returns, the port is
    /// free and every request in the ledger has ended.
    ///
    /// # Panics
    /// If the answer to a request has panicked.
    pub async fn stop(mut self) {
        self.begin_stop();
        server::pass_on_panic((&mut self.serving).await);
    }

    fn begin_stop(&self) {
        self.ledger.stopping();
        self.stop.send_replace(true);
    }
}

impl Drop for ScriptedUpstream {
    fn drop(&mut self) {
        self.begin_stop();
    }
}
