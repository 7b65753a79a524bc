//! Records what has happened to a proposal: its states, and every move between them.
//!
//! ```text
//! queued ⇄ committed ─▶ pushed ─▶ proposed ─▶ merged | closed
//!    └─▶ refused           each of these four may become failed
//! ```
//!
//! A commit that is not pushed yet is made again if its base has moved on.

use platform_core::{
    id::{AccountId, ExternalId, ProposalId},
    json::{self, Bounds},
    limit::Millis,
};
use runner_engine::relay::{AcceptedWork, PullRequest, RepoOrder};
use runner_store::{ProposalProgress, StoredProposal, UnixMillis};
use serde::{Deserialize, Serialize};

use crate::{content::ProposalContent, error::ProposalError};

/// Place that a proposal is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposalPlace {
    /// Repository, branches, and whether a pull request is made.
    pub order: RepoOrder,
    /// Path of the file that changes.
    pub path: String,
}

/// Everything that is known of a proposal's way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposalRecord {
    /// Place that it is for.
    pub place: ProposalPlace,
    /// State of the proposal.
    #[serde(flatten)]
    pub state: ProposalState,
    /// Difference to the file in the repository, once the commit is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Number of tries in this state that failed and will be repeated.
    #[serde(default)]
    pub tries: u32,
    /// Reason why the last try failed, if the state is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// State of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ProposalState {
    /// Stored, and nothing else is done.
    Queued,
    /// Its commit is made, and keeps all rules.
    Committed {
        /// The commit.
        work: AcceptedWork,
    },
    /// Its branch has the commit.
    Pushed {
        /// The commit.
        work: AcceptedWork,
    },
    /// People can merge it: its branch has the commit, and the pull request exists if there are any.
    Proposed {
        /// The pull request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pull_request: Option<PullRequest>,
    },
    /// The base branch has it. Final.
    Merged {
        /// The pull request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pull_request: Option<PullRequest>,
    },
    /// People do not want it. Final.
    Closed {
        /// The pull request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pull_request: Option<PullRequest>,
    },
    /// Rules are broken, or the configuration would be wrong with it. Final.
    Refused {
        /// The reasons.
        objections: Vec<String>,
    },
    /// A step failed and is not tried again. Final.
    Failed {
        /// The reason.
        reason: String,
    },
}

/// Proposal, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// Id of the proposal.
    pub id: ProposalId,
    /// Account that it belongs to.
    pub account: AccountId,
    /// Principal who asked for it.
    pub principal: ExternalId,
    /// Content of the proposal.
    pub content: ProposalContent,
    /// Progress of the proposal.
    pub record: ProposalRecord,
    /// Time at which it was ordered.
    pub created: UnixMillis,
}

impl ProposalState {
    /// Names of all states.
    pub const NAMES: [&'static str; 8] =
        ["queued", "committed", "pushed", "proposed", "merged", "closed", "refused", "failed"];

    /// Returns the name of the state, as it is stored and shown.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Committed { .. } => "committed",
            Self::Pushed { .. } => "pushed",
            Self::Proposed { .. } => "proposed",
            Self::Merged { .. } => "merged",
            Self::Closed { .. } => "closed",
            Self::Refused { .. } => "refused",
            Self::Failed { .. } => "failed",
        }
    }

    /// Returns whether the host has a step to take.
    #[must_use]
    pub const fn is_pending(&self) -> bool {
        matches!(self, Self::Queued | Self::Committed { .. } | Self::Pushed { .. })
    }

    /// Returns whether it has ended.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        !self.is_pending() && !matches!(self, Self::Proposed { .. })
    }

    /// Returns whether the next step needs the commit on this host.
    #[must_use]
    pub const fn needs_commit(&self) -> bool {
        matches!(self, Self::Committed { .. })
    }

    /// Returns the pull request, if there is one.
    #[must_use]
    pub const fn pull_request(&self) -> Option<&PullRequest> {
        match self {
            Self::Proposed { pull_request }
            | Self::Merged { pull_request }
            | Self::Closed { pull_request } => pull_request.as_ref(),
            _ => None,
        }
    }

    /// Returns why it came to a bad end.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Refused { objections } => Some(objections.join("\n")),
            Self::Failed { reason } => Some(reason.clone()),
            _ => None,
        }
    }

    /// Returns whether a proposal may go from this state to `next`.
    #[must_use]
    pub const fn leads_to(&self, next: &Self) -> bool {
        matches!(
            (self, next),
            (Self::Queued, Self::Committed { .. } | Self::Refused { .. } | Self::Failed { .. })
                | (Self::Committed { .. }, Self::Queued | Self::Pushed { .. } | Self::Failed { .. })
                | (Self::Pushed { .. }, Self::Proposed { .. } | Self::Failed { .. })
                | (Self::Proposed { .. }, Self::Merged { .. } | Self::Closed { .. } | Self::Failed { .. })
        )
    }
}

impl ProposalRecord {
    /// Returns the record of a proposal for `place` that begins.
    #[must_use]
    pub const fn new(place: ProposalPlace) -> Self {
        Self { place, state: ProposalState::Queued, diff: None, tries: 0, fault: None }
    }

    /// Returns the record as it is stored, to be continued by any process after `due_in`.
    pub(crate) fn progress(&self, due_in: Option<Millis>) -> ProposalProgress {
        ProposalProgress {
            state: self.state.name(),
            // A record has no maps with other keys than texts, so it can be written.
            document: serde_json::to_string(self).unwrap_or_default(),
            due_in,
        }
    }
}

impl Proposal {
    /// Reads a stored proposal.
    ///
    /// # Errors
    /// [`ProposalError::Unreadable`].
    pub fn read(stored: &StoredProposal) -> Result<Self, ProposalError> {
        let unreadable = |source| ProposalError::Unreadable { id: stored.id.clone(), source };
        Ok(Self {
            id: stored.id.clone(),
            account: stored.account.clone(),
            principal: stored.principal.clone(),
            content: json::from_str(&stored.content, Bounds::STORED).map_err(unreadable)?,
            record: json::from_str(&stored.document, Bounds::STORED).map_err(unreadable)?,
            created: stored.created,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states() -> Vec<ProposalState> {
        let work: AcceptedWork = serde_json::from_value(serde_json::json!({
            "start": "a".repeat(40), "tip": "b".repeat(40), "commits": 1, "files": 1, "bytes": 1,
        }))
        .unwrap();
        let pull_request = None;
        vec![
            ProposalState::Queued,
            ProposalState::Committed { work: work.clone() },
            ProposalState::Pushed { work },
            ProposalState::Proposed { pull_request: pull_request.clone() },
            ProposalState::Merged { pull_request: pull_request.clone() },
            ProposalState::Closed { pull_request },
            ProposalState::Refused { objections: vec!["no".to_owned()] },
            ProposalState::Failed { reason: "no".to_owned() },
        ]
    }

    #[test]
    fn only_legal_moves_are_made() {
        let states = states();
        assert_eq!(states.iter().map(ProposalState::name).collect::<Vec<_>>(), ProposalState::NAMES);
        let moves = states.iter().flat_map(|from| states.iter().map(move |to| (from, to)));
        let legal: Vec<_> = moves.filter(|(from, to)| from.leads_to(to)).collect();
        assert_eq!(legal.len(), 11, "{legal:#?}");
        assert!(legal.iter().all(|(from, _)| !from.is_final()), "nothing follows an end");
        assert!(states.iter().filter(|state| state.is_final()).count() == 4);
    }

    #[test]
    fn a_record_is_read_as_written() {
        for state in states() {
            let text = serde_json::to_string(&state).unwrap();
            assert_eq!(json::from_str::<ProposalState>(&text, Bounds::STORED).unwrap(), state, "{text}");
        }
    }
}
