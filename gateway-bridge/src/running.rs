//! A turn that is under way, as its owner sees it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::{
    live::Live,
    outcome::{Ending, Event},
    turn::TurnId,
};

/// A turn under way. Dropping it aborts the turn: whoever asked has gone.
#[derive(Debug)]
pub struct Running {
    live: Arc<Live>,
    cancel: CancellationToken,
}

impl Running {
    pub(crate) const fn new(live: Arc<Live>, cancel: CancellationToken) -> Self {
        Self { live, cancel }
    }

    /// The turn's id.
    #[must_use]
    pub fn id(&self) -> &TurnId {
        &self.live.id
    }

    /// The next event; none when the turn is over. Cancel safe. A turn whose events are not read goes on all the same.
    pub async fn next(&mut self) -> Option<Event> {
        self.live.next().await
    }

    /// Aborts the turn. Its ending comes all the same, as [`crate::Failure::Aborted`] unless the turn was over already.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// A handle that aborts the turn like [`Running::cancel`], to keep elsewhere.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        Canceller(self.cancel.clone())
    }

    /// Waits for the end; events that were not read are given up. It comes within the turn's deadline and
    /// [`crate::Limits::abort`], whatever the gateway does. Dropping the future aborts the turn.
    pub async fn ending(self) -> Ending {
        self.live.ending().await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Aborts a turn; does nothing once it is over.
#[derive(Debug, Clone)]
pub struct Canceller(CancellationToken);

impl Canceller {
    /// Aborts the turn.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}
