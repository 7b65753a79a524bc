//! Removes old events of ended runs from the store, a little at a time, so that no other process waits long for its
//! lock.

use std::time::Duration;

use platform_runtime::{report, settings};
use runner_store::{Error, Keep, Pruned, Store};
use tokio::time::sleep;

/// Maximum number of transactions in a pass, and the delay between two of them, in which others have their turn.
const TRANSACTIONS: u32 = 64;
const PAUSE: Duration = Duration::from_millis(50);

/// Removes old events at once, and then each time that `every` has passed.
pub(crate) async fn keep(store: &Store, settings: &settings::Store, every: Duration) {
    let keep = Keep { age: settings.keep_events, runs: settings.keep_events_of };
    loop {
        match pass(store, keep).await {
            Ok(Pruned { events: 0, .. }) => {}
            Ok(Pruned { runs, events }) => tracing::info!(runs, events, "removed what ended runs had told"),
            Err(error) => {
                tracing::warn!(error = %report::chain(&error), "what ended runs have told is removed later");
            }
        }
        sleep(every).await;
    }
}

async fn pass(store: &Store, keep: Keep) -> Result<Pruned, Error> {
    let mut all = Pruned::default();
    for _ in 0..TRANSACTIONS {
        let Pruned { runs, events } = store.prune(keep).await?;
        if runs == 0 {
            break;
        }
        all.runs += runs;
        all.events += events;
        sleep(PAUSE).await;
    }
    Ok(all)
}
