//! Defines the moves of a call of a host tool between its states. Pure.

use platform_core::host_tools::ToolCallState;

/// Move of a call from one state to another. A move is one conditional update: of two moves from the same state, one
/// takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolCallMove {
    /// A person approves.
    Approve,
    /// A person denies, or too much time has passed.
    Deny,
    /// The process that waits gives up, or is gone: approved or not, the call does not begin.
    Withdraw,
    /// The tool begins to act.
    Begin,
    /// Another process finds that the one that executed the call is gone.
    Lose,
}

impl ToolCallMove {
    /// Returns the states from which the move is legal. A single one occurs twice.
    pub(super) const fn sources(self) -> [ToolCallState; 2] {
        match self {
            Self::Approve | Self::Deny => [ToolCallState::Waiting, ToolCallState::Waiting],
            Self::Withdraw => [ToolCallState::Waiting, ToolCallState::Approved],
            Self::Begin => [ToolCallState::Approved, ToolCallState::Approved],
            Self::Lose => [ToolCallState::Executing, ToolCallState::Executing],
        }
    }

    /// Returns the state after the move.
    pub(super) const fn target(self) -> ToolCallState {
        match self {
            Self::Approve => ToolCallState::Approved,
            Self::Deny | Self::Withdraw => ToolCallState::Denied,
            Self::Begin => ToolCallState::Executing,
            Self::Lose => ToolCallState::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOVES: [ToolCallMove; 5] = [
        ToolCallMove::Approve,
        ToolCallMove::Deny,
        ToolCallMove::Withdraw,
        ToolCallMove::Begin,
        ToolCallMove::Lose,
    ];

    /// A waiting call executes only by way of an approval, and no move leads out of a denial.
    #[test]
    fn nothing_executes_without_approval() {
        let into_execution = MOVES.into_iter().filter(|step| step.target() == ToolCallState::Executing);
        for step in into_execution {
            assert_eq!(step.sources(), [ToolCallState::Approved; 2], "{step:?}");
        }
        let ended = [ToolCallState::Denied, ToolCallState::Done, ToolCallState::Failed];
        for step in MOVES {
            assert!(!step.sources().iter().any(|source| ended.contains(source)), "{step:?}");
        }
    }
}
