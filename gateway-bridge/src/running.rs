//! A turn that is under way, as its owner sees it.

use crate::outcome::{Ending, Event, Failure};

/// A turn under way. Dropping it aborts the turn: whoever asked has gone.
#[derive(Debug)]
pub struct Running {}

impl Running {
    /// The next event; none when the turn is over. Cancel safe.
    pub async fn next(&mut self) -> Option<Event> {
        None
    }

    /// Aborts the turn. Its ending comes all the same.
    pub fn cancel(&self) {}

    /// Waits for the end. Dropping the future aborts the turn.
    pub async fn ending(self) -> Ending {
        Ending::Failed(Failure::Lost)
    }
}
