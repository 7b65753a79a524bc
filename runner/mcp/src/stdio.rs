//! stdio exchanges messages with a program, over its standard input and output.
//!
//! One task reads all output, so a server can flood nobody but itself: what is not an answer is dropped as it comes, and
//! too much of it ends the session. Its input is written by another task: a server that does not read ends its session, too.

use std::{
    collections::{BTreeMap, VecDeque},
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, future::BoxFuture};
use platform_runtime::task;
use runner_docker::ServerOutput;
use serde_json::{json, value::RawValue};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{error::ServerError, frame::Frame, lines::Lines, text::quote};

/// Most messages that wait to be written.
const MAX_WAITING: usize = 64;
/// Most requests without an answer.
const MAX_PENDING: usize = 64;
/// Most requests whose answers are awaited no more, and may still come.
const MAX_FORGOTTEN: usize = 256;
/// Time over which what was not asked for is counted.
const WINDOW: Duration = Duration::from_secs(10);
/// Most messages of a window that were not asked for.
const MAX_UNASKED: u32 = 1000;
/// Most bytes of a window that were not asked for, standard error included.
const MAX_UNASKED_BYTES: usize = 8 << 20;
/// Bytes of standard error that are kept.
const KEPT_STDERR: usize = 2 << 10;
/// Code of JSON-RPC for a method that is not offered.
const METHOD_NOT_FOUND: i64 = -32601;
/// Notification after which the list of tools is read again.
const LIST_CHANGED: &str = "notifications/tools/list_changed";

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
    commands: mpsc::Sender<Command>,
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

type Answer = Result<Box<RawValue>, ServerError>;

/// Order for the task of a link.
enum Command {
    Request { id: u64, message: String, answer: oneshot::Sender<Answer> },
    Notify(String),
    /// The answer to a request is awaited no more.
    Forget(u64),
}

/// Request whose caller may leave.
struct Awaited<'l> {
    commands: &'l mpsc::Sender<Command>,
    id: u64,
    is_answered: bool,
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            // If it is full, the late answer finds a request without a caller.
            drop(self.commands.try_send(Command::Forget(self.id)));
        }
    }
}

impl StdioLink {
    /// Begins to exchange messages. `cleanup` runs at the end, whatever ends it; `tasks` wait for it.
    pub(crate) fn start(streams: Streams, bounds: LinkBounds, tasks: &TaskTracker, cleanup: BoxFuture<'static, ()>) -> Self {
        let (commands, orders) = mpsc::channel(MAX_PENDING);
        let state = Arc::new(LinkState::default());
        let stop = CancellationToken::new();
        let (writer, messages) = mpsc::channel(MAX_WAITING);
        let Streams { output, input } = streams;
        let writing = task::spawn("input of a tool server", write(input, messages));
        let link = LinkTask {
            output,
            writer,
            orders,
            stop: stop.clone(),
            state: Arc::clone(&state),
            pending: BTreeMap::new(),
            forgotten: VecDeque::new(),
            lines: Lines::new(bounds.message),
            unasked: Unasked::new(),
            stderr: VecDeque::new(),
            idle: bounds.idle,
        };
        let work = async move {
            link.run().await;
            writing.abort();
            cleanup.await;
        };
        drop(task::spawn("tool server", tasks.track_future(work)));
        Self { commands, next_id: AtomicU64::new(1), state, stop }
    }

    /// Sends a request, and returns its result. Cancel safe: the server is told that its answer is awaited no more.
    pub(crate) async fn request(&self, method: &str, params: &serde_json::Value) -> Answer {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        let (answer, awaited) = oneshot::channel();
        let command = Command::Request { id, message, answer };
        self.commands.send(command).await.map_err(|_ended| ServerError::NotSent)?;
        let mut guard = Awaited { commands: &self.commands, id, is_answered: false };
        let result = awaited.await;
        guard.is_answered = true;
        result.unwrap_or_else(|_dropped| Err(self.ended().unwrap_or(ServerError::Stopped)))
    }

    /// Sends a notification.
    pub(crate) async fn notify(&self, method: &str) -> Result<(), ServerError> {
        let message = json!({ "jsonrpc": "2.0", "method": method }).to_string();
        self.commands.send(Command::Notify(message)).await.map_err(|_ended| ServerError::NotSent)
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

/// Writes messages, each as a line, until the server takes no more or the sender is gone.
async fn write(mut input: Pin<Box<dyn AsyncWrite + Send>>, mut messages: mpsc::Receiver<String>) {
    while let Some(message) = messages.recv().await {
        let line = format!("{message}\n");
        if input.write_all(line.as_bytes()).await.is_err() || input.flush().await.is_err() {
            return;
        }
    }
}

/// Count of what was not asked for.
struct Unasked {
    since: Instant,
    messages: u32,
    bytes: usize,
}

impl Unasked {
    fn new() -> Self {
        Self { since: Instant::now(), messages: 0, bytes: 0 }
    }

    fn add(&mut self, messages: u32, bytes: usize) -> Result<(), ServerError> {
        if self.since.elapsed() >= WINDOW {
            *self = Self::new();
        }
        self.messages += messages;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.messages > MAX_UNASKED {
            return Err(ServerError::Flood { limit: "1000 messages in 10 s" });
        }
        if self.bytes > MAX_UNASKED_BYTES {
            return Err(ServerError::Flood { limit: "8 MiB in 10 s" });
        }
        Ok(())
    }
}

/// Task of a link.
struct LinkTask {
    output: Pin<Box<dyn Stream<Item = std::io::Result<ServerOutput>> + Send>>,
    writer: mpsc::Sender<String>,
    orders: mpsc::Receiver<Command>,
    stop: CancellationToken,
    state: Arc<LinkState>,
    pending: BTreeMap<u64, oneshot::Sender<Answer>>,
    /// Requests whose answers may still come.
    forgotten: VecDeque<u64>,
    lines: Lines,
    unasked: Unasked,
    stderr: VecDeque<u8>,
    idle: Duration,
}

impl LinkTask {
    /// Exchanges messages until the link ends. Then no request is left without an answer.
    async fn run(mut self) {
        let reason = self.exchange().await;
        tracing::debug!(reason = %reason, "session of a tool server ended");
        // Before the answers: their callers find that the link has ended.
        drop(self.state.ended.set(reason.clone()));
        self.orders.close();
        for (_id, answer) in std::mem::take(&mut self.pending) {
            drop(answer.send(Err(reason.clone())));
        }
        while let Ok(command) = self.orders.try_recv() {
            if let Command::Request { answer, .. } = command {
                drop(answer.send(Err(ServerError::NotSent)));
            }
        }
    }

    async fn exchange(&mut self) -> ServerError {
        let mut last_use = Instant::now();
        loop {
            let stepped = tokio::select! {
                () = self.stop.cancelled() => return ServerError::Stopped,
                piece = self.output.next() => match piece {
                    None => return self.ended(),
                    Some(Err(error)) => return ServerError::NotStarted { problem: quote(&error.to_string()) },
                    Some(Ok(ServerOutput::Out(chunk))) => self.take(chunk),
                    Some(Ok(ServerOutput::Err(chunk))) => self.take_stderr(&chunk),
                },
                command = self.orders.recv() => match command {
                    None => return ServerError::Stopped,
                    Some(command) => {
                        last_use = Instant::now();
                        self.execute(command)
                    }
                },
                () = sleep_until(last_use + self.idle), if self.pending.is_empty() => return ServerError::Stopped,
            };
            if let Err(error) = stepped {
                return error;
            }
            // Endless output is always ready: without this, nothing else on the thread would be polled.
            tokio::task::yield_now().await;
        }
    }

    fn ended(&mut self) -> ServerError {
        let stderr: Vec<u8> = self.stderr.drain(..).collect();
        ServerError::Ended { stderr: quote(&String::from_utf8_lossy(&stderr)) }
    }

    fn execute(&mut self, command: Command) -> Result<(), ServerError> {
        match command {
            Command::Request { answer, .. } if self.pending.len() >= MAX_PENDING => {
                drop(answer.send(Err(ServerError::Busy { count: 1 })));
                Ok(())
            }
            Command::Request { id, message, answer } => {
                self.pending.insert(id, answer);
                self.write(message)
            }
            Command::Notify(message) => self.write(message),
            Command::Forget(id) => {
                if self.pending.remove(&id).is_none() {
                    return Ok(());
                }
                self.forgotten.push_back(id);
                if self.forgotten.len() > MAX_FORGOTTEN {
                    self.forgotten.pop_front();
                }
                let params = json!({ "requestId": id, "reason": "the caller has left" });
                let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
                self.write(note.to_string())
            }
        }
    }

    fn write(&self, message: String) -> Result<(), ServerError> {
        let full = |_full_or_closed| ServerError::protocol("it does not read its input");
        self.writer.try_send(message).map_err(full)
    }

    fn take_stderr(&mut self, chunk: &Bytes) -> Result<(), ServerError> {
        let kept = &chunk[chunk.len().saturating_sub(KEPT_STDERR)..];
        self.stderr.extend(kept);
        let surplus = self.stderr.len().saturating_sub(KEPT_STDERR);
        self.stderr.drain(..surplus);
        self.unasked.add(0, chunk.len())
    }

    fn take(&mut self, mut chunk: Bytes) -> Result<(), ServerError> {
        while let Some(line) = self.lines.take(&mut chunk)? {
            self.take_line(&line)?;
        }
        Ok(())
    }

    fn take_line(&mut self, line: &[u8]) -> Result<(), ServerError> {
        if line.is_empty() {
            return self.unasked.add(1, 1);
        }
        match Frame::read(line)? {
            Frame::Answer { id, result } => self.answer(id, result, line.len()),
            Frame::Request { id, method } => {
                self.unasked.add(1, line.len())?;
                self.write(answer_to_server(&id, &method))
            }
            Frame::Notification { method } => {
                if method == LIST_CHANGED {
                    self.state.is_stale.store(true, Ordering::Relaxed);
                }
                self.unasked.add(1, line.len())
            }
        }
    }

    fn answer(&mut self, id: u64, result: Answer, length: usize) -> Result<(), ServerError> {
        if let Some(answer) = self.pending.remove(&id) {
            // A caller that has left needs none.
            drop(answer.send(result));
            return Ok(());
        }
        match self.forgotten.iter().position(|forgotten| *forgotten == id) {
            Some(at) => {
                self.forgotten.remove(at);
                self.unasked.add(1, length)
            }
            None => Err(ServerError::protocol(format!("it answers request {id}, which was not made"))),
        }
    }
}

/// Returns the answer to a request of a server: it may ask whether this program lives, and for nothing else.
pub(crate) fn answer_to_server(id: &RawValue, method: &str) -> String {
    if method == "ping" {
        return format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, id.get());
    }
    tracing::debug!(method, "request of a tool server refused");
    let error = json!({ "code": METHOD_NOT_FOUND, "message": "this client offers nothing to servers" });
    format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.get())
}
