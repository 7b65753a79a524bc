//! Connects the connection layer with the call layer: hyper serves a connection, calls answer its requests.

use std::{convert::Infallible, fmt::Debug, pin::Pin, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::rt::TokioIo;
use platform_core::refusal::Refusal;

use super::{
    balancer::ConnectionBalancer,
    connection::TimedConnection,
    connection_limits::ConnectionLimits,
    head_memory::HeadPermit,
    ingress::Ingress,
    sensor_io::{ClientStream, SensorIo},
    timeouts::IdleTimeouts,
    write_tracker::{PendingWrite, TrackedBody, WriteTracker},
};
use crate::freezes::Freezes;

/// Most bytes that are read from a client at once. hyper would read up to 400 KiB ahead per connection, and keeps such
/// a buffer while the call is in flight. A body that fits comes in one piece and is not copied.
const READ_BUFFER: usize = 64 << 10;
/// Most bytes of a request's head. SDKs send one or two thousand. hyper refuses larger ones before they are whole.
const MAX_HEAD: usize = 64 << 10;

/// The call layer as connections see it. Clones refer to the same.
pub(crate) trait CallService: Debug + Clone + Send + Sync + 'static {
    /// Body of a response.
    type Body: http_body::Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Unpin + 'static;

    /// Returns the timeouts of a connection that is accepted now, while it has no call.
    fn idle_timeouts(&self) -> IdleTimeouts;

    /// Answers one request of a connection.
    fn respond(
        &self,
        ingress: &Ingress,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Self::Body>>;

    /// Records a call that is refused because its connection ends before its head is whole.
    fn record_refusal(&self, ingress: &Ingress, reason: Refusal);
}

/// Everything a data-plane thread needs to serve connections.
#[derive(Debug)]
pub(crate) struct ServerContext<C> {
    /// Answers the requests.
    pub(crate) calls: C,
    /// Freezes that an operator has set.
    pub(crate) freezes: Arc<Freezes>,
    pub(crate) connection_limits: ConnectionLimits,
    /// All threads, over which connections are spread.
    pub(crate) balancer: ConnectionBalancer,
    /// Answers that clients have not taken yet.
    pub(crate) write_tracker: Arc<WriteTracker>,
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

/// Answers the requests of one connection.
#[derive(Debug)]
pub(super) struct Service<C> {
    calls: C,
    ingress: Ingress,
    pending_write: PendingWrite,
}

impl<C: CallService> hyper::service::Service<Request<Incoming>> for Service<C> {
    type Response = Response<TrackedBody<C::Body>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<TrackedBody<C::Body>>, Infallible>>>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let calls = self.calls.clone();
        let ingress = self.ingress.clone();
        let pending_write = self.pending_write.clone();
        pending_write.begin();
        Box::pin(async move { Ok(pending_write.track(calls.respond(&ingress, request).await)) })
    }
}
