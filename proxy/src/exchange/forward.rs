//! forward: the request goes up, once, and the head of the answer comes back.

use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use platform_core::{refusal::Refusal, trace::Step};
use tokio::time::timeout;

use super::settle::Exchange;
use crate::{
    pieces::Pieces,
    refusal::Refused,
    upstream::{Connection, Error},
};

/// The head of an answer, its body still to come, and the connection that brings it.
pub(super) type Answer = (Response<Incoming>, Connection);

/// Sends `request`. Dropping the future closes the connection and so cancels the call upstream.
pub(super) async fn send(exchange: &mut Exchange, request: Request<Pieces>) -> Result<Answer, Refused> {
    let plane = Arc::clone(exchange.plane());
    let patience = exchange.run().grant.limits.call_ms.duration();
    exchange.sending().await?;
    let sent = plane.upstream.send(request, |connection| exchange.trace(|| Step::Sent { connection }));
    match timeout(patience, sent).await {
        Ok(Ok(answer)) => {
            exchange.answered(&answer.0);
            Ok(answer)
        }
        Ok(Err(error)) => {
            tracing::warn!(call = %exchange.call_id(), error = &error as &dyn std::error::Error, "upstream failed");
            if let Some(limit) = error.timeout() {
                exchange.passed(limit);
            }
            Err(refused(&error))
        }
        Err(_elapsed) => Err(Refusal::UpstreamTimeout.into()),
    }
}

/// Refuses a call that need not be tried, before anything of it is read.
pub(super) fn check(exchange: &Exchange) -> Result<(), Refused> {
    exchange.plane().upstream.check().map_err(|error| refused(&error))
}

fn refused(error: &Error) -> Refused {
    match error {
        Error::Down { retry } => Refused::until(Refusal::UpstreamDown, *retry),
        Error::Unreachable(_) => Refusal::UpstreamUnreachable.into(),
        Error::Broken(_) => Refusal::UpstreamFailed.into(),
    }
}
