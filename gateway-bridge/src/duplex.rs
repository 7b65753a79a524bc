//! Drives both directions of a WebSocket in one future: queued frames are written while others are read.
//!
//! A gateway that does not read blocks only writing, and one that does not stop writing blocks only reading.

use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::{Sink, Stream as _};
use tokio_tungstenite::tungstenite::{
    self, Message, Utf8Bytes,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use crate::{error::DisconnectReason, transport::GatewaySocket};

/// Most frames, and bytes of them, in the write queue before no more are accepted.
const MAX_QUEUED_FRAMES: usize = 64;
const MAX_QUEUED_BYTES: usize = 4 << 20;

/// WebSocket with a queue of frames to write.
pub(crate) struct Duplex {
    socket: GatewaySocket,
    queue: VecDeque<Utf8Bytes>,
    queued: usize,
    /// True if the socket was given bytes that may not be written yet.
    dirty: bool,
}

impl Duplex {
    pub(crate) const fn new(socket: GatewaySocket) -> Self {
        Self { socket, queue: VecDeque::new(), queued: 0, dirty: false }
    }

    /// Returns whether another frame may be queued. One of any size always fits alone.
    pub(crate) fn has_capacity(&self) -> bool {
        self.queue.is_empty() || (self.queue.len() < MAX_QUEUED_FRAMES && self.queued < MAX_QUEUED_BYTES)
    }

    /// Queues a frame.
    pub(crate) fn push(&mut self, text: Utf8Bytes) {
        self.queued += text.len();
        self.queue.push_back(text);
    }

    /// Returns the next text from the gateway, or an empty text for a message of another kind. Meanwhile writes the
    /// queued frames. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Utf8Bytes, DisconnectReason> {
        match poll_fn(|context| self.poll(context)).await? {
            Message::Text(text) => Ok(text),
            Message::Close(frame) => {
                Err(DisconnectReason::Closed(frame.map_or(1005, |frame| frame.code.into())))
            }
            // These show that the gateway is alive, but are not frames of the protocol.
            Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {
                Ok(Utf8Bytes::default())
            }
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Message, DisconnectReason>> {
        if let Poll::Ready(Err(error)) = self.write(context) {
            return Poll::Ready(Err(broken(&error)));
        }
        match Pin::new(&mut self.socket).poll_next(context) {
            Poll::Ready(Some(Ok(message))) => Poll::Ready(Ok(message)),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Err(broken(&error))),
            Poll::Ready(None) => Poll::Ready(Err(DisconnectReason::Closed(1006))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn write(&mut self, context: &mut Context<'_>) -> Poll<Result<(), tungstenite::Error>> {
        while !self.queue.is_empty() {
            std::task::ready!(Pin::new(&mut self.socket).poll_ready(context))?;
            let Some(text) = self.queue.pop_front() else { break };
            self.queued -= text.len();
            self.dirty = true;
            Pin::new(&mut self.socket).start_send(Message::Text(text))?;
        }
        if self.dirty {
            std::task::ready!(Pin::new(&mut self.socket).poll_flush(context))?;
            self.dirty = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Sends a close message. Queued frames are dropped.
    pub(crate) async fn close(mut self) -> Result<(), DisconnectReason> {
        let frame = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
        self.socket.close(Some(frame)).await.map_err(|error| broken(&error))
    }
}

fn broken(error: &tungstenite::Error) -> DisconnectReason {
    use tungstenite::error::ProtocolError::ResetWithoutClosingHandshake;
    match error {
        tungstenite::Error::Capacity(_) => DisconnectReason::Oversize,
        tungstenite::Error::Io(_)
        | tungstenite::Error::ConnectionClosed
        | tungstenite::Error::AlreadyClosed
        | tungstenite::Error::Protocol(ResetWithoutClosingHandshake) => DisconnectReason::Closed(1006),
        _ => DisconnectReason::Protocol,
    }
}
