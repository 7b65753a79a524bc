//! Keeps the calls that wait for their answers.

use std::collections::HashMap;

use crate::{
    error::Error,
    link::Reply,
    wire::{
        answer::{self, Reply as Said},
        frame::Answer,
    },
};

/// Most calls that may wait at once.
const PENDING_MAX: usize = 4096;

/// Number of waiting calls at which those whose callers have gone are removed.
const SWEEP_FROM: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Pending(HashMap<u64, Reply>);

impl Pending {
    /// Keeps `reply` until the answer to `id` comes. If the table is full, the caller gets an error.
    pub(super) fn wait(&mut self, id: u64, reply: Reply) -> bool {
        if self.0.len() >= SWEEP_FROM {
            self.0.retain(|_, reply| !reply.is_closed());
        }
        if self.0.len() >= PENDING_MAX {
            reply.refuse(Error::TooMany { limit: PENDING_MAX });
            return false;
        }
        self.0.insert(id, reply);
        true
    }

    /// Hands an answer to the caller that waits for it; false if no call with this id is kept.
    pub(super) fn settle(&mut self, id: &str, answer: Answer) -> bool {
        let Some((id, reply)) = id.parse().ok().and_then(|id: u64| self.0.remove_entry(&id)) else {
            return false;
        };
        match reply {
            // The caller may have gone.
            Reply::Once(sender) => drop(sender.send(Ok(answer))),
            Reply::Twice(sender) => {
                let goes_on = matches!(answer::read(&answer), Ok(Said::Accepted | Said::InFlight));
                // There is room for two, and two are all that is ever sent.
                let sent = sender.try_send(Ok(answer));
                if goes_on && sent.is_ok() && sender.capacity() > 0 {
                    self.0.insert(id, Reply::Twice(sender));
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
