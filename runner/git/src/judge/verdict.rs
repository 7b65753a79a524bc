//! verdict holds the result of judging an agent's work.

use serde::{Deserialize, Serialize};

use super::rule::Objection;
use crate::object_id::ObjectId;

/// Result of judging an agent's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RelayVerdict {
    /// The agent committed nothing.
    Nothing,
    /// The work keeps all rules.
    Accepted(AcceptedWork),
    /// The work breaks rules.
    Refused(Vec<Objection>),
}

/// Work that keeps all rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedWork {
    /// Last commit.
    pub tip: ObjectId,
    /// Number of commits.
    pub commits: usize,
    /// Number of paths that they change.
    pub files: usize,
    /// Size of all new content.
    pub bytes: u64,
}
