//! Records what has happened on the way of a run's commits: its stages, and every move between them.
//!
//! ```text
//! cloned ─▶ collected ─▶ accepted ─▶ pushed ─▶ published
//!    │          ├─▶ refused    └─▶ branch_moved
//!    │          └─▶ unchanged
//!    └──────▶ unchanged | refused
//! ```
//!
//! Each stage before a final one may become failed. A person may send one that ended without a push back to collected.

use platform_core::{
    json::{self, Bounds},
    limit::Millis,
};
use runner_files::{GitGaps, OutsideFiles};
use runner_git::{AcceptedWork, CommitSummary, ObjectId, Objection};
use runner_store::{RelayProgress, StoredRelay};
use serde::{Deserialize, Serialize};

use super::{error::RelayError, repo_order::RepoOrder};

/// Everything that is known of a relay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelayRecord {
    /// Order of the run.
    pub order: RepoOrder,
    /// Commit that the agent began with.
    pub start: ObjectId,
    /// Commit that the branch had at the remote; absent if it did not exist.
    pub remote_tip: Option<ObjectId>,
    /// Files of the repository that the agent's clone lacks.
    #[serde(default, skip_serializing_if = "GitGaps::is_empty")]
    pub lacking: GitGaps,
    /// Files that the agent left beside the repository: they are in no commit.
    #[serde(default, skip_serializing_if = "OutsideFiles::is_empty")]
    pub outside: OutsideFiles,
    /// The agent's commits, the newest first, once they were judged. Many are not listed to the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<CommitSummary>,
    /// True if the agent left work that is in no commit of its branch. Its workspace is kept then.
    #[serde(default)]
    pub uncommitted: bool,
    /// Stage of the relay.
    #[serde(flatten)]
    pub stage: RelayStage,
    /// Number of tries in this stage that failed and will be repeated.
    #[serde(default)]
    pub tries: u32,
    /// Reason why the last try failed, if the stage is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// Stage of a relay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum RelayStage {
    /// The agent has its clone.
    Cloned,
    /// The agent's commits are in a file of this host.
    Collected,
    /// The commits keep all rules.
    Accepted {
        /// The commits.
        work: AcceptedWork,
    },
    /// The branch has the commits.
    Pushed {
        /// The commits.
        work: AcceptedWork,
    },
    /// The branch has the commits, and the pull request exists if one was asked for. Final.
    Published {
        /// The commits.
        work: AcceptedWork,
        /// The pull request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pull_request: Option<PullRequest>,
    },
    /// The agent committed nothing. Final.
    Unchanged,
    /// The commits break rules. Final.
    Refused {
        /// The rules, and where they are broken.
        objections: Vec<Objection>,
    },
    /// The branch has other commits than those the agent began with. Final.
    BranchMoved {
        /// The commits of the agent.
        work: AcceptedWork,
        /// Commit that the branch has, if the remote says so.
        found: Option<ObjectId>,
    },
    /// A step failed and is not tried again by itself. Final.
    Failed {
        /// The reason.
        reason: String,
    },
}

/// Pull request of an agent's commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequest {
    /// Its number in the repository.
    pub number: u64,
    /// Its address for people.
    pub url: String,
}

impl RelayStage {
    /// Returns the name of the stage, as it is stored and shown.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Cloned => "cloned",
            Self::Collected => "collected",
            Self::Accepted { .. } => "accepted",
            Self::Pushed { .. } => "pushed",
            Self::Published { .. } => "published",
            Self::Unchanged => "unchanged",
            Self::Refused { .. } => "refused",
            Self::BranchMoved { .. } => "branch_moved",
            Self::Failed { .. } => "failed",
        }
    }

    /// Returns whether the relay goes on from this stage by itself, without the run's workspace.
    #[must_use]
    pub const fn is_pending(&self) -> bool {
        matches!(self, Self::Collected | Self::Accepted { .. } | Self::Pushed { .. })
    }

    /// Returns whether a person may send the commits back to be judged and pushed again.
    #[must_use]
    pub const fn can_restart(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::Refused { .. } | Self::BranchMoved { .. })
    }

    /// Returns whether the commits are of no further use on this host.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self, Self::Published { .. } | Self::Unchanged)
    }

    /// Returns the commits, if they were accepted.
    #[must_use]
    pub const fn work(&self) -> Option<&AcceptedWork> {
        match self {
            Self::Accepted { work }
            | Self::Pushed { work }
            | Self::Published { work, .. }
            | Self::BranchMoved { work, .. } => Some(work),
            _ => None,
        }
    }

    /// Returns the pull request, if there is one.
    #[must_use]
    pub const fn pull_request(&self) -> Option<&PullRequest> {
        match self {
            Self::Published { pull_request, .. } => pull_request.as_ref(),
            _ => None,
        }
    }

    /// Returns whether a relay may go from this stage to `next`.
    #[must_use]
    pub const fn leads_to(&self, next: &Self) -> bool {
        matches!(
            (self, next),
            (Self::Cloned, Self::Collected | Self::Unchanged | Self::Refused { .. } | Self::Failed { .. },)
                | (
                    Self::Collected,
                    Self::Accepted { .. } | Self::Unchanged | Self::Refused { .. } | Self::Failed { .. },
                )
                | (
                    Self::Accepted { .. },
                    Self::Pushed { .. } | Self::BranchMoved { .. } | Self::Failed { .. }
                )
                | (Self::Pushed { .. }, Self::Published { .. } | Self::Failed { .. })
                | (Self::Failed { .. } | Self::Refused { .. } | Self::BranchMoved { .. }, Self::Collected)
        )
    }
}

impl RelayRecord {
    /// Reads a stored relay.
    ///
    /// # Errors
    /// [`RelayError::Forgotten`] and [`RelayError::Unreadable`].
    pub fn read(stored: &StoredRelay) -> Result<Self, RelayError> {
        let run_id = || stored.run_id.clone();
        if stored.document.is_empty() {
            return Err(RelayError::Forgotten { run_id: run_id() });
        }
        let unreadable = |source| RelayError::Unreadable { run_id: run_id(), source };
        json::from_str(&stored.document, Bounds::STORED).map_err(unreadable)
    }

    /// Returns the record as it is stored, to be continued by any process after `due_in`.
    pub(super) fn progress(&self, due_in: Option<Millis>) -> RelayProgress {
        RelayProgress {
            stage: self.stage.name(),
            // A record has no maps with other keys than texts, so it can be written.
            document: serde_json::to_string(self).unwrap_or_default(),
            due_in,
        }
    }
}
