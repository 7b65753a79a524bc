//! Tells the proxy which accounts are below their floor, and again when that changes.
//!
//! The proxy keeps the lists over its restarts. It gets all of them each time, so nothing depends on what was told before.

use std::{convert::Infallible, sync::Arc, time::Duration};

use platform_core::control::ExhaustedAccounts;
use platform_runtime::retry::{Backoff, repeat_forever};
use runner_control_client::{self as control, DataPlane};
use runner_engine::current_settings::CurrentSettings;
use runner_store::Store;
use runner_telemetry::metrics::Metrics;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

/// Interval at which balances are checked: top-ups of other programs and a changed configuration are found by it.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which unchanged lists are sent again, in case another program has sent older ones.
const RESEND_INTERVAL: Duration = Duration::from_secs(10);
/// Delay before the next attempt after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(10);

/// Reason why the proxy is not told for a while.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Proxy(#[from] control::Error),
    #[error(transparent)]
    Store(#[from] runner_store::Error),
}

/// Keeper of the proxy's lists of accounts below their floor.
#[derive(Debug)]
pub struct FloorEnforcer {
    /// Store of the balances.
    pub store: Store,
    /// The proxy.
    pub data_plane: DataPlane,
    /// Configuration, with the floors and the models that are free.
    pub settings: CurrentSettings,
    /// Counter of accounts below their floor.
    pub metrics: Arc<Metrics>,
    /// Signal that balances have changed.
    pub charged: Arc<Notify>,
}

/// Lists that the proxy was sent.
struct SentLists {
    lists: ExhaustedAccounts,
    at: Instant,
}

impl FloorEnforcer {
    /// Keeps the proxy's lists those of the store and the configuration. Never returns. Cancel safe.
    pub async fn run(&self) -> Infallible {
        let enforce = async || self.enforce().await;
        let warn =
            |error: &str| tracing::warn!(error, "floors of balances wait: they are checked again later");
        repeat_forever(Backoff::new(RETRY_DELAY, MAX_RETRY_DELAY), enforce, warn).await
    }

    async fn enforce(&self) -> Result<Infallible, Error> {
        let mut sent: Option<SentLists> = None;
        loop {
            let lists = self.lists().await?;
            self.metrics.set_below_floor(lists.accounts.len() as u64);
            let is_current =
                sent.as_ref().is_some_and(|sent| sent.lists == lists && sent.at.elapsed() < RESEND_INTERVAL);
            if !is_current {
                self.data_plane.set_exhausted(&lists).await?;
                sent = Some(SentLists { lists, at: Instant::now() });
            }
            tokio::select! {
                () = self.charged.notified() => {}
                () = sleep(CHECK_INTERVAL) => {}
            }
        }
    }

    /// Returns the accounts with a balance below their floor, and the free models.
    async fn lists(&self) -> Result<ExhaustedAccounts, Error> {
        let settings = self.settings.get();
        let Some(greatest) = settings.greatest_floor() else { return Ok(ExhaustedAccounts::default()) };
        let balances = self.store.balances_below(greatest).await?;
        let exhausted = balances
            .into_iter()
            .filter(|balance| settings.floor_above(&balance.account, balance.credits).is_some());
        let accounts = exhausted.map(|balance| balance.account).collect();
        Ok(ExhaustedAccounts { accounts, free_models: settings.billing.free_models.clone() })
    }
}
