//! Provides the handle of a turn that is under way.

use std::sync::Arc;

use platform_core::id::RunId;
use tokio_util::sync::CancellationToken;

use crate::{
    outcome::{Ending, TurnEvent},
    turn_state::TurnState,
};

/// Turn under way. Dropping it aborts the turn, because its caller has gone, unless the turn was detached before.
#[derive(Debug)]
pub struct Running {
    state: Arc<TurnState>,
    cancel: CancellationToken,
    left: CancellationToken,
    dropped: Dropped,
}

/// Effect of dropping a [`Running`] on its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dropped {
    Aborts,
    Leaves,
}

impl Running {
    pub(crate) const fn new(
        state: Arc<TurnState>,
        cancel: CancellationToken,
        left: CancellationToken,
    ) -> Self {
        Self { state, cancel, left, dropped: Dropped::Aborts }
    }

    /// Returns the turn's id.
    #[must_use]
    pub fn id(&self) -> &RunId {
        &self.state.run_id
    }

    /// Returns the next event; `None` when the turn is over. Cancel safe. A turn whose events are not read goes on all
    /// the same.
    pub async fn next(&mut self) -> Option<TurnEvent> {
        self.state.next().await
    }

    /// Aborts the turn. The ending still comes, as [`crate::TurnFailure::Aborted`] unless the turn was over already.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Detaches the turn: dropping the handle then leaves it as it is, for another process to continue
    /// ([`crate::Gateway::take_up`]).
    pub const fn detach(&mut self) {
        self.dropped = Dropped::Leaves;
    }

    /// Waits for the end; events that were not read are dropped. The ending comes within the turn's deadline and
    /// [`crate::GatewayLimits::abort`], whatever the gateway does. Dropping the future aborts the turn.
    pub async fn ending(self) -> Ending {
        self.state.ending().await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        match self.dropped {
            Dropped::Aborts => self.cancel.cancel(),
            Dropped::Leaves => self.left.cancel(),
        }
    }
}
