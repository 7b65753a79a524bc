//! Defines the states of a call of a host tool. Pure.

use serde::{Deserialize, Serialize};

/// State of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

    /// Returns whether the call has ended: no move leads to another state, but that of a process that was taken for lost.
    #[must_use]
    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Denied | Self::Done | Self::Failed | Self::Unknown)
    }

    /// Returns the state that `word` names.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_by_its_word() {
        for (at, state) in ToolCallState::ALL.into_iter().enumerate() {
            assert_eq!(ToolCallState::of_word(state.word()), Some(state));
            assert_eq!(state as usize, at, "{state:?} stands where it is declared");
        }
    }
}
