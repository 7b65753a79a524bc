//! Provides the handle of a running turn.

use std::sync::Arc;

use platform_core::id::RunId;
use tokio_util::sync::CancellationToken;

use crate::{
    outcome::{Ending, TurnEvent},
    turn_state::TurnState,
};

/// Handle of a running turn. Dropping it aborts the turn, because its caller has gone, unless the turn was detached
/// before.
#[derive(Debug)]
pub struct Running {
    state: Arc<TurnState>,
    cancel: CancellationToken,
    detached: CancellationToken,
    on_drop: OnDrop,
}

/// Effect of dropping a [`Running`] on its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnDrop {
    Abort,
    Leave,
}

impl Running {
    pub(crate) const fn new(
        state: Arc<TurnState>,
        cancel: CancellationToken,
        detached: CancellationToken,
    ) -> Self {
        Self { state, cancel, detached, on_drop: OnDrop::Abort }
    }

    /// Returns the turn's id.
    #[must_use]
    pub fn id(&self) -> &RunId {
        &self.state.run_id
    }

    /// Returns the next event; `None` when the turn has ended. Cancel safe. A turn continues all the same if its events
    /// are not read.
    pub async fn next(&mut self) -> Option<TurnEvent> {
        self.state.next().await
    }

    /// Aborts the turn. The ending still comes, as [`crate::TurnFailure::Aborted`] unless the turn had ended already.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Detaches the turn: dropping the handle then leaves it as it is, for another process to continue
    /// ([`crate::Gateway::resume`]).
    pub const fn detach(&mut self) {
        self.on_drop = OnDrop::Leave;
    }

    /// Waits for the end; events that were not read are dropped. The ending comes within the turn's deadline and
    /// [`crate::GatewayLimits::abort`], whatever the gateway does. Dropping the future aborts the turn.
    pub async fn ending(self) -> Ending {
        self.state.ending().await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        match self.on_drop {
            OnDrop::Abort => self.cancel.cancel(),
            OnDrop::Leave => self.detached.cancel(),
        }
    }
}
