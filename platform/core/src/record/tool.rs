//! Defines the part of a record that is about a call of a host tool.

use serde::{Deserialize, Serialize};

use crate::untrusted::JournalText;

/// Call of a host tool. A record never holds its arguments or its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Name of the tool.
    pub name: JournalText,
    /// Outcome of the call.
    pub outcome: ToolOutcome,
    /// Id of the account's connection with the credential that the tool used; left out if it used none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<JournalText>,
    /// SHA-256 of the arguments as the agent wrote them, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_sha256: Option<JournalText>,
}

/// Outcome of an executed call, as the control plane reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    /// The tool gave a result.
    Done,
    /// The tool ran and failed, or its arguments were refused.
    Failed,
    /// The data plane, the control plane or a person refused the call. Nothing ran.
    Denied,
    /// The call began, and how it ended is unknown: it may have had its effect. It is not repeated.
    Unknown,
}

impl ToolOutcome {
    /// All outcomes, for tables and tests, in the order in which they are declared.
    pub const ALL: [Self; 4] = [Self::Done, Self::Failed, Self::Denied, Self::Unknown];

    /// Returns the word in the journal and in [`crate::host_tools::header::OUTCOME`].
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the outcome that `word` stands for.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.word() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_read_by_its_word() {
        for (at, outcome) in ToolOutcome::ALL.into_iter().enumerate() {
            assert_eq!(serde_json::to_string(&outcome).unwrap(), format!("\"{}\"", outcome.word()));
            assert_eq!(ToolOutcome::of_word(outcome.word()), Some(outcome));
            assert_eq!(outcome as usize, at, "{outcome:?} stands where it is declared");
        }
        assert_eq!(ToolOutcome::of_word("Done"), None);
    }
}
