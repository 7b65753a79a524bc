//! Removes old events and texts of ended runs from the store, in small transactions, so that no other process waits long
//! for the store's lock. Also removes browser sessions that have ended, calls that the journal no longer
//! keeps, and sums that no overview shows.

use std::time::Duration;

use platform_runtime::{
    report,
    settings::{self, Settings},
};
use runner_store::{Error, Keep, Pruned, Store};
use tokio::time::sleep;

/// Maximum number of transactions in a pass.
const MAX_TRANSACTIONS: u32 = 64;
/// Delay between two transactions, in which other processes can acquire the lock.
const TRANSACTION_DELAY: Duration = Duration::from_millis(50);

/// Removes what is old at once, and then each time that `interval` has passed.
pub(crate) async fn prune_store(store: &Store, settings: &Settings, interval: Duration) {
    let Settings {
        store: settings::Store { event_retention, event_retention_max_runs, retention, .. }, ..
    } = settings;
    let keep = Keep { age: *event_retention, runs: *event_retention_max_runs };
    loop {
        match prune_once(store, keep).await {
            Ok(Pruned { events: 0, .. }) => {}
            Ok(Pruned { runs, events }) => tracing::info!(runs, events, "old events of ended runs removed"),
            Err(error) => {
                tracing::warn!(error = report::chain(&error), "old events of ended runs not removed yet");
            }
        }
        if let Some(age) = *retention {
            let removed = remove_all(async || store.forget_old(age).await).await;
            log_removed("questions and answers of old runs", removed);
        }
        log_removed("ended browser sessions", store.remove_ended_browser_sessions().await);
        let age = settings.journal.retention;
        log_removed("old calls", remove_all(async || store.remove_old_calls(age).await).await);
        log_removed("old sums of short spans", store.remove_old_sums().await);
        sleep(interval).await;
    }
}

/// Logs what was removed.
fn log_removed(what: &str, removed: Result<u64, Error>) {
    match removed {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "{what} removed"),
        Err(error) => tracing::warn!(error = report::chain(&error), "{what} not removed yet"),
    }
}

async fn prune_once(store: &Store, keep: Keep) -> Result<Pruned, Error> {
    let mut total = Pruned::default();
    for _ in 0..MAX_TRANSACTIONS {
        let Pruned { runs, events } = store.prune(keep).await?;
        if runs == 0 {
            break;
        }
        total.runs += runs;
        total.events += events;
        sleep(TRANSACTION_DELAY).await;
    }
    Ok(total)
}

/// Repeats `remove_some` until it removes nothing, but not for ever. Returns the number of everything that it removed.
async fn remove_all(remove_some: impl AsyncFn() -> Result<u64, Error>) -> Result<u64, Error> {
    let mut total = 0;
    for _ in 0..MAX_TRANSACTIONS {
        let removed = remove_some().await?;
        if removed == 0 {
            break;
        }
        total += removed;
        sleep(TRANSACTION_DELAY).await;
    }
    Ok(total)
}
