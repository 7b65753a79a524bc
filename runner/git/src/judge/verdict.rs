//! verdict holds the result of judging an agent's work.

use serde::{Deserialize, Serialize};

use super::rule::Objection;
use crate::object_id::ObjectId;

/// Result of judging an agent's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RelayVerdict {
    /// The work keeps all rules.
    Accepted(AcceptedWork),
    /// The work breaks rules.
    Refused(Vec<Objection>),
}

/// Work that keeps all rules. Only a judgement makes it, and a push needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedWork {
    pub(super) start: ObjectId,
    pub(super) tip: ObjectId,
    pub(super) commits: usize,
    pub(super) files: usize,
    pub(super) bytes: u64,
}

impl AcceptedWork {
    /// Returns the commit that the agent began with.
    #[must_use]
    pub const fn start(&self) -> &ObjectId {
        &self.start
    }

    /// Returns the last commit.
    #[must_use]
    pub const fn tip(&self) -> &ObjectId {
        &self.tip
    }

    /// Returns the work with another last commit, which has the same files.
    pub(crate) fn ending_with(self, tip: ObjectId) -> Self {
        Self { tip, ..self }
    }

    /// Returns the number of commits.
    #[must_use]
    pub const fn commits(&self) -> usize {
        self.commits
    }

    /// Returns the number of paths that the commits change.
    #[must_use]
    pub const fn files(&self) -> usize {
        self.files
    }

    /// Returns the size of all new content.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}
