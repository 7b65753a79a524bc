//! Keeps the calls that wait for their answers.

use std::collections::HashMap;

use crate::{
    error::Error,
    handle::ReplySender,
    wire::{
        answer::{self, TurnReply},
        frame::ResponseFrame,
    },
};

/// Most calls that may wait at once.
const MAX_PENDING_CALLS: usize = 4096;

/// Number of waiting calls at which those of gone callers are removed.
const SWEEP_THRESHOLD: usize = 256;

#[derive(Debug, Default)]
pub(super) struct PendingCalls(HashMap<u64, ReplySender>);

impl PendingCalls {
    /// Keeps `reply` until the answer to `id` comes. If the table is full, the caller gets an error.
    pub(super) fn insert(&mut self, id: u64, reply: ReplySender) -> bool {
        if self.0.len() >= SWEEP_THRESHOLD {
            self.0.retain(|_, reply| !reply.is_closed());
        }
        if self.0.len() >= MAX_PENDING_CALLS {
            reply.refuse(Error::TooMany { limit: MAX_PENDING_CALLS });
            return false;
        }
        self.0.insert(id, reply);
        true
    }

    /// Hands an answer to the caller that waits for it; false if no call with this id is kept.
    pub(super) fn settle(&mut self, id: &str, answer: ResponseFrame) -> bool {
        let Some((id, reply)) = id.parse().ok().and_then(|id: u64| self.0.remove_entry(&id)) else {
            return false;
        };
        match reply {
            // The caller may have gone.
            ReplySender::Once(sender) => drop(sender.send(Ok(answer))),
            ReplySender::Twice(sender) => {
                let goes_on = matches!(answer::read(&answer), Ok(TurnReply::Accepted | TurnReply::InFlight));
                // There is room for two, and two are all that is ever sent.
                let sent = sender.try_send(Ok(answer));
                if goes_on && sent.is_ok() && sender.capacity() > 0 {
                    self.0.insert(id, ReplySender::Twice(sender));
                }
            }
        }
        true
    }

    /// Refuses every waiting call, because the connection has ended.
    pub(super) fn refuse(self, error: &Error) {
        self.0.into_values().for_each(|reply| reply.refuse(error.clone()));
    }
}
