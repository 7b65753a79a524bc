//! Reports to clients why their connection ends without a call, and records that.
//!
//! A head that is too slow, too large or not HTTP is a refused call. It counts as one of its run, or as
//! unattributed where no run can be proved.

use std::{
    io::{self, Write},
    sync::Arc,
};

use platform_core::refusal::Refusal;
use platform_runtime::report;

use super::{
    ServeContext,
    identify::{Caller, Ingress, ListenerKind},
    sensor_io::ClientStream,
    settle::Exchange,
    timed_connection::{ConnectionEnd, TimedConnection},
    timeouts::Expired,
};
use crate::refusal;

/// Logs how a connection has ended, and records it if that refuses a call.
pub(super) fn log_connection_end<S: ClientStream>(
    context: &Arc<ServeContext>,
    ingress: &Ingress,
    connection: TimedConnection<S>,
    end: ConnectionEnd,
) {
    let reason = match end {
        ConnectionEnd::Closed(Ok(())) | ConnectionEnd::Abandoned => None,
        // An answer may be under way, and the call has a record of its own.
        ConnectionEnd::Evicted if ingress.connection_state.has_call() => None,
        // The client has its answer already, in place of hyper's own.
        ConnectionEnd::Closed(Err(error)) if error.is_parse_too_large() => Some(Refusal::HeadTooLarge),
        ConnectionEnd::Closed(Err(error)) if error.is_parse() => Some(Refusal::HeadInvalid),
        ConnectionEnd::Closed(Err(error)) => {
            tracing::debug!(error = report::chain(&error), "connection ended");
            None
        }
        ConnectionEnd::TimedOut(Expired::Head) | ConnectionEnd::Evicted => {
            connection.close_with(refusal::raw(Refusal::HeadTooSlow).as_bytes());
            Some(Refusal::HeadTooSlow)
        }
        ConnectionEnd::TimedOut(expired) => {
            tracing::debug!(?expired, "connection timed out");
            None
        }
    };
    if let Some(reason) = reason {
        tracing::debug!(?reason, "connection ended without a request");
        record(context, ingress, reason);
    }
}

/// Answers a client that the connection limit is reached, as far as it takes the answer at once. Records nothing.
pub(super) fn reject_connection<S: Write>(stream: io::Result<S>) {
    let written =
        stream.and_then(|mut stream| stream.write_all(refusal::raw(Refusal::TooManyConnections).as_bytes()));
    if let Err(error) = written {
        tracing::debug!(error = report::chain(&error), "connection rejected without an answer");
    }
}

fn record(context: &Arc<ServeContext>, ingress: &Ingress, reason: Refusal) {
    let caller = match &ingress.listener {
        ListenerKind::Run(run) => Caller::on_socket(run),
        ListenerKind::Shared(_) | ListenerKind::Gateway(_) => Caller::unattributed(context),
    };
    let exchange = Exchange::begin(context, &caller, &ingress.connection_state);
    // The call counts against the rate; exceeding it changes nothing for a connection that has ended.
    drop(exchange.pace());
    drop(exchange.refuse(&reason.into()));
}
