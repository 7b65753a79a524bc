//! Gives fuzzers access to this client: how it reads a gateway's frames, and which of them reach a turn.
//!
//! Compiled with the feature `internals` only; not for other programs.

use std::{sync::Arc, time::UNIX_EPOCH};

use futures_util::FutureExt;
use platform_core::id::RunId;

use crate::{
    counts::Cells,
    outcome::TurnEvent,
    routes::Routes,
    session::SessionKey,
    settings::Scopes,
    turn_state::TurnState,
    wire::{
        answer,
        connect::Challenge,
        frame::{self, Frame},
        hello, transcript,
    },
};

/// Limit of unread text, larger than any text that fuzzers try.
const MAX_UNREAD: usize = 1 << 20;

/// Returns what the turn `run_id` of `session` receives of `frames`, in their order: its events, and whether its
/// conversation has reported an end.
#[must_use]
pub fn received<'f>(
    run_id: &RunId,
    session: &SessionKey,
    frames: impl Iterator<Item = &'f str>,
) -> (Vec<TurnEvent>, bool) {
    let cells: Arc<Cells> = Arc::default();
    let turn = Arc::new(TurnState::new(run_id.clone(), session.clone(), MAX_UNREAD, cells.clone()));
    let routes = Routes::default();
    // Entering the first turn of an empty table cannot fail.
    drop(routes.register(&turn));
    for text in frames {
        if let Ok(Frame::Event { name, payload }) = frame::read(text)
            && (name == "agent" || name == "chat")
        {
            routes.deliver(&name, payload, &cells);
        }
    }
    let mut events = Vec::new();
    while let Some(Some(event)) = turn.next().now_or_never() {
        events.push(event);
    }
    (events, turn.conversation_end().is_some())
}

/// Reads `text` as every kind of frame that it may be.
pub fn read(text: &str) {
    match frame::read(text) {
        Ok(Frame::Event { payload, .. }) => drop(Challenge::read(payload)),
        Ok(Frame::Response { answer, .. }) => {
            drop(answer::read(&answer));
            let Some(payload) = &answer.payload else { return };
            drop(hello::read(Some(payload.as_raw()), &Scopes::default(), UNIX_EPOCH));
            drop(transcript::read(payload));
            drop(transcript::waited(payload));
            drop(transcript::session_id(payload));
            transcript::aborted(payload);
        }
        Ok(Frame::Other) | Err(_) => {}
    }
}
