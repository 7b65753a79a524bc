//! Continues proposals when they are due.

use std::{
    collections::{BTreeSet, VecDeque},
    convert::Infallible,
    time::Duration,
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use platform_core::id::ProposalId;
use platform_runtime::report;
use runner_store::Store;
use tokio::time::{Instant, sleep_until};

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
    if let Err(error) = latest().remove_left_dirs().await {
        tracing::warn!(error = report::chain(&error), "files of ended proposals not removed");
    }
    let mut working = FuturesUnordered::new();
    let mut taken = BTreeSet::new();
    let mut waiting = VecDeque::new();
    let mut next_look = Instant::now();
    loop {
        // A slow one does not keep the others, and one that fails at once is tried again after the next look.
        while taken.len() < AT_ONCE
            && let Some(id) = waiting.pop_front()
        {
            taken.insert(ProposalId::clone(&id));
            working.push(continue_one(latest(), id));
        }
        tokio::select! {
            Some(id) = working.next() => drop(taken.remove(&id)),
            due = look(store, next_look) => {
                next_look = Instant::now() + DUE_INTERVAL;
                waiting = due.into_iter().filter(|id| !taken.contains(id)).collect();
            }
        }
    }
}

/// Returns the proposals that are due at `time`, the first one first.
async fn look(store: &Store, time: Instant) -> Vec<ProposalId> {
    sleep_until(time).await;
    store.due_proposals(MAX_DUE).await.unwrap_or_else(|error| {
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
