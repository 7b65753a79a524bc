//! Continues proposals when they are due.

use std::{collections::BTreeSet, convert::Infallible, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use platform_core::id::ProposalId;
use platform_runtime::report;
use runner_store::Store;
use tokio::time::sleep;

use crate::{Proposals, error::ProposalError};

/// Interval between two looks for proposals that are due.
const DUE_INTERVAL: Duration = Duration::from_secs(2);
/// Number of proposals that are continued at the same time.
const AT_ONCE: usize = 4;

/// Continues proposals of `store` that are due, for ever, as `latest` says at that moment. Dropping the future leaves them
/// where they are.
pub async fn continue_proposals(store: &Store, latest: impl Fn() -> Proposals) -> Infallible {
    if let Err(error) = latest().remove_left_dirs().await {
        tracing::warn!(error = report::chain(&error), "files of ended proposals not removed");
    }
    let mut working = FuturesUnordered::new();
    let mut taken = BTreeSet::new();
    loop {
        for id in due(store).await {
            // A slow one does not keep the others.
            if taken.len() < AT_ONCE && taken.insert(id.clone()) {
                working.push(continue_one(latest(), id));
            }
        }
        tokio::select! {
            Some(id) = working.next(), if !working.is_empty() => drop(taken.remove(&id)),
            () = sleep(DUE_INTERVAL) => {}
        }
    }
}

async fn due(store: &Store) -> Vec<ProposalId> {
    // Those that are worked on are among them.
    let most = u32::try_from(2 * AT_ONCE).unwrap_or(u32::MAX);
    store.due_proposals(most).await.unwrap_or_else(|error| {
        tracing::warn!(error = report::chain(&error), "pending proposals not looked for");
        Vec::new()
    })
}

async fn continue_one(proposals: Proposals, id: ProposalId) -> ProposalId {
    match proposals.advance(&id).await {
        // The process that has it continues it.
        Ok(_) | Err(ProposalError::Busy { .. }) => {}
        Err(error) => {
            tracing::warn!(proposal = %id, error = report::chain(&error), "proposal not continued");
        }
    }
    id
}
