//! Carries the bytes of a connection: plain, or in TLS.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use rustix::net::{RecvFlags, recv};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

/// Byte stream of a connection.
#[derive(Debug)]
pub(super) struct UpstreamIo {
    stream: TransportStream,
    flags: Arc<Flags>,
}

/// Facts that a connection and its stream tell each other.
#[derive(Debug, Default)]
struct Flags {
    check_closed: AtomicBool,
    has_received: AtomicBool,
}

#[derive(Debug)]
pub(super) enum TransportStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Handle on a stream that belongs to hyper: lets an idle connection check, at its next read, whether the upstream has
/// closed it, and tells whether any of an answer came.
///
/// tokio knows what the kernel reported at the last check, which may have been many calls ago. Between that and the
/// write of a request lies the only moment in which a closed connection could still be taken for a good one.
#[derive(Debug)]
pub(super) struct IoHandle(Arc<Flags>);

impl IoHandle {
    pub(super) fn request_check(&self) {
        self.0.check_closed.store(true, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn cancel_check(&self) {
        self.0.check_closed.store(false, Ordering::Relaxed);
    }

    /// Forgets what was received, because a new request follows.
    pub(super) fn expect_answer(&self) {
        self.0.has_received.store(false, Ordering::Relaxed);
    }

    /// Returns whether a byte came since the last request.
    pub(super) fn has_received(&self) -> bool {
        self.0.has_received.load(Ordering::Relaxed)
    }
}

impl UpstreamIo {
    pub(super) fn new(stream: TransportStream) -> (Self, IoHandle) {
        let flags = Arc::<Flags>::default();
        (Self { stream, flags: Arc::clone(&flags) }, IoHandle(flags))
    }
}

impl TransportStream {
    pub(super) fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }

    /// Returns whether nothing came in: no end and, what an idle connection should not bring, no bytes.
    fn is_silent(&self) -> bool {
        let peek = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        recv(self.tcp(), &mut [0; 1], peek).is_err_and(|error| error == rustix::io::Errno::AGAIN)
    }
}

impl AsyncRead for UpstreamIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.flags.check_closed.load(Ordering::Relaxed) {
            self.flags.check_closed.store(false, Ordering::Relaxed);
            if !self.stream.is_silent() {
                return Poll::Ready(Ok(()));
            }
        }
        let before = into.filled().len();
        let read = match &mut self.stream {
            TransportStream::Plain(stream) => Pin::new(stream).poll_read(cx, into),
            TransportStream::Tls(stream) => Pin::new(stream).poll_read(cx, into),
        };
        if into.filled().len() > before {
            self.flags.has_received.store(true, Ordering::Relaxed);
        }
        read
    }
}

impl AsyncWrite for UpstreamIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            TransportStream::Plain(stream) => Pin::new(stream).poll_write(cx, from),
            TransportStream::Tls(stream) => Pin::new(stream).poll_write(cx, from),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            TransportStream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, from),
            TransportStream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, from),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            TransportStream::Plain(stream) => stream.is_write_vectored(),
            TransportStream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            TransportStream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            TransportStream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            TransportStream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            TransportStream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
