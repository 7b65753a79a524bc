//! remote_failure defines the reasons why a remote did not do what it was asked.

use serde::{Deserialize, Serialize};

/// Reason why a remote did not do what it was asked, in git's words, made safe to print.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum RemoteFailure {
    /// The remote answered, and said no.
    #[error("the remote refused: {reason}")]
    Refused {
        /// Git's words.
        reason: String,
    },
    /// The remote did not answer.
    #[error("the remote does not answer: {reason}")]
    Unreachable {
        /// Git's words.
        reason: String,
        /// Chance that the same order succeeds later.
        retry: bool,
    },
}
