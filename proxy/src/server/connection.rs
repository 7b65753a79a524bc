//! Serves a connection when it is polled, and ends it or reports to its call when a timeout passes.
//!
//! There is one timer per connection. It is set again only when it has fired or a deadline is earlier. A call with the
//! usual limits never touches it. Everything of a call runs when its connection is polled. So polling once
//! more reports a passed timeout to the call. If nothing of the call runs then, because its client takes
//! nothing, the connection is dropped.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Instant,
};

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::{
    io::AsyncWrite,
    time::{Sleep, sleep_until},
};

use super::{
    connection_state::ConnectionState,
    context::ServerContext,
    head_memory::{HeadDecision, HeadPermit},
    ingress::Ingress,
    sensor_io::{ClientStream, SensorIo},
    service::{CallService, Service},
    timeouts::Expired,
    write_tracker::PendingWrite,
};

/// Most bytes that are read from a client at once. hyper would read up to 400 KiB ahead per connection, and keeps such
/// a buffer while the call is in flight. A body that fits comes in one piece and is not copied.
const READ_BUFFER: usize = 64 << 10;
/// Most bytes of a request's head. SDKs send one or two thousand. hyper refuses larger ones before they are whole.
const MAX_HEAD: usize = 64 << 10;

/// Connection of a client with its timeouts.
#[derive(Debug)]
pub(super) struct TimedConnection<S, C>
where
    S: ClientStream,
    C: CallService,
{
    connection: http1::Connection<TokioIo<SensorIo<S>>, Service<C>>,
    connection_state: ConnectionState,
    head_permit: HeadPermit,
    timer: Pin<Box<Sleep>>,
}

/// Returns a connection that is served when it is polled. Timeouts are watched here: hyper creates a new timer for
/// every request, and does not distinguish a slow head from an idle connection.
pub(super) fn build_connection<C: CallService, S: ClientStream>(
    context: &ServerContext<C>,
    ingress: Ingress,
    head: HeadPermit,
    stream: S,
) -> TimedConnection<S, C> {
    let calls = context.calls.clone();
    let connection_state = ingress.connection_state.clone();
    let pending_write = PendingWrite::new(Arc::clone(&context.write_tracker));
    let sensor_io = SensorIo::new(stream, connection_state.clone(), pending_write.clone());
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_header_size(MAX_HEAD)
        .max_buf_size(READ_BUFFER)
        .serve_connection(TokioIo::new(sensor_io), Service { calls, ingress, pending_write });
    TimedConnection::new(connection, connection_state, head)
}

/// Reason why a connection ended.
#[derive(Debug)]
pub(super) enum ConnectionEnd {
    /// The connection or its client ended it.
    Closed(hyper::Result<()>),
    /// The connection waited for too long.
    TimedOut(Expired),
    /// Its client has left a call.
    Abandoned,
    /// Its head is unfinished, and others need the memory.
    Evicted,
}

impl<S, C> TimedConnection<S, C>
where
    S: ClientStream,
    C: CallService,
{
    pub(super) fn new(
        connection: http1::Connection<TokioIo<SensorIo<S>>, Service<C>>,
        connection_state: ConnectionState,
        head_permit: HeadPermit,
    ) -> Self {
        let first = connection_state.next_deadline().unwrap_or_else(Instant::now);
        Self { connection, connection_state, head_permit, timer: Box::pin(sleep_until(first.into())) }
    }

    /// Ends the connection after the call in flight, or now without one.
    pub(super) fn graceful_shutdown(&mut self) {
        Pin::new(&mut self.connection).graceful_shutdown();
    }

    /// Ends the connection with `text`, as far as the client takes it at once.
    pub(super) fn close_with(self, text: &[u8]) {
        let mut stream = self.connection.into_parts().io.into_inner();
        let mut cx = Context::from_waker(Waker::noop());
        stream.write_now(&mut cx, text);
        drop(Pin::new(&mut stream).poll_shutdown(&mut cx));
    }

    /// Returns the timeout that has passed, once one has; the next one is `deadline` then.
    fn poll_timer(&mut self, mut deadline: Option<Instant>, cx: &mut Context<'_>) -> Poll<Expired> {
        loop {
            let Some(at) = deadline.map(Into::into) else { return Poll::Pending };
            if at < self.timer.deadline() || self.timer.is_elapsed() {
                self.timer.as_mut().reset(at);
            }
            std::task::ready!(self.timer.as_mut().poll(cx));
            if let Some(expired) = self.connection_state.expire(Instant::now()) {
                return Poll::Ready(expired);
            }
            deadline = self.connection_state.next_deadline();
        }
    }
}

impl<S, C> Future for TimedConnection<S, C>
where
    S: ClientStream,
    C: CallService,
{
    type Output = ConnectionEnd;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ConnectionEnd> {
        let this = self.get_mut();
        loop {
            if let Poll::Ready(end) = Pin::new(&mut this.connection).poll(cx) {
                return Poll::Ready(ConnectionEnd::Closed(end));
            }
            let status = this.connection_state.status();
            if let Some(timeout) = status.reported {
                return Poll::Ready(ConnectionEnd::TimedOut(Expired::Call(timeout)));
            }
            if status.is_abandoned {
                return Poll::Ready(ConnectionEnd::Abandoned);
            }
            if this.head_permit.resize(status.head_bytes, cx.waker()) == HeadDecision::Evict {
                return Poll::Ready(ConnectionEnd::Evicted);
            }
            let expired = std::task::ready!(this.poll_timer(status.deadline, cx));
            if this.connection_state.reported_timeout().is_none() {
                return Poll::Ready(ConnectionEnd::TimedOut(expired));
            }
        }
    }
}
