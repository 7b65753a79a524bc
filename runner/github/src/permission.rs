//! permission defines what a credential is for, and the least that GitHub has to allow for it.

use serde_json::{Value, json};

/// Use of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Permission {
    /// Reading the repository.
    Fetch,
    /// Writing a branch, and making its pull request.
    Push,
    /// Reading issues and pull requests.
    ReadIssues,
    /// Commenting on issues and pull requests, and labelling them.
    WriteIssues,
}

impl Permission {
    /// Returns the permissions of an installation's token, as the API takes them.
    pub(crate) fn scopes(self) -> Value {
        match self {
            Self::Fetch => json!({ "contents": "read" }),
            Self::Push => json!({ "contents": "write", "pull_requests": "write" }),
            Self::ReadIssues => json!({ "issues": "read", "pull_requests": "read" }),
            Self::WriteIssues => json!({ "issues": "write", "pull_requests": "write" }),
        }
    }
}
