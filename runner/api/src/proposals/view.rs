//! Shows proposals. Parts of the configuration are for operators alone.

use runner_engine::relay::PullRequest;
use runner_proposals::Proposal;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{caller::Caller, operation::schemas, rfc3339::rfc3339};

/// Page of proposals.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ProposalPage)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProposalPageView {
    pub(super) proposals: Vec<ProposalView>,
    /// Value of `cursor` for the next page; null on the last.
    #[schema(required = true)]
    pub(super) next_cursor: Option<String>,
}

/// Proposal of an agent or a skill.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Proposal)]
#[serde(rename_all = "camelCase")]
pub struct ProposalView {
    #[schema(value_type = schemas::ProposalId)]
    id: String,
    #[schema(value_type = schemas::AccountId)]
    account: String,
    #[schema(value_type = schemas::ProposalKind)]
    kind: &'static str,
    /// Id of the agent, or name of the skill.
    name: String,
    /// Path of the file in the repository that it changes.
    path: String,
    #[schema(value_type = schemas::ProposalState)]
    state: &'static str,
    /// Difference to the file, in unified form; null before the commit is made, and for others than operators: the file
    /// is the configuration.
    #[schema(required = true)]
    diff: Option<String>,
    /// Branch that has the commit once it is pushed.
    branch: String,
    /// Pull request; null before it is made, and where the repository has none.
    #[schema(required = true)]
    pull_request: Option<ProposalPullRequestView>,
    /// Reason why it was refused or failed, or why its next step waits; null for others than operators.
    #[schema(required = true)]
    reason: Option<String>,
    /// Principal who proposed it.
    created_by: String,
    #[schema(format = DateTime)]
    created_at: String,
}

/// Pull request of a proposal.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ProposalPullRequest)]
struct ProposalPullRequestView {
    /// Number in its repository.
    number: u64,
    /// Address for people.
    url: String,
}

impl ProposalView {
    /// Shows a proposal to `caller`.
    pub(super) fn of(proposal: &Proposal, caller: &Caller) -> Self {
        let view = Self::for_operators(proposal);
        if caller.is_operator() { view } else { Self { diff: None, reason: None, ..view } }
    }

    /// Shows all of a proposal.
    #[must_use]
    pub fn for_operators(proposal: &Proposal) -> Self {
        let Proposal { id, account, principal, content, record, created } = proposal;
        let pull_request = record.state.pull_request().cloned();
        Self {
            id: id.to_string(),
            account: account.to_string(),
            kind: content.kind().word(),
            name: content.name().to_owned(),
            path: record.place.path.clone(),
            state: record.state.name(),
            diff: record.diff.clone(),
            branch: record.place.order.branch.to_string(),
            pull_request: pull_request
                .map(|PullRequest { number, url }| ProposalPullRequestView { number, url }),
            reason: record.state.reason().or_else(|| record.fault.clone()),
            created_by: principal.to_string(),
            created_at: rfc3339(*created),
        }
    }
}
