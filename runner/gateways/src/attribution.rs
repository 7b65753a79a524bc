//! Attributes a gateway's calls to runs: registers the run at the proxy before the turn begins, and sends the gateway
//! what identifies it.
//!
//! Nothing that a session could choose takes part in this. A trace id is 16 fresh random bytes. The proxy ensures that
//! a slot belongs to one run alone for as long as the run is open. A token is signed. All of them end with the run.

use std::time::Duration;

use gateway_bridge::{Attribution, OutboundHeaders};
use platform_core::{
    control::Correlation,
    grant::RunGrant,
    id::{GatewayProvider, RunId},
    name::header,
};
use platform_runtime::{random, retry::Transient, settings};
use runner_control_client::{self as data_plane, DataPlane};

use super::{Error, GatewayConnection, secrets};

/// Reason why a run's calls cannot be distinguished from others'.
#[derive(Debug, thiserror::Error)]
pub enum Unattributable {
    /// The proxy did not register the run.
    #[error("the data plane failed")]
    DataPlane(#[from] data_plane::Error),
    /// The gateway, or a secret that it needs, cannot be used.
    #[error(transparent)]
    Gateway(#[from] Error),
}

impl Transient for Unattributable {
    const RETRY_TIMEOUT: Duration = data_plane::Error::RETRY_TIMEOUT;

    fn is_transient(&self) -> bool {
        match self {
            Self::DataPlane(error) => error.is_transient(),
            Self::Gateway(error) => error.is_transient(),
        }
    }
}

/// Identification that is sent to a gateway with a turn, and the slot to release once the turn has certainly ended.
#[derive(Debug)]
pub struct Registered {
    /// Identification to send with the turn.
    pub attribution: Attribution,
    /// Slot that the run has leased; absent if its calls are attributed in another way.
    pub slot: Option<Correlation>,
}

impl Registered {
    const fn without_slot(attribution: Attribution) -> Self {
        Self { attribution, slot: None }
    }
}

/// Attributes the calls that the gateway of `connection` makes in a turn to the run of `grant`, which is open at the
/// proxy until it expires.
pub async fn register(
    connection: &GatewayConnection,
    data_plane: &DataPlane,
    grant: &RunGrant,
) -> Result<Registered, Unattributable> {
    let run_id = &grant.run_id;
    let attribution = match connection.gateway.attribution {
        settings::Attribution::Slot => return lease_slot(connection, data_plane, run_id).await,
        settings::Attribution::Trace => register_trace(data_plane, run_id).await?,
        settings::Attribution::Headers => Attribution::Headers(run_token_headers(connection, grant)?),
        settings::Attribution::Plugin => Attribution::Plugin(run_token_headers(connection, grant)?),
    };
    Ok(Registered::without_slot(attribution))
}

async fn register_trace(data_plane: &DataPlane, run_id: &RunId) -> Result<Attribution, Unattributable> {
    loop {
        let trace = random::bits();
        let span = random::bits() >> 64;
        // Neither number may be zero, which is as unlikely as any other value.
        let Ok(parent) = format!("00-{trace:032x}-{span:016x}-01").parse() else { continue };
        data_plane.correlate(run_id, Correlation::Trace(trace)).await?;
        return Ok(Attribution::Trace(parent));
    }
}

/// Leases the first free slot after a random one. The proxy knows which slots are taken.
async fn lease_slot(
    connection: &GatewayConnection,
    data_plane: &DataPlane,
    run_id: &RunId,
) -> Result<Registered, Unattributable> {
    let slots = secrets::slots(&connection.paths.slots())?;
    let first = random::below(slots.len());
    for index in (first..slots.len()).chain(0..first) {
        match data_plane.correlate(run_id, slots[index]).await {
            Err(error) if error.is_taken() => {}
            Err(error) => return Err(error.into()),
            Ok(()) => {
                let provider =
                    GatewayProvider::parse(&connection.gateway.slot_provider(index)).map_err(Error::from)?;
                return Ok(Registered {
                    attribution: Attribution::Slot { provider },
                    slot: Some(slots[index]),
                });
            }
        }
    }
    Err(Error::NoSlot(connection.id.clone()).into())
}

fn run_token_headers(connection: &GatewayConnection, grant: &RunGrant) -> Result<OutboundHeaders, Error> {
    let token = connection.run_token(grant)?;
    Ok(OutboundHeaders::new([(header::RUN_TOKEN, token.expose())])?)
}
