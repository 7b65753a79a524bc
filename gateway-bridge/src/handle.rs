//! Shares a connection between its handles and the tasks of turns: a channel to its task, and its state.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use platform_core::{
    id::GatewayProvider,
    json::{Raw, RawBuf},
};
use serde::Serialize;
use tokio::{
    sync::{broadcast, mpsc, oneshot, watch},
    time::timeout,
};
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::{
    connection_phase::{ConnectionPhase, OpenConnection},
    counts::Cells,
    error::Error,
    hello::Hello,
    routes::Routes,
    settings::GatewayLimits,
    subscription::Notice,
    wire::{frame::ResponseFrame, request},
};

/// Command to the connection's task.
#[derive(Debug)]
pub(crate) enum Command {
    /// Send this frame.
    Send(Outgoing),
    /// Close the connection for good.
    Close,
}

/// Request frame on its way.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) id: u64,
    pub(crate) method: String,
    pub(crate) text: Utf8Bytes,
    pub(crate) reply: ReplySender,
    /// Only connection on which the frame may be sent, if it must not reach a gateway that was restarted since.
    pub(crate) connection: Option<u64>,
}

/// Channel for the answer.
#[derive(Debug)]
pub(crate) enum ReplySender {
    /// Takes one answer.
    Once(oneshot::Sender<Result<ResponseFrame, Error>>),
    /// Takes two answers: that a turn was accepted, and how it ended. Closed when the connection breaks.
    Twice(mpsc::Sender<Result<ResponseFrame, Error>>),
}

impl ReplySender {
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Once(sender) => sender.is_closed(),
            Self::Twice(sender) => sender.is_closed(),
        }
    }

    /// Reports to the caller that no answer comes.
    pub(crate) fn refuse(self, error: Error) {
        // The caller may have gone, and then the error is dropped.
        match self {
            Self::Once(sender) => drop(sender.send(Err(error))),
            Self::Twice(sender) => drop(sender.try_send(Err(error))),
        }
    }
}

/// Handle of a connection's task.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionHandle {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) phase: watch::Receiver<ConnectionPhase>,
    pub(crate) notices: broadcast::Sender<Notice>,
    pub(crate) shared: Arc<Shared>,
}

/// State that all handles of a connection share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) routes: Routes,
    pub(crate) cells: Arc<Cells>,
    pub(crate) limits: GatewayLimits,
    pub(crate) provider: Option<GatewayProvider>,
    pub(crate) ids: AtomicU64,
}

impl Shared {
    /// Returns an id for a request: unlike any other of this connection and those before it.
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }
}

impl ConnectionHandle {
    /// Waits for a connection. Cancel safe.
    pub(crate) async fn connected(&self) -> Result<Arc<OpenConnection>, Error> {
        let mut phase = self.phase.clone();
        let connected = phase.wait_for(|phase| !matches!(phase, ConnectionPhase::Down(_))).await;
        match connected.as_deref() {
            Ok(ConnectionPhase::Up(up)) => Ok(up.clone()),
            Ok(ConnectionPhase::Failed(error)) => Err(error.clone()),
            Ok(ConnectionPhase::Down(_)) | Err(_) => Err(Error::Closed),
        }
    }

    /// Waits until connection number `connection` has ended. Cancel safe.
    pub(crate) async fn wait_until_closed(&self, connection: u64) {
        let mut phase = self.phase.clone();
        let other =
            |phase: &ConnectionPhase| !matches!(phase, ConnectionPhase::Up(up) if up.number == connection);
        // A closed channel means that the connection has ended, too.
        drop(phase.wait_for(other).await);
    }

    pub(crate) fn trouble(&self) -> Option<Error> {
        match &*self.phase.borrow() {
            ConnectionPhase::Down(trouble) => trouble.clone(),
            ConnectionPhase::Failed(error) => Some(error.clone()),
            ConnectionPhase::Up(_) => None,
        }
    }

    /// Calls `method` and waits for its one answer, at most `limit` in all.
    pub(crate) async fn call(
        &self,
        method: &str,
        params: &impl Serialize,
        limit: Duration,
    ) -> Result<RawBuf, Error> {
        let called = async {
            let answer = self.send_request(method, params, None).await?;
            match answer.error {
                Some(error) => Err(error.refusal(method)),
                None => Ok(answer.payload.unwrap_or_else(|| Raw::NULL.to_buf())),
            }
        };
        let no_answer =
            || self.trouble().unwrap_or_else(|| Error::NoAnswer { method: method.to_owned(), limit });
        timeout(limit, called).await.unwrap_or_else(|_elapsed| Err(no_answer()))
    }

    /// Sends one request and waits for its answer without a timeout; on `connection` alone, if one is given.
    pub(crate) async fn send_request(
        &self,
        method: &str,
        params: &impl Serialize,
        connection: Option<u64>,
    ) -> Result<ResponseFrame, Error> {
        let up = self.connected().await?;
        let id = self.shared.next_id();
        let malformed = |_error| Error::Malformed { method: method.to_owned(), reason: "parameters" };
        let text = request::encode(id, method, params, None).map_err(malformed)?;
        self.check_size(method, text.len(), &up.hello)?;
        let (reply, answer) = oneshot::channel();
        let outgoing = Outgoing {
            id,
            method: method.to_owned(),
            text: text.into(),
            reply: ReplySender::Once(reply),
            connection,
        };
        self.send(outgoing).await?;
        answer.await.map_err(|_closed| Error::Closed)?
    }

    /// Hands a frame to the connection's task; waits while too many are on their way.
    pub(crate) async fn send(&self, outgoing: Outgoing) -> Result<(), Error> {
        self.commands.send(Command::Send(outgoing)).await.map_err(|_closed| Error::Closed)
    }

    /// Checks that a frame is not so large that the gateway would close the connection for it.
    pub(crate) fn check_size(&self, method: &str, size: usize, hello: &Hello) -> Result<(), Error> {
        if size <= hello.max_payload {
            return Ok(());
        }
        self.shared.cells.too_large.add_one();
        Err(Error::TooLarge { method: method.to_owned(), size, limit: hello.max_payload })
    }
}
