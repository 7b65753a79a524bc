//! Checks a turn against what a gateway can do, before anything is sent.

use tokio::time::Instant;

use crate::{
    error::Error,
    handle::ConnectionHandle,
    hello::{Generation, Hello},
    turn::{Attribution, Turn},
    wire::request::{COMMAND_MARKER, HEADERS_SET, StartCall},
};

/// Checks a turn against what the gateway can do, and builds the call that starts it.
pub(crate) fn prepare(handle: &ConnectionHandle, turn: &Turn, hello: &Hello) -> Result<StartCall, Error> {
    let unsupported = |what| Err(Error::Unsupported { what, version: hello.version.as_str().to_owned() });
    match &turn.attribution {
        Attribution::Trace(_) if !hello.takes_traces() => {
            return unsupported("pass a trace id on to the model (from 2026.8 on): use a slot or headers");
        }
        Attribution::Slot { .. } if turn.model.is_none() => {
            return Err(Error::InvalidTurn { reason: "a slot needs the model of the turn" });
        }
        Attribution::Plugin(_) if !hello.has(HEADERS_SET) && !hello.methods.is_empty() => {
            return unsupported("give a session headers: the plugin sluicegate-headers is not loaded");
        }
        Attribution::Trace(_)
        | Attribution::Slot { .. }
        | Attribution::Headers(_)
        | Attribution::Plugin(_)
        | Attribution::AsBegun => {}
    }
    if turn.message.is_empty() {
        return Err(Error::InvalidTurn { reason: "there is no message" });
    }
    if hello.generation == Generation::Three && turn.message.contains(COMMAND_MARKER) {
        return Err(Error::InvalidTurn { reason: "protocol 3 could take the message for a command" });
    }
    let left = turn.deadline.saturating_duration_since(Instant::now());
    let start = turn.start(handle.shared.next_id(), hello.generation, handle.shared.provider.as_ref(), left);
    let start = start.map_err(|_error| Error::InvalidTurn { reason: "it cannot be written as JSON" })?;
    handle.check_size(start.method, start.text.len(), hello)?;
    Ok(start)
}
