//! Tells clients why their connection ends without a call, and records that.
//!
//! A head that is too slow, too large or not HTTP is a refused call. It counts as one of its run, or as
//! unattributed where no run can be proved.

use std::{
    io::{self, Write},
    sync::Arc,
};

use platform_core::refusal::Refusal;

use super::{
    Plane,
    identify::{Caller, Entrance, Way},
    patience::Passed,
    settle::Exchange,
    timed::{Ended, Timed},
    wire::Socket,
};
use crate::refusal;

/// Takes leave of a connection that has ended.
pub(super) fn end<S: Socket>(
    (plane, entrance): (&Arc<Plane>, &Entrance),
    connection: Timed<S>,
    ended: Ended,
) {
    let reason = match ended {
        Ended::Alone(Ok(())) | Ended::Abandoned => None,
        // An answer may be under way, and the call has a record of its own.
        Ended::Evicted if entrance.carried.has_call() => None,
        // The client has its answer already, in place of hyper's own.
        Ended::Alone(Err(error)) if error.is_parse_too_large() => Some(Refusal::HeadTooLarge),
        Ended::Alone(Err(error)) if error.is_parse() => Some(Refusal::HeadInvalid),
        Ended::Alone(Err(error)) => {
            tracing::debug!(%error, "connection ended");
            None
        }
        Ended::Passed(Passed::Head) | Ended::Evicted => {
            connection.end_with(refusal::raw(Refusal::HeadTooSlow).as_bytes());
            Some(Refusal::HeadTooSlow)
        }
        Ended::Passed(passed) => {
            tracing::debug!(?passed, "connection waited for too long");
            None
        }
    };
    if let Some(reason) = reason {
        tracing::debug!(?reason, "no request came on a connection");
        record(plane, entrance, reason);
    }
}

/// Tells a client that there is no room for it, as far as that can be done at once. Nothing of it is kept.
pub(super) fn turn_away<S: Write>(stream: io::Result<S>) {
    let told =
        stream.and_then(|mut stream| stream.write_all(refusal::raw(Refusal::TooManyConnections).as_bytes()));
    if let Err(error) = told {
        tracing::debug!(%error, "a connection too many was not told so");
    }
}

fn record(plane: &Arc<Plane>, entrance: &Entrance, reason: Refusal) {
    let caller = match &entrance.way {
        Way::Own(run) => Caller::on_socket(run),
        Way::Shared(_) | Way::Gateway(_) => Caller::unattributed(plane),
    };
    let exchange = Exchange::begin(plane, &caller, &entrance.carried);
    // That it comes too fast changes nothing for a connection that has ended.
    drop(exchange.pace());
    drop(exchange.refuse(&reason.into()));
}
