//! Removes old events and texts of ended runs from the store, in small transactions, so that no other process waits long
//! for the store's lock. Also removes browser sessions that have ended.

use std::time::Duration;

use platform_core::limit::Millis;
use platform_runtime::{report, settings};
use runner_store::{Error, Keep, Pruned, Store};
use tokio::time::sleep;

/// Maximum number of transactions in a pass.
const MAX_TRANSACTIONS: u32 = 64;
/// Delay between two transactions, in which other processes can acquire the lock.
const TRANSACTION_DELAY: Duration = Duration::from_millis(50);

/// Removes what is old at once, and then each time that `interval` has passed.
pub(crate) async fn prune_store(store: &Store, settings: &settings::Store, interval: Duration) {
    let keep = Keep { age: settings.event_retention, runs: settings.event_retention_max_runs };
    loop {
        match prune_once(store, keep).await {
            Ok(Pruned { events: 0, .. }) => {}
            Ok(Pruned { runs, events }) => tracing::info!(runs, events, "old events of ended runs removed"),
            Err(error) => {
                tracing::warn!(error = report::chain(&error), "old events of ended runs not removed yet");
            }
        }
        if let Some(age) = settings.retention {
            match forget_once(store, age).await {
                Ok(0) => {}
                Ok(runs) => tracing::info!(runs, "questions and answers of old runs removed"),
                Err(error) => {
                    tracing::warn!(
                        error = report::chain(&error),
                        "questions and answers of old runs not removed yet"
                    );
                }
            }
        }
        match store.remove_ended_browser_sessions().await {
            Ok(0) => {}
            Ok(sessions) => tracing::info!(sessions, "ended browser sessions removed"),
            Err(error) => {
                tracing::warn!(error = report::chain(&error), "ended browser sessions not removed yet");
            }
        }
        sleep(interval).await;
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

/// Removes texts of runs that ended longer than `age` ago. Returns the number of runs.
async fn forget_once(store: &Store, age: Millis) -> Result<u64, Error> {
    let mut total = 0;
    for _ in 0..MAX_TRANSACTIONS {
        let runs = store.forget_old(age).await?;
        if runs == 0 {
            break;
        }
        total += runs;
        sleep(TRANSACTION_DELAY).await;
    }
    Ok(total)
}
