//! Monitors managed gateways, as long as `sluice up` runs. Ends a gateway that exceeds its disk limit, where no file
//! system bounds it. Starts a gateway again after a reboot has unmounted its file system. Leaves a gateway alone while
//! a command holds its lock.

use std::time::Duration;

use platform_core::id::GatewayId;
use platform_runtime::{report, settings::Settings};
use runner_workspace::Exceeded;

use super::{Error, gateway::ManagedGateway};

/// Interval between checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Monitors all managed gateways of `settings`, for as long as it is polled.
pub async fn monitor(settings: &Settings) {
    let own: Vec<_> = settings.gateways.iter().filter(|(_, gateway)| gateway.is_managed()).collect();
    loop {
        for (id, _) in &own {
            if let Err(error) = check_one(settings, id).await {
                tracing::warn!(gateway = %id, error = report::chain(&error), "gateway not monitored");
            }
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

/// Action that a gateway needs.
enum Action {
    End(Exceeded),
    Resume,
}

async fn check_one(settings: &Settings, id: &GatewayId) -> Result<(), Error> {
    let managed = ManagedGateway::open(settings, id).await?;
    if needed_action(&managed).await?.is_none() {
        return Ok(());
    }
    let Some(_lock) = managed.try_lock()? else { return Ok(()) };
    // Another command may have held the lock until now.
    match needed_action(&managed).await? {
        Some(Action::End(why)) => {
            tracing::error!(gateway = %id, %why, "gateway ended: `sluice gateway check` says what to do");
            managed.end(Duration::ZERO).await
        }
        Some(Action::Resume) => {
            managed.resume().await?;
            tracing::info!(gateway = %id, "gateway started again after a reboot");
            Ok(())
        }
        None => Ok(()),
    }
}

async fn needed_action(managed: &ManagedGateway<'_>) -> Result<Option<Action>, Error> {
    Ok(match managed.container().await? {
        Some(found) if found.is_running => managed.disk().exceeded().await?.map(Action::End),
        Some(_ended) if managed.disk().is_unmounted()? => Some(Action::Resume),
        _ => None,
    })
}
