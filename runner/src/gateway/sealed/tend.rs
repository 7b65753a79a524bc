//! Gateways that run here, as long as `sluice up` is there: one that has written more than it may, where only we see that, is ended; one
//! whose file system went with the machine comes back. Whoever is at work on one is not disturbed.

use std::time::Duration;

use platform_core::id::GatewayId;
use platform_runtime::{report, settings::Settings};

use super::{Error, life::Sealed};

/// Between two looks.
const PAUSE: Duration = Duration::from_secs(5);

/// Looks after all gateways of `settings`, for as long as it is polled.
pub(crate) async fn tend(settings: &Settings) {
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

async fn tend_one(settings: &Settings, id: &GatewayId) -> Result<(), Error> {
    let sealed = Sealed::open(settings, id).await?;
    let Some(_alone) = sealed.alone_at_once()? else { return Ok(()) };
    match sealed.found().await? {
        Some(found) if found.is_running => match sealed.disk().exceeded().await? {
            Some(exceeded) => {
                tracing::error!(gateway = %id, why = %exceeded, "the gateway is ended: `sluice gateway check` says what to do");
                sealed.end(Duration::ZERO).await
            }
            None => Ok(()),
        },
        Some(_ended) if sealed.disk().is_away()? => {
            sealed.resume().await?;
            tracing::info!(gateway = %id, "the gateway is started again, after the machine was");
            Ok(())
        }
        _ => Ok(()),
    }
}
