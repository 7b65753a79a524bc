//! A client's stream, watched from below: hyper does not tell when the first byte of a head comes, that a client takes
//! nothing, or that all of an answer is written out.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{carried::Carried, unwritten::Owed};

/// A stream that tells what it carries when bytes come, when they are stuck, and when none are left.
#[derive(Debug)]
pub(super) struct Wire<S> {
    stream: S,
    carried: Carried,
    owed: Owed,
    is_stuck: bool,
}

impl<S> Wire<S> {
    pub(super) const fn new(stream: S, carried: Carried, owed: Owed) -> Self {
        Self { stream, carried, owed, is_stuck: false }
    }

    fn written(&mut self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if self.is_stuck != polled.is_pending() {
            self.is_stuck = polled.is_pending();
            if self.is_stuck { self.carried.is_unread() } else { self.carried.is_read() }
        }
        polled
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.carried.came();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.written(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if flushed.is_ready() {
            self.owed.flushed();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
