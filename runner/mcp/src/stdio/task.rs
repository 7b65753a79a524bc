//! task reads and writes the messages of a link, until it ends.

use std::{
    collections::{BTreeMap, VecDeque},
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use runner_docker::ServerOutput;
use serde_json::json;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{LinkCommand, LinkState, MAX_PENDING, RequestResult, answer_to_server, unasked::Unasked};
use crate::{error::ServerError, frame::RpcFrame, lines::LineSplitter, text::quote};

/// Most requests with answers that are awaited no more, and may still come.
const MAX_FORGOTTEN: usize = 256;
/// Bytes of standard error that are kept.
const KEPT_STDERR: usize = 2 << 10;
/// Notification after which the list of tools is read again.
const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// Writes messages, each as a line, until the server takes no more or the sender is gone.
pub(super) async fn write(mut input: Pin<Box<dyn AsyncWrite + Send>>, mut messages: mpsc::Receiver<String>) {
    while let Some(message) = messages.recv().await {
        let line = format!("{message}\n");
        if input.write_all(line.as_bytes()).await.is_err() || input.flush().await.is_err() {
            return;
        }
    }
}

/// Task of a link.
pub(super) struct LinkTask {
    pub(super) output: Pin<Box<dyn Stream<Item = std::io::Result<ServerOutput>> + Send>>,
    pub(super) writer: mpsc::Sender<String>,
    pub(super) orders: mpsc::Receiver<LinkCommand>,
    pub(super) stop: CancellationToken,
    pub(super) state: Arc<LinkState>,
    pub(super) pending: BTreeMap<u64, oneshot::Sender<RequestResult>>,
    /// Requests with answers that may still come.
    pub(super) forgotten: VecDeque<u64>,
    pub(super) lines: LineSplitter,
    pub(super) unasked: Unasked,
    pub(super) stderr: VecDeque<u8>,
    pub(super) idle: Duration,
}

impl LinkTask {
    /// Exchanges messages until the link ends. Then no request is left without an answer.
    pub(super) async fn run(mut self) {
        let reason = self.exchange().await;
        tracing::debug!(reason = %reason, "session of a tool server ended");
        // Before the answers: their callers find that the link has ended.
        drop(self.state.ended.set(reason.clone()));
        self.orders.close();
        for (_id, answer) in std::mem::take(&mut self.pending) {
            drop(answer.send(Err(reason.clone())));
        }
        while let Ok(command) = self.orders.try_recv() {
            if let LinkCommand::Request { answer, .. } = command {
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
                    Some(Err(error)) => {
                        return ServerError::protocol(format!("its output broke off: {}", quote(&error.to_string())));
                    }
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

    fn execute(&mut self, command: LinkCommand) -> Result<(), ServerError> {
        match command {
            LinkCommand::Request { answer, .. } if self.pending.len() >= MAX_PENDING => {
                drop(answer.send(Err(ServerError::Busy { count: 1 })));
                Ok(())
            }
            LinkCommand::Request { id, message, answer } => {
                self.pending.insert(id, answer);
                self.write(message)
            }
            LinkCommand::Notify(message) => self.write(message),
            LinkCommand::Forget(id) => {
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
        match RpcFrame::read(line)? {
            RpcFrame::Answer { id, result } => self.answer(id, result, line.len()),
            RpcFrame::Request { id, method } => {
                self.unasked.add(1, line.len())?;
                self.write(answer_to_server(&id, &method))
            }
            RpcFrame::Notification { method } => {
                if method == LIST_CHANGED {
                    self.state.is_stale.store(true, Ordering::Relaxed);
                }
                self.unasked.add(1, line.len())
            }
        }
    }

    fn answer(&mut self, id: u64, result: RequestResult, length: usize) -> Result<(), ServerError> {
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
