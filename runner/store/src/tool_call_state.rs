//! Defines the states of a call of a host tool, and the moves between them. Pure.

use serde::Serialize;

/// State of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallState {
    /// A person has to decide whether the tool may act.
    Waiting,
    /// A person has approved the call, and the tool has not begun.
    Approved,
    /// The call was denied or withdrawn. The tool has not acted, and never will.
    Denied,
    /// The tool acts.
    Executing,
    /// The tool gave a result.
    Done,
    /// The tool gave none, and has ended.
    Failed,
    /// The tool began, and how it ended is unknown.
    Unknown,
}

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

impl ToolCallState {
    /// All states, in the order in which they are declared.
    pub const ALL: [Self; 7] = [
        Self::Waiting,
        Self::Approved,
        Self::Denied,
        Self::Executing,
        Self::Done,
        Self::Failed,
        Self::Unknown,
    ];

    /// Returns the state as a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Executing => "executing",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }

    pub(super) fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
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

    #[test]
    fn a_state_is_read_by_its_word() {
        for (at, state) in ToolCallState::ALL.into_iter().enumerate() {
            assert_eq!(ToolCallState::of_word(state.word()), Some(state));
            assert_eq!(state as usize, at, "{state:?} stands where it is declared");
        }
    }

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
