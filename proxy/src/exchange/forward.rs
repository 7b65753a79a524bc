//! Sends the request to the upstream, once, and returns the head of the answer.
//!
//! LiteLLM goes on with a call that its client leaves before the head, and with each whole answer, and charges it. Such
//! a call goes on here, too, so that its record is exact. A stream ends with its client.

use std::sync::{Arc, atomic::Ordering};

use http::{Request, Response, header};
use hyper::body::Incoming;
use platform_core::{
    money::NanoDollars,
    name::header as own,
    record::Timeout,
    refusal::Refusal,
    trace::{self, Step},
};
use platform_runtime::report;

use super::call::Exchange;
use crate::{
    pieces::Pieces,
    refusal::{Late, Refused},
    upstream::{Connection, Error},
    usage::Format,
};

/// The head of an answer, its body still to come, and the connection that brings it.
pub(super) type Answer = (Response<Incoming>, Connection);

/// Sends `request`. Dropping the future closes the connection and so cancels the call upstream.
pub(super) async fn send(exchange: &mut Exchange, request: Request<Pieces>) -> Result<Answer, Refused> {
    let context = Arc::clone(exchange.context());
    exchange.mark_in_flight().await?;
    exchange.connection_state().await_upstream(Timeout::FirstByte);
    let connection_state = exchange.connection_state().clone();
    let sent = context.upstream.send(request, |connection| {
        exchange.connected(connection);
        exchange.connection_state().outlive_client();
    });
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

/// Returns whether `answer` is a stream of events, which the upstream cancels if nothing reads it.
fn is_stream(answer: &Response<Incoming>) -> bool {
    let content_type = answer.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    answer.status().is_success() && Format::of(content_type) == Format::Events
}

fn refusal_for(error: &Error) -> Refused {
    match (error, error.timeout()) {
        (Error::Down { retry }, _) => Refused::until(Refusal::UpstreamUnavailable, *retry),
        (Error::Unreachable(_), Some((timeout, limit))) => {
            Refused::late(Refusal::UpstreamUnreachable, Late { timeout, limit: limit.into() })
        }
        (Error::Unreachable(_), None) => Refusal::UpstreamUnreachable.into(),
        (Error::Reset(_), _) => Refusal::UpstreamReset.into(),
        (Error::Broken(_), _) => Refusal::UpstreamFailed.into(),
    }
}

impl Exchange {
    /// Marks the call before its request goes to the upstream. If the future is dropped, the request was not sent.
    pub(super) async fn mark_in_flight(&mut self) -> Result<(), Refusal> {
        if self.connection_state.is_abandoned() {
            // Nothing was sent, and nothing will be: the connection ends now, and the call with it.
            std::future::pending::<()>().await;
        }
        let duration = self.elapsed_us();
        let builder = self.builder.as_mut().ok_or(Refusal::JournalUnavailable)?;
        let space = self.record_space.as_mut().ok_or(Refusal::JournalUnavailable)?;
        let journal = &self.context.journal;
        let marked = match builder.as_interrupted(duration, |record| journal.mark(space, record)) {
            Ok(durable) => durable.await,
            Err(error) => Err(error),
        };
        builder.sent_us = duration;
        builder.silence.request_sent(duration);
        marked.map_err(|error| {
            let error = report::chain(&error);
            tracing::error!(call = %self.call_id, error, "call not sent: it cannot be marked in flight");
            Refusal::JournalUnavailable
        })
    }

    /// Notes that there is a connection: from now on some of the call may have arrived.
    pub(super) fn connected(&self, connection: trace::Connection) {
        if let Some(builder) = &self.builder {
            builder.sent.store(true, Ordering::Relaxed);
        }
        self.trace(|| Step::Sent { connection });
    }

    /// Notes that the head of the upstream's answer has come.
    fn head_received(&mut self, answer: &Response<Incoming>) {
        self.connection_state.arrived();
        if is_stream(answer) {
            self.connection_state.end_with_client();
        }
        self.status = answer.status();
        let status = answer.status().as_u16();
        let cost = answer
            .headers()
            .get(own::LITELLM_COST)
            .and_then(|cost| NanoDollars::parse_dollars(cost.to_str().ok()?));
        let ttfb = self.elapsed_us();
        self.note(|record| {
            record.status = status;
            record.ttfb_us = Some(ttfb);
            record.cost_nanodollars = cost;
        });
        self.trace(|| Step::FirstByte { status });
    }
}
