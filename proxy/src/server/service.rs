//! Connects the connection layer with the call layer: hyper serves a connection, calls answer its requests.

use std::{convert::Infallible, fmt::Debug, pin::Pin};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use platform_core::refusal::Refusal;

use super::{
    ingress::Ingress,
    timeouts::IdleTimeouts,
    write_tracker::{PendingWrite, TrackedBody},
};

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

/// Answers the requests of one connection.
#[derive(Debug)]
pub(super) struct Service<C> {
    pub(super) calls: C,
    pub(super) ingress: Ingress,
    pub(super) pending_write: PendingWrite,
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
