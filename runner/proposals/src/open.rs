//! Opens a proposal for this process alone, and stores each change of it.

use std::time::Duration;

use platform_core::{
    id::ProposalId,
    limit::{ByteSize, Millis},
};
use platform_runtime::{lock::Lock, report};
use runner_engine::relay::RelayError;
use runner_git::{Git, Mirror};
use runner_github::Permission;
use runner_store::{AccountScope, StoredProposal};

use crate::{
    Proposals,
    directory::ProposalDir,
    error::ProposalError,
    record::{Proposal, ProposalRecord, ProposalState},
};

/// Shortest interval between two looks for the end of a proposal.
pub const WATCH_INTERVAL: Millis = Millis::seconds(60);
/// First delay before a step that failed is tried again.
const FIRST_DELAY: Duration = Duration::from_secs(5);
/// Longest delay before a step that failed is tried again.
const LONGEST_DELAY: Duration = Duration::from_secs(600);
/// Time after which a step that was interrupted is taken by another process.
const INTERRUPTED: Millis = Millis::seconds(30);
/// Largest file that is changed, as the largest configuration file that is read.
pub(crate) const MAX_FILE: ByteSize = ByteSize::mib(4);

/// Proposal that this process works on.
pub(crate) struct OpenProposal {
    pub(crate) proposal: Proposal,
    pub(crate) dir: ProposalDir,
    stored: StoredProposal,
}

impl Proposals {
    /// Opens a proposal under the lock of its directory: what another process did before the lock was free counts.
    pub(crate) async fn open(&self, id: &ProposalId) -> Result<(Lock, OpenProposal), ProposalError> {
        let dir = self.make_dir(id)?;
        let lock = dir.lock()?.ok_or_else(|| ProposalError::Busy { id: id.clone() })?;
        let stored = self.store.proposal(id, &AccountScope::All).await?;
        let stored = stored.ok_or_else(|| ProposalError::Unknown { id: id.clone() })?;
        Ok((lock, OpenProposal { proposal: Proposal::read(&stored)?, dir, stored }))
    }

    /// Stores the next state of a proposal.
    pub(crate) async fn change(
        &self,
        open: &mut OpenProposal,
        state: ProposalState,
    ) -> Result<(), ProposalError> {
        let record = &mut open.proposal.record;
        debug_assert!(record.state.leads_to(&state), "{:?} to {state:?}", record.state);
        let due_in = match &state {
            state if state.is_final() => None,
            ProposalState::Proposed { .. } => Some(WATCH_INTERVAL),
            _ => Some(INTERRUPTED),
        };
        *record = ProposalRecord { state, tries: 0, fault: None, ..record.clone() };
        tracing::info!(proposal = %open.proposal.id, state = record.state.name(), "proposal continued");
        self.store_record(open, due_in).await
    }

    /// Stores that a step has failed, and when it is tried again.
    pub(crate) async fn postpone(
        &self,
        open: &mut OpenProposal,
        error: &ProposalError,
    ) -> Result<(), ProposalError> {
        let record = &mut open.proposal.record;
        // The tries are stored, so the delay follows from their number: another process may make the next one.
        let doubled = FIRST_DELAY.saturating_mul(2_u32.saturating_pow(record.tries));
        let delay = doubled.min(LONGEST_DELAY).max(error.retry_after().unwrap_or_default());
        let error = report::chain(error);
        tracing::warn!(proposal = %open.proposal.id, state = record.state.name(), error, "proposal not continued yet; trying again");
        record.tries += 1;
        record.fault = Some(error);
        self.store_record(open, Some(Millis(delay.as_millis().try_into().unwrap_or(u64::MAX)))).await
    }

    pub(crate) async fn store_record(
        &self,
        open: &mut OpenProposal,
        due_in: Option<Millis>,
    ) -> Result<(), ProposalError> {
        let progress = open.proposal.record.progress(due_in);
        let stored = self.store.change_proposal(&open.stored, &progress).await?;
        open.stored = stored.ok_or_else(|| ProposalError::Busy { id: open.proposal.id.clone() })?;
        Ok(())
    }

    /// Fetches the newest commits of the repository.
    pub(crate) async fn fetch(&self, git: &Git, open: &OpenProposal) -> Result<Mirror, ProposalError> {
        let order = &open.proposal.record.place.order;
        let remote = self.relays.remote(order, Permission::Fetch, &open.dir.askpass()).await?;
        Ok(self.relays.mirrors(git)?.refresh(&remote, &order.base).await?)
    }
}

impl OpenProposal {
    /// Returns the age that the proposal had at its last change.
    pub(crate) fn age(&self) -> Duration {
        self.stored.created.until(self.stored.changed)
    }
}

impl ProposalError {
    /// Returns whether the store has failed, or another process has changed the proposal.
    pub(crate) const fn is_of_store(&self) -> bool {
        matches!(self, Self::Relay(RelayError::Store(_)) | Self::Busy { .. })
    }
}
