//! Drives one connection to the upstream.
//!
//! The connection has no separate task: the call that waits for its answer drives it. So data that has arrived together
//! is passed on together, with one write to the client. No call is handed from task to task.

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

use super::{
    coalescing_waker::CoalescingWaker,
    io::{IoHandle, TransportStream, UpstreamIo},
};
use crate::pieces::Pieces;

type Driver = http1::Connection<TokioIo<UpstreamIo>, Pieces>;

/// Connection to the upstream. Dropping it closes it, which cancels a call that is under way.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<Pieces>,
    /// Driver that reads and writes when it is polled; gone once the connection has ended.
    driver: Option<Pin<Box<Driver>>>,
    waker: CoalescingWaker,
    io: IoHandle,
}

/// Reason why an answer was not read whole.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The answer is longer than the limit.
    #[error("the answer is longer than {limit} bytes")]
    TooLong {
        /// Largest size of the answer.
        limit: usize,
    },
    /// The upstream broke off.
    #[error("the answer ended early")]
    Broken(#[source] hyper::Error),
}

impl Connection {
    pub(super) async fn over(stream: TransportStream) -> hyper::Result<Self> {
        let (stream, io) = UpstreamIo::new(stream);
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(Self { sender, driver: Some(Box::pin(driver)), waker: CoalescingWaker::default(), io })
    }

    /// Sends `request` and waits for the head of its answer. A request of which nothing was sent is handed back.
    pub(super) async fn send(
        &mut self,
        request: Request<Pieces>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Pieces>>> {
        self.io.expect_answer();
        let mut answer = pin!(self.sender.try_send_request(request));
        poll_fn(|cx| drive(&mut self.driver, &self.waker, cx, |cx| answer.as_mut().poll(cx))).await
    }

    /// Returns whether a byte of the answer to the last request came.
    pub(super) fn has_received(&self) -> bool {
        self.io.has_received()
    }

    /// Returns whether the connection can take another request; it cannot if the upstream has closed it. A close that
    /// is not known yet is detected before the first byte of that request is written, and the request is then handed
    /// back.
    pub(super) async fn is_ready(&mut self) -> bool {
        let sender = &mut self.sender;
        let ready = poll_fn(|cx| drive(&mut self.driver, &self.waker, cx, |cx| sender.poll_ready(cx)));
        let is_ready = ready.await.is_ok();
        self.io.request_check();
        is_ready
    }

    /// Reads all of `body`, which this connection brings, if it has at most `limit` bytes.
    pub(crate) async fn read_whole(&mut self, mut body: Incoming, limit: usize) -> Result<Bytes, ReadError> {
        let mut whole = BytesMut::new();
        while let Some(frame) = poll_fn(|cx| self.poll_frame(&mut body, cx)).await {
            if let Ok(piece) = frame.map_err(ReadError::Broken)?.into_data() {
                whole.extend_from_slice(&piece);
            }
            if whole.len() > limit {
                return Err(ReadError::TooLong { limit });
            }
        }
        Ok(whole.freeze())
    }

    /// Polls the next piece of `body`, which this connection brings.
    pub(crate) fn poll_frame(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        drive(&mut self.driver, &self.waker, cx, |cx| Pin::new(&mut *body).poll_frame(cx))
    }
}

/// Polls `wanted`, and the connection as long as that may make it ready.
fn drive<T>(
    driver: &mut Option<Pin<Box<Driver>>>,
    waker: &CoalescingWaker,
    cx: &Context<'_>,
    mut wanted: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    waker.poll(cx, |cx| {
        if let Poll::Ready(output) = wanted(cx) {
            return Poll::Ready(output);
        }
        if let Some(open) = driver
            && let Poll::Ready(ended) = open.as_mut().poll(cx)
        {
            // hyper reports the end to the call that waits for an answer.
            tracing::debug!(?ended, "upstream connection ended");
            *driver = None;
        }
        wanted(cx)
    })
}

#[cfg(test)]
mod tests {
    use std::{io::Write, net::SocketAddr, time::Duration};

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpListener, TcpStream},
    };

    use super::*;

    async fn over(address: SocketAddr) -> Connection {
        Connection::over(TransportStream::Plain(TcpStream::connect(address).await.unwrap())).await.unwrap()
    }

    fn request() -> Request<Pieces> {
        let mut request = Request::new(Pieces::from(Vec::new()));
        request.headers_mut().insert("host", http::HeaderValue::from_static("u"));
        request
    }

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
            let mut connection = over(address).await;
            let body = connection.send(request()).await.unwrap().into_body();
            connection.read_whole(body, 9).await
        };
        let (read, ()) = tokio::join!(client, upstream);
        assert_eq!(read.unwrap(), "onetwosix");
    }
    /// Returns a connection that brought one answer, and that the upstream closes while this thread is busy: its event
    /// loop has not noticed.
    async fn closed_a_moment_ago() -> (Connection, std::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut connection = over(listener.local_addr().unwrap()).await;
        let (mut upstream, _) = listener.accept().unwrap();
        upstream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        connection.send(request()).await.unwrap();
        assert!(connection.is_ready().await);
        upstream.shutdown(std::net::Shutdown::Write).unwrap();
        (connection, upstream)
    }

    #[tokio::test]
    async fn a_closed_connection_hands_the_request_back() {
        let (mut connection, mut upstream) = closed_a_moment_ago().await;
        let mut unsent = connection.send(request()).await.unwrap_err();
        assert!(unsent.take_message().is_some(), "nothing was written");
        assert_eq!(count_requests(&mut upstream), 1);
    }

    #[tokio::test]
    async fn without_the_check_the_request_would_be_lost() {
        let (mut connection, mut upstream) = closed_a_moment_ago().await;
        connection.io.cancel_check();
        let mut lost = connection.send(request()).await.unwrap_err();
        assert!(lost.take_message().is_none());
        assert_eq!(count_requests(&mut upstream), 2);
    }

    /// Returns the number of requests that arrived.
    fn count_requests(upstream: &mut std::net::TcpStream) -> usize {
        upstream.set_nonblocking(true).unwrap();
        let mut text = [0; 1024];
        let length = std::io::Read::read(upstream, &mut text).unwrap();
        String::from_utf8_lossy(&text[..length]).matches("GET / HTTP/1.1").count()
    }
}
