//! forward: the request goes up, once, and the head of the answer comes back.

use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use platform_core::refusal::Refusal;
use tokio::time::timeout;

use super::settle::Exchange;
use crate::{
    pieces::Pieces,
    upstream::{Connection, Error},
};

/// The head of an answer, its body still to come, and the connection that brings it.
pub(super) type Answer = (Response<Incoming>, Connection);

/// Sends `request`. Dropping the future closes the connection and so cancels the call upstream.
pub(super) async fn send(exchange: &mut Exchange, request: Request<Pieces>) -> Result<Answer, Refusal> {
    let plane = Arc::clone(exchange.plane());
    let patience = exchange.run().grant.limits.call_ms.duration();
    exchange.sending().await?;
    match timeout(patience, plane.upstream.send(request)).await {
        Ok(Ok(answer)) => {
            exchange.answered(&answer.0);
            Ok(answer)
        }
        Ok(Err(error)) => {
            tracing::warn!(call = %exchange.call_id(), error = &error as &dyn std::error::Error, "upstream failed");
            Err(match error {
                Error::Unreachable { .. } => Refusal::UpstreamUnreachable,
                Error::Broken(_) => Refusal::UpstreamFailed,
            })
        }
        Err(_elapsed) => Err(Refusal::UpstreamTimeout),
    }
}
