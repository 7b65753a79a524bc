//! One connection to the upstream.
//!
//! It has no task of its own: whoever waits for its answer drives it. What has arrived together is so passed on
//! together, with one write to the client, and no call is handed from task to task.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body as _, Frame};
use http_body_util::Full;
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

type Wire = http1::Connection<TokioIo<TcpStream>, Full<Bytes>>;

/// A connection. Dropping it closes it, which cancels a call that is under way.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// Reads and writes when it is polled; gone once the connection has ended.
    wire: Option<Pin<Box<Wire>>>,
    quiet: Quiet,
}

impl Connection {
    pub(super) async fn over(stream: TcpStream) -> hyper::Result<Self> {
        let (sender, wire) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(Self { sender, wire: Some(Box::pin(wire)), quiet: Quiet::default() })
    }

    /// Sends `request` and waits for the head of its answer. A request of which nothing was sent is handed back.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
        let mut answer = pin!(self.sender.try_send_request(request));
        poll_fn(|cx| drive(&mut self.wire, &self.quiet, cx, |cx| answer.as_mut().poll(cx))).await
    }

    /// Whether it can take a request. No: the upstream has closed it.
    pub(super) async fn is_ready(&mut self) -> bool {
        let sender = &mut self.sender;
        let ready = poll_fn(|cx| drive(&mut self.wire, &self.quiet, cx, |cx| sender.poll_ready(cx)));
        ready.await.is_ok()
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
