//! forward: the request goes up, once, and the head of the answer comes back.

use std::{io, sync::Arc};

use http::{Request, Response};
use hyper::body::Incoming;
use platform_core::{record::Timeout, refusal::Refusal};

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
    exchange.sending();
    let carried = exchange.carried().clone();
    match carried.in_time(plane.upstream.send(request)).await {
        Ok(Ok(answer)) => {
            exchange.answered(&answer.0);
            Ok(answer)
        }
        Ok(Err(error)) => {
            tracing::warn!(call = %exchange.call_id(), error = &error as &dyn std::error::Error, "upstream failed");
            Err(match error {
                Error::Unreachable { source, .. } if source.kind() == io::ErrorKind::TimedOut => {
                    exchange.late(Refusal::UpstreamUnreachable, Timeout::Connect)
                }
                Error::Unreachable { .. } => Refusal::UpstreamUnreachable.into(),
                Error::Broken(_) => Refusal::UpstreamFailed.into(),
            })
        }
        Err(timeout) => Err(exchange.late(Refusal::UpstreamTimeout, timeout)),
    }
}
