//! Sends the request to the upstream, once, and returns the head of the answer.

use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use platform_core::refusal::Refusal;
use platform_runtime::report;

use super::settle::Exchange;
use crate::{
    pieces::Pieces,
    refusal::{Late, Refused},
    upstream::{Connection, Error},
};

/// The head of an answer, its body still to come, and the connection that brings it.
pub(super) type Answer = (Response<Incoming>, Connection);

/// Sends `request`. Dropping the future closes the connection and so cancels the call upstream.
pub(super) async fn send(exchange: &mut Exchange, request: Request<Pieces>) -> Result<Answer, Refused> {
    let context = Arc::clone(exchange.context());
    exchange.mark_in_flight().await?;
    let connection_state = exchange.connection_state().clone();
    let sent = context.upstream.send(request, |connection| exchange.connected(connection));
    match connection_state.within_timeouts(sent).await {
        Ok(Ok(answer)) => {
            exchange.head_received(&answer.0);
            Ok(answer)
        }
        Ok(Err(error)) => {
            tracing::warn!(call = %exchange.call_id(), error = report::chain(&error), "upstream failed");
            Err(refusal_for(&error))
        }
        Err(timeout) => Err(exchange.timeout_refusal(Refusal::UpstreamTimeout, timeout)),
    }
}

/// Refuses a call that cannot reach the upstream, before any of its body is read.
pub(super) fn check(exchange: &Exchange) -> Result<(), Refused> {
    exchange.context().upstream.check().map_err(|error| refusal_for(&error))
}

fn refusal_for(error: &Error) -> Refused {
    match (error, error.timeout()) {
        (Error::Down { retry }, _) => Refused::until(Refusal::UpstreamUnavailable, *retry),
        (Error::Unreachable(_), Some((timeout, limit))) => {
            Refused::late(Refusal::UpstreamUnreachable, Late { timeout, limit: limit.into() })
        }
        (Error::Unreachable(_), None) => Refusal::UpstreamUnreachable.into(),
        (Error::Broken(_), _) => Refusal::UpstreamFailed.into(),
    }
}
