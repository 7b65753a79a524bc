//! One connection to the upstream.
//!
//! It has no task of its own: whoever waits for its answer drives it. What has arrived together is so passed on
//! together, with one write to the client, and no call is handed from task to task.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body::{Body as _, Frame};
use hyper::{
    body::Incoming,
    client::conn::{
        TrySendError,
        http1::{self, SendRequest},
    },
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::quiet::Quiet;
use crate::pieces::Pieces;

type Wire = http1::Connection<TokioIo<TcpStream>, Pieces>;

/// A connection. Dropping it closes it, which cancels a call that is under way.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<Pieces>,
    /// Reads and writes when it is polled; gone once the connection has ended.
    wire: Option<Pin<Box<Wire>>>,
    quiet: Quiet,
}

/// Why an answer was not read whole.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    /// It is longer than it may be.
    #[error("the answer is longer than {limit} bytes")]
    TooLong {
        /// What it may have.
        limit: usize,
    },
    /// The upstream broke off.
    #[error("the answer broke off")]
    Broken(#[source] hyper::Error),
}

impl Connection {
    pub(super) async fn over(stream: TcpStream) -> hyper::Result<Self> {
        let (sender, wire) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(Self { sender, wire: Some(Box::pin(wire)), quiet: Quiet::default() })
    }

    /// Sends `request` and waits for the head of its answer. A request of which nothing was sent is handed back.
    pub(super) async fn send(
        &mut self,
        request: Request<Pieces>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Pieces>>> {
        let mut answer = pin!(self.sender.try_send_request(request));
        poll_fn(|cx| drive(&mut self.wire, &self.quiet, cx, |cx| answer.as_mut().poll(cx))).await
    }

    /// Whether it can take a request. No: the upstream has closed it.
    pub(super) async fn is_ready(&mut self) -> bool {
        let sender = &mut self.sender;
        let ready = poll_fn(|cx| drive(&mut self.wire, &self.quiet, cx, |cx| sender.poll_ready(cx)));
        ready.await.is_ok()
    }

    /// All of `body`, which this connection brings, if it has at most `limit` bytes.
    pub(crate) async fn read_whole(&mut self, mut body: Incoming, limit: usize) -> Result<Bytes, Unread> {
        let mut whole = BytesMut::new();
        while let Some(frame) = poll_fn(|cx| self.poll_frame(&mut body, cx)).await {
            if let Ok(piece) = frame.map_err(Unread::Broken)?.into_data() {
                whole.extend_from_slice(&piece);
            }
            if whole.len() > limit {
                return Err(Unread::TooLong { limit });
            }
        }
        Ok(whole.freeze())
    }

    /// The next piece of `body`, which this connection brings.
    pub(crate) fn poll_frame(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        drive(&mut self.wire, &self.quiet, cx, |cx| Pin::new(&mut *body).poll_frame(cx))
    }
}

/// Polls what is `wanted`, and the wire for as long as that may bring it.
fn drive<T>(
    wire: &mut Option<Pin<Box<Wire>>>,
    quiet: &Quiet,
    cx: &Context<'_>,
    mut wanted: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    quiet.during(cx, |cx| {
        if let Poll::Ready(there) = wanted(cx) {
            return Poll::Ready(there);
        }
        if let Some(open) = wire
            && let Poll::Ready(ended) = open.as_mut().poll(cx)
        {
            // Whoever waits for an answer is told by hyper.
            tracing::debug!(?ended, "upstream connection ended");
            *wire = None;
        }
        wanted(cx)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    #[tokio::test]
    async fn an_answer_that_comes_in_pieces_is_read_whole() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let upstream = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0);
            let head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
            for piece in [&head[..], b"one", b"two", b"six"] {
                stream.write_all(piece).await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let client = async {
            let mut connection = Connection::over(TcpStream::connect(address).await.unwrap()).await.unwrap();
            let mut request = Request::new(Pieces::from(Vec::new()));
            request.headers_mut().insert("host", http::HeaderValue::from_static("u"));
            let body = connection.send(request).await.unwrap().into_body();
            connection.read_whole(body, 9).await
        };
        let (read, ()) = tokio::join!(client, upstream);
        assert_eq!(read.unwrap(), "onetwosix");
    }
}
