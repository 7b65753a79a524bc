//! stdio exchanges messages with a program, over its standard input and output.
//!
//! One task reads all output, so a server that floods harms itself alone. All but answers is dropped as it comes, and
//! too much of it ends the session. Its input is written by another task: a server that does not read ends its session, too.

mod task;
mod unasked;

use std::{
    collections::{BTreeMap, VecDeque},
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{Stream, future::BoxFuture};
use platform_core::json::RawBuf;
use platform_runtime::task::spawn;
use runner_docker::ServerOutput;
use serde_json::json;
use tokio::{
    io::AsyncWrite,
    sync::{mpsc, oneshot},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    task::{LinkTask, write},
    unasked::Unasked,
};
use crate::{error::ServerError, lines::LineSplitter};

/// Most messages that wait to be written.
const MAX_WAITING: usize = 64;
/// Most requests without an answer.
const MAX_PENDING: usize = 64;
/// Code of JSON-RPC for a method that is not offered.
const METHOD_NOT_FOUND: i64 = -32601;

/// Streams of a server's program.
pub(crate) struct Streams {
    pub(crate) output: Pin<Box<dyn Stream<Item = std::io::Result<ServerOutput>> + Send>>,
    pub(crate) input: Pin<Box<dyn AsyncWrite + Send>>,
}

/// Bounds of a link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkBounds {
    /// Most bytes of a message.
    pub(crate) message: usize,
    /// Time without a request after which the link ends.
    pub(crate) idle: Duration,
}

/// Link to a program. Its task ends with it.
#[derive(Debug)]
pub(crate) struct StdioLink {
    commands: mpsc::Sender<LinkCommand>,
    next_id: AtomicU64,
    state: Arc<LinkState>,
    stop: CancellationToken,
}

/// State that link and task share.
#[derive(Debug, Default)]
struct LinkState {
    ended: OnceLock<ServerError>,
    /// Set if the list of tools has changed.
    is_stale: AtomicBool,
}

type RequestResult = Result<RawBuf, ServerError>;

/// Order for the task of a link.
enum LinkCommand {
    Request {
        id: u64,
        message: String,
        answer: oneshot::Sender<RequestResult>,
    },
    Notify(String),
    /// The answer to a request is awaited no more.
    Forget(u64),
}

/// Request that its caller may leave.
struct Awaited<'l> {
    commands: &'l mpsc::Sender<LinkCommand>,
    id: u64,
    is_answered: bool,
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            // If it is full, the late answer finds a request without a caller.
            drop(self.commands.try_send(LinkCommand::Forget(self.id)));
        }
    }
}

impl StdioLink {
    /// Begins to exchange messages. `cleanup` runs at the end, whatever ends it; `tasks` wait for it.
    pub(crate) fn start(
        streams: Streams,
        bounds: LinkBounds,
        tasks: &TaskTracker,
        cleanup: BoxFuture<'static, ()>,
    ) -> Self {
        let (commands, orders) = mpsc::channel(MAX_PENDING);
        let state = Arc::new(LinkState::default());
        let stop = CancellationToken::new();
        let (writer, messages) = mpsc::channel(MAX_WAITING);
        let Streams { output, input } = streams;
        let writing = spawn("input of a tool server", write(input, messages));
        let link = LinkTask {
            output,
            writer,
            orders,
            stop: stop.clone(),
            state: Arc::clone(&state),
            pending: BTreeMap::new(),
            forgotten: VecDeque::new(),
            lines: LineSplitter::new(bounds.message),
            unasked: Unasked::new(),
            stderr: VecDeque::new(),
            idle: bounds.idle,
        };
        let work = async move {
            link.run().await;
            writing.abort();
            cleanup.await;
        };
        drop(spawn("tool server", tasks.track_future(work)));
        Self { commands, next_id: AtomicU64::new(1), state, stop }
    }

    /// Sends a request, and returns its result. Cancel safe: the server learns that its answer is awaited no more.
    pub(crate) async fn request(&self, method: &str, params: &serde_json::Value) -> RequestResult {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        let (answer, awaited) = oneshot::channel();
        let command = LinkCommand::Request { id, message, answer };
        self.commands.send(command).await.map_err(|_ended| ServerError::NotSent)?;
        let mut guard = Awaited { commands: &self.commands, id, is_answered: false };
        let result = awaited.await;
        guard.is_answered = true;
        result.unwrap_or_else(|_dropped| Err(self.ended().unwrap_or(ServerError::Stopped)))
    }

    /// Sends a notification.
    pub(crate) async fn notify(&self, method: &str) -> Result<(), ServerError> {
        let message = json!({ "jsonrpc": "2.0", "method": method }).to_string();
        self.commands.send(LinkCommand::Notify(message)).await.map_err(|_ended| ServerError::NotSent)
    }

    /// Returns the reason of the end, if it has ended.
    pub(crate) fn ended(&self) -> Option<ServerError> {
        self.state.ended.get().cloned()
    }

    /// Returns whether the list of tools has changed since the last time.
    pub(crate) fn take_stale(&self) -> bool {
        self.state.is_stale.swap(false, Ordering::Relaxed)
    }

    /// Ends the link.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }
}

impl Drop for StdioLink {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Returns the answer to a request of a server: it may ask whether this program lives, and for nothing else.
pub(crate) fn answer_to_server(id: &RawBuf, method: &str) -> String {
    if method == "ping" {
        return format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, id.get());
    }
    tracing::debug!(method, "request of a tool server refused");
    let error = json!({ "code": METHOD_NOT_FOUND, "message": "this client offers nothing to servers" });
    format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.get())
}
