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
pub(super) struct Wire {
    stream: Stream,
    look: Arc<AtomicBool>,
}

#[derive(Debug)]
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Handle that lets an idle wire check itself, at its next read, whether the upstream has closed it.
///
/// tokio knows what the kernel reported at the last check, which may have been many calls ago. Between that and the
/// write of a request lies the only moment in which a closed connection could still be taken for a good one.
#[derive(Debug)]
pub(super) struct Look(Arc<AtomicBool>);

impl Look {
    pub(super) fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn forget(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Wire {
    pub(super) fn new(stream: Stream) -> (Self, Look) {
        let look = Arc::new(AtomicBool::new(false));
        (Self { stream, look: Arc::clone(&look) }, Look(look))
    }
}

impl Stream {
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

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.look.load(Ordering::Relaxed) {
            self.look.store(false, Ordering::Relaxed);
            if !self.stream.is_silent() {
                return Poll::Ready(Ok(()));
            }
        }
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, into),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, from),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, from),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, from),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, from),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
