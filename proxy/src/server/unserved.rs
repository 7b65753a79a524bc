//! Reports to clients why their connection ends without a call, and records that.
//!
//! A head that is too slow, too large or not HTTP is a refused call. It counts as one of its run, or as
//! unattributed where no run can be proved.

use std::io::{self, Write};

use platform_core::refusal::Refusal;
use platform_runtime::report;

use super::{
    connection::{ConnectionEnd, TimedConnection},
    ingress::Ingress,
    sensor_io::ClientStream,
    service::CallService,
    timeouts::Expired,
};
use crate::refusal;

/// Logs how a connection has ended, and records it if that refuses a call.
pub(super) fn log_connection_end<C: CallService, S: ClientStream>(
    calls: &C,
    ingress: &Ingress,
    connection: TimedConnection<S, C>,
    end: ConnectionEnd,
) {
    let reason = match end {
        ConnectionEnd::Closed(Ok(())) | ConnectionEnd::Abandoned => None,
        // An answer may be under way, and the call has its own record.
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
        calls.record_refusal(ingress, reason);
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
