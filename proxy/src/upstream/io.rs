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
    check_closed: Arc<AtomicBool>,
}

#[derive(Debug)]
pub(super) enum TransportStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Handle that lets an idle connection check, at its next read, whether the upstream has closed it.
///
/// tokio knows what the kernel reported at the last check, which may have been many calls ago. Between that and the
/// write of a request lies the only moment in which a closed connection could still be taken for a good one.
#[derive(Debug)]
pub(super) struct ClosedCheck(Arc<AtomicBool>);

impl ClosedCheck {
    pub(super) fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn cancel(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl UpstreamIo {
    pub(super) fn new(stream: TransportStream) -> (Self, ClosedCheck) {
        let check_closed = Arc::new(AtomicBool::new(false));
        (Self { stream, check_closed: Arc::clone(&check_closed) }, ClosedCheck(check_closed))
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
        if self.check_closed.load(Ordering::Relaxed) {
            self.check_closed.store(false, Ordering::Relaxed);
            if !self.stream.is_silent() {
                return Poll::Ready(Ok(()));
            }
        }
        match &mut self.stream {
            TransportStream::Plain(stream) => Pin::new(stream).poll_read(cx, into),
            TransportStream::Tls(stream) => Pin::new(stream).poll_read(cx, into),
        }
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
