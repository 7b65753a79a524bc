//! Collects why a body is refused. The check goes on behind most faults, so that a client learns of all of them at
//! once.
//!
//! Behind a fault the body is read as if it were granted. A fault in the grammar ends the check, and so does a type
//! that the API does not have there.

use std::ops::Range;

use crate::policy::{MAX_REASONS, Reason, Rejection, Rejections};

/// Most faults that are read, with those that repeat a reason: a refused body must not cost more than one that passes.
const MAX_FAULTS: usize = 256;

/// Faults that were found so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    reasons: Vec<Rejection>,
    faults: usize,
}

/// A point in the check to which its findings can return.
#[derive(Debug, Clone, Copy)]
pub(super) struct Checkpoint {
    reasons: usize,
    faults: usize,
}

impl Findings {
    /// Notes a fault behind which the check goes on. The error is a fault that ends it, because there were enough.
    pub(super) fn note(&mut self, rejection: Rejection) -> Result<(), Rejection> {
        self.faults += 1;
        let is_known = self.knows(&rejection);
        if self.faults == MAX_FAULTS || !is_known && self.reasons.len() + 1 == MAX_REASONS {
            return Err(rejection);
        }
        if !is_known {
            self.reasons.push(rejection);
        }
        Ok(())
    }

    fn knows(&self, rejection: &Rejection) -> bool {
        let is_same = |known: &Rejection| known.reason == rejection.reason && known.field == rejection.field;
        self.reasons.iter().any(is_same)
    }

    pub(super) fn checkpoint(&self) -> Checkpoint {
        Checkpoint { reasons: self.reasons.len(), faults: self.faults }
    }

    /// Forgets all that was found since `checkpoint`.
    pub(super) fn return_to(&mut self, checkpoint: Checkpoint) {
        self.reasons.truncate(checkpoint.reasons);
        self.faults = checkpoint.faults;
    }

    /// Forgets what would have needed a grant in this part of the body, which is not sent.
    pub(super) fn forget_grants_in(&mut self, part: &Range<usize>) {
        self.reasons
            .retain(|known| !(part.contains(&known.at) && matches!(known.reason, Reason::NotGranted { .. })));
    }

    /// Returns `checked` if there was no fault.
    pub(super) fn conclude<T>(mut self, checked: Result<T, Rejection>) -> Result<T, Rejections> {
        let last = checked.as_ref().err().filter(|last| !self.knows(last)).cloned();
        self.reasons.extend(last);
        let mut reasons = self.reasons.into_iter();
        match reasons.next() {
            Some(first) => Err(Rejections { first, others: reasons.collect() }),
            None => checked.map_err(Rejections::from),
        }
    }
}
