//! Continues proposals when they are due.

use std::{convert::Infallible, time::Duration};

use futures_util::{StreamExt as _, stream};
use platform_runtime::report;
use runner_store::{Store, StoredProposal};
use tokio::time::sleep;

use crate::{Proposals, error::ProposalError};

/// Interval between two looks for proposals that are due.
const DUE_INTERVAL: Duration = Duration::from_secs(2);
/// Most proposals that are read at once.
const MAX_DUE: u32 = 64;
/// Number of proposals that are continued at the same time.
const AT_ONCE: usize = 4;

/// Continues proposals of `store` that are due, for ever, as `latest` says at that moment. Dropping the future leaves them
/// where they are.
pub async fn continue_proposals(store: &Store, latest: impl Fn() -> Proposals) -> Infallible {
    loop {
        let due = store.due_proposals(MAX_DUE).await.unwrap_or_else(|error| {
            tracing::warn!(error = report::chain(&error), "pending proposals not looked for");
            Vec::new()
        });
        stream::iter(due).for_each_concurrent(AT_ONCE, |stored| continue_one(latest(), stored)).await;
        sleep(DUE_INTERVAL).await;
    }
}

async fn continue_one(proposals: Proposals, stored: StoredProposal) {
    match proposals.advance(&stored.id).await {
        // The process that has it continues it.
        Ok(_) | Err(ProposalError::Busy { .. }) => {}
        Err(error) => {
            tracing::warn!(proposal = %stored.id, error = report::chain(&error), "proposal not continued");
        }
    }
}
