//! Looks for the end of what is proposed: at GitHub, or in the repository where there are no pull requests.

use std::time::Duration;

use platform_core::limit::Millis;
use platform_runtime::report;
use runner_engine::relay::{PullRequest, RelayError};
use runner_git::FileAt;
use runner_github::{PullRequestFate, PullRequests, RepositoryName};

use crate::{
    Proposals,
    advance::MAX_TRIES,
    error::ProposalError,
    open::{MAX_FILE, OpenProposal, WATCH_INTERVAL},
    record::ProposalState,
};

/// Longest interval between two looks, while no client asks.
const LONGEST_INTERVAL: Millis = Millis::seconds(30 * 60);
/// Share of its age that passes before the next look at a proposal.
const SHARE_OF_AGE: u32 = 10;

impl Proposals {
    /// Looks for the end of a proposal, and stores it, or when to look again. Only failures over days end it.
    pub(crate) async fn look(&self, open: &mut OpenProposal) -> Result<(), ProposalError> {
        let pull_request = open.proposal.record.state.pull_request().cloned();
        let found = match &pull_request {
            Some(pull_request) => self.at_github(open, pull_request).await,
            None => self.in_repository(open).await,
        };
        let next = match &found {
            Ok(PullRequestFate::Merged) => Some(ProposalState::Merged { pull_request }),
            Ok(PullRequestFate::Closed) => Some(ProposalState::Closed { pull_request }),
            Ok(PullRequestFate::Open) | Err(_) => None,
        };
        if let Some(state) = next {
            return self.change(open, state).await;
        }
        if let Err(ProposalError::Relay(RelayError::Store(_))) = found {
            return found.map(drop);
        }
        let fault = found.err();
        let record = &mut open.proposal.record;
        record.tries = if fault.is_some() { record.tries + 1 } else { 0 };
        if let Some(fault) = fault.as_ref().filter(|_| record.tries >= MAX_TRIES) {
            let reason = format!("it cannot be seen any more: {}", report::chain(fault));
            return self.change(open, ProposalState::Failed { reason }).await;
        }
        let delay = fault.as_ref().and_then(ProposalError::retry_after).unwrap_or_default();
        open.proposal.record.fault = fault.as_ref().map(|fault| report::chain(fault));
        let delay = open.interval().max(delay);
        self.store_record(open, Some(Millis(delay.as_millis().try_into().unwrap_or(u64::MAX)))).await
    }

    async fn at_github(
        &self,
        open: &OpenProposal,
        pull_request: &PullRequest,
    ) -> Result<PullRequestFate, ProposalError> {
        let order = &open.proposal.record.place.order;
        let repository = RepositoryName::of(&order.url)?;
        let pulls = PullRequests::new(self.relays.github().source()?);
        Ok(pulls.fate(&repository, pull_request.number, &order.base).await?)
    }

    /// Says that it is merged if the base branch has it, and closed if its own branch is gone otherwise.
    async fn in_repository(&self, open: &OpenProposal) -> Result<PullRequestFate, ProposalError> {
        let place = &open.proposal.record.place;
        let mirror = self.fetch(&self.relays.git()?, open).await?;
        let tip = mirror.base_tip(&place.order.base).await?;
        let file = mirror.file(&tip, &place.path, MAX_FILE).await?;
        if matches!(&file, FileAt::Text(text) if open.proposal.content.is_in(text)) {
            return Ok(PullRequestFate::Merged);
        }
        let branch = mirror.sandbox_tip(&place.order.branch).await?;
        Ok(if branch.is_some() { PullRequestFate::Open } else { PullRequestFate::Closed })
    }
}

impl OpenProposal {
    /// Returns the time until the next look: longer for an older proposal, so that few calls look at many.
    fn interval(&self) -> Duration {
        let share = self.age() / SHARE_OF_AGE;
        share.clamp(WATCH_INTERVAL.duration(), LONGEST_INTERVAL.duration())
    }
}
