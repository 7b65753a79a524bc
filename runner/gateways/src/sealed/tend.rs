//! Monitors gateways that run here, as long as `sluice up` runs. A gateway that has written more than it may is ended,
//! where no file system bounds it. One whose file system was unmounted by a reboot is started again. A command that is
//! at work on a gateway is not disturbed.

use std::time::Duration;

use platform_core::id::GatewayId;
use platform_runtime::{report, settings::Settings};
use runner_workspace::Exceeded;

use super::{Error, life::Sealed};

/// Interval between checks.
const PAUSE: Duration = Duration::from_secs(5);

/// Monitors all gateways of `settings`, for as long as it is polled.
pub async fn tend(settings: &Settings) {
    let own: Vec<_> = settings.gateways.iter().filter(|(_, gateway)| gateway.is_sealed()).collect();
    loop {
        for (id, _) in &own {
            if let Err(error) = tend_one(settings, id).await {
                tracing::warn!(gateway = %id, error = report::chain(&error), "the gateway is not looked after");
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Action that a gateway needs.
enum Need {
    End(Exceeded),
    Resume,
}

async fn tend_one(settings: &Settings, id: &GatewayId) -> Result<(), Error> {
    let sealed = Sealed::open(settings, id).await?;
    if need(&sealed).await?.is_none() {
        return Ok(());
    }
    let Some(_alone) = sealed.alone_at_once()? else { return Ok(()) };
    // Another command may have been at work until now.
    match need(&sealed).await? {
        Some(Need::End(why)) => {
            tracing::error!(gateway = %id, %why, "the gateway is ended: `sluice gateway check` says what to do");
            sealed.end(Duration::ZERO).await
        }
        Some(Need::Resume) => {
            sealed.resume().await?;
            tracing::info!(gateway = %id, "the gateway is started again, after the machine was");
            Ok(())
        }
        None => Ok(()),
    }
}

async fn need(sealed: &Sealed<'_>) -> Result<Option<Need>, Error> {
    Ok(match sealed.found().await? {
        Some(found) if found.is_running => sealed.disk().exceeded().await?.map(Need::End),
        Some(_ended) if sealed.disk().is_away()? => Some(Need::Resume),
        _ => None,
    })
}
