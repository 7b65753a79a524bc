//! Removes old events of ended runs from the store, a little at a time, so that no other process waits long for its
//! lock.

use std::time::Duration;

use platform_runtime::{report, settings};
use runner_store::{Error, Keep, Pruned, Store};
use tokio::time::sleep;

/// Maximum number of transactions in a pass.
const MAX_TRANSACTIONS: u32 = 64;
/// Delay between two transactions, in which other processes have their turn.
const TRANSACTION_DELAY: Duration = Duration::from_millis(50);

/// Removes old events at once, and then each time that `interval` has passed.
pub(crate) async fn prune_events(store: &Store, settings: &settings::Store, interval: Duration) {
    let keep = Keep { age: settings.event_retention, runs: settings.event_retention_max_runs };
    loop {
        match pass(store, keep).await {
            Ok(Pruned { events: 0, .. }) => {}
            Ok(Pruned { runs, events }) => tracing::info!(runs, events, "old events of ended runs removed"),
            Err(error) => {
                tracing::warn!(error = report::chain(&error), "old events of ended runs not removed yet");
            }
        }
        sleep(interval).await;
    }
}

async fn pass(store: &Store, keep: Keep) -> Result<Pruned, Error> {
    let mut all = Pruned::default();
    for _ in 0..MAX_TRANSACTIONS {
        let Pruned { runs, events } = store.prune(keep).await?;
        if runs == 0 {
            break;
        }
        all.runs += runs;
        all.events += events;
        sleep(TRANSACTION_DELAY).await;
    }
    Ok(all)
}
