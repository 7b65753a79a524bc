//! Monitors gateways that run here, as long as `sluice up` runs. A gateway that has written more than it may is ended,
//! where no file system bounds it. One whose file system was unmounted by a reboot is started again. A command that is
//! at work on a gateway is not disturbed.

use std::time::Duration;

use platform_core::id::GatewayId;
use platform_runtime::{report, settings::Settings};
use runner_workspace::Exceeded;

use super::{Error, lifecycle::ManagedGateway};

/// Interval between checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Monitors all gateways of `settings`, for as long as it is polled.
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
    // Another command may have been at work until now.
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
    Ok(match managed.found().await? {
        Some(found) if found.is_running => managed.disk().exceeded().await?.map(Action::End),
        Some(_ended) if managed.disk().is_unmounted()? => Some(Action::Resume),
        _ => None,
    })
}
