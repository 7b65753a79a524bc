//! Makes sure that a turn ends exactly once.

use std::sync::Arc;

use crate::{
    handle::ConnectionHandle,
    outcome::{Ending, TurnFailure},
    turn_state::TurnState,
};

/// Ends the turn, also when its task is dropped with its runtime.
pub(super) struct EndGuard {
    pub(super) state: Arc<TurnState>,
    pub(super) handle: ConnectionHandle,
}

impl EndGuard {
    /// Ends the turn. The session is free again before the reader sees the end.
    pub(super) fn end_with(self, ending: Ending) {
        self.handle.shared.routes.unregister(&self.state);
        self.state.end(ending);
    }
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.handle.shared.routes.unregister(&self.state);
        self.state.end(Ending::Failed(TurnFailure::Lost));
    }
}
