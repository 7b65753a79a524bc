//! Watches a client's stream from below hyper. That shows the first byte of a head, a client that reads nothing, and
//! the moment at which all of an answer is written.

use std::{
    io::{self, IoSlice},
    os::fd::AsFd,
    pin::Pin,
    task::{Context, Poll},
};

use platform_core::refusal::Refusal;
use rustix::net::{RecvFlags, recv};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use super::{connection_state::ConnectionState, write_tracker::PendingWrite};
use crate::refusal;

/// Stream of a client.
pub(super) trait ClientStream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Returns whether a read that has just emptied the stream was the last one. The event loop does not know that
    /// yet: it may have been notified of the bytes alone.
    fn has_ended(&self) -> bool;
}

impl ClientStream for TcpStream {
    fn has_ended(&self) -> bool {
        is_at_end(self)
    }
}

/// Returns whether `socket` has nothing more to read, ever. One system call for each request, 0.3 µs.
pub(super) fn is_at_end(socket: impl AsFd) -> bool {
    let peek = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    recv(socket, &mut [0; 1], peek).is_ok_and(|(_, received)| received == 0)
}

/// Stream of a client that reports to its connection when bytes come, when they are stuck, and when none are
/// left.
#[derive(Debug)]
pub(super) struct SensorIo<S> {
    stream: S,
    connection_state: ConnectionState,
    pending_write: PendingWrite,
    is_blocked: bool,
    presence: Presence,
}

/// Presence of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// The client is there, as far as hyper knows.
    Present,
    /// The last bytes were read together with the end, which hyper has not read yet.
    Ending,
    /// The client has left a call that goes on: what is written is discarded.
    Gone,
}

impl<S> SensorIo<S> {
    pub(super) const fn new(
        stream: S,
        connection_state: ConnectionState,
        pending_write: PendingWrite,
    ) -> Self {
        Self { stream, connection_state, pending_write, is_blocked: false, presence: Presence::Present }
    }

    /// Returns the result of a write of `length` bytes. hyper ends a call when its client takes no more bytes, also one
    /// that goes on.
    fn track_write(&mut self, polled: Poll<io::Result<usize>>, length: usize) -> Poll<io::Result<usize>> {
        let polled = match polled {
            Poll::Ready(Err(_)) if self.leave_call() => Poll::Ready(Ok(length)),
            polled => polled,
        };
        if self.is_blocked != polled.is_pending() {
            self.is_blocked = polled.is_pending();
            if self.is_blocked {
                self.connection_state.write_blocked()
            } else {
                self.connection_state.write_resumed()
            }
        }
        polled
    }

    /// Takes `length` bytes that have no reader.
    fn discard(&mut self, length: usize) -> Poll<io::Result<usize>> {
        self.track_write(Poll::Ready(Ok(length)), length)
    }

    /// Notes that the client has left. Returns whether its call goes on.
    fn leave_call(&mut self) -> bool {
        let goes_on = self.connection_state.leave_call();
        if goes_on {
            self.presence = Presence::Gone;
        }
        goes_on
    }
}

impl<S: ClientStream> SensorIo<S> {
    /// Replaces hyper's own answer to a request that it does not understand, which begins with `status_line`.
    fn refuse(&mut self, cx: &mut Context<'_>, status_line: &[u8]) {
        // hyper answers no other request by itself.
        let is_long =
            [b"HTTP/1.1 431", b"HTTP/1.1 414"].iter().any(|status| status_line.starts_with(*status));
        let reason = if is_long { Refusal::HeadTooLarge } else { Refusal::HeadInvalid };
        self.write_now(cx, refusal::raw(reason).as_bytes());
    }

    /// Writes `text` as far as the client takes it at once.
    pub(super) fn write_now(&mut self, cx: &mut Context<'_>, text: &[u8]) {
        drop(Pin::new(&mut self.stream).poll_write(cx, text));
    }
}

impl<S: ClientStream> AsyncRead for SensorIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.presence {
            Presence::Ending => {
                // hyper ends a connection at its end, even if the request before it has not become a call. The next
                // poll reads the end.
                self.presence = Presence::Present;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Presence::Gone if self.connection_state.goes_on() => return Poll::Pending,
            Presence::Gone | Presence::Present => {}
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let has_read = buffer.filled().len() > before;
        // hyper ends a call at the end of its client.
        if polled.is_ready() && !has_read && buffer.remaining() > 0 && self.leave_call() {
            return Poll::Pending;
        }
        if has_read {
            self.connection_state.received(&buffer.filled()[before..]);
            if buffer.remaining() > 0 && self.stream.has_ended() {
                self.connection_state.input_ended();
                self.presence = Presence::Ending;
            }
        }
        polled
    }
}

impl<S: ClientStream> AsyncWrite for SensorIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.pending_write.is_none() {
            self.refuse(cx, bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        if self.presence == Presence::Gone {
            return self.discard(bytes.len());
        }
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.track_write(polled, bytes.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = pieces.iter().map(|piece| piece.len()).sum();
        if self.pending_write.is_none() {
            self.refuse(cx, pieces.first().map_or(&[], |piece| piece));
            return Poll::Ready(Ok(length));
        }
        if self.presence == Presence::Gone {
            return self.discard(length);
        }
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.track_write(polled, length)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = if self.presence == Presence::Gone {
            Poll::Ready(Ok(()))
        } else {
            Pin::new(&mut self.stream).poll_flush(cx)
        };
        if flushed.is_ready() {
            self.pending_write.flushed();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
