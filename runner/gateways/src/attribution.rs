//! Attributes a gateway's calls to runs: registers the run at the proxy before the turn begins, and sends the gateway
//! what identifies it.
//!
//! Nothing that a session could choose has a part in it. A trace id is 16 fresh random bytes. The proxy ensures that a
//! slot belongs to one run alone for as long as the run is open. A token is signed. All of them end with the run.

use std::time::Duration;

use gateway_bridge::{Attribution, OutboundHeaders};
use platform_core::{
    control::Correlation,
    id::{GatewayProvider, RunId},
    name::header,
    token::UnixSeconds,
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

/// Identification that is sent to a gateway with a turn, and the slot to return when the turn is certainly over.
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

/// Attributes calls that `link`'s gateway makes in a turn of `run_id` to that run, which is open at the proxy until
/// `expiry`.
pub async fn register(
    link: &GatewayConnection,
    data_plane: &DataPlane,
    run_id: &RunId,
    expiry: UnixSeconds,
) -> Result<Registered, Unattributable> {
    let attribution = match link.gateway.attribution {
        settings::Attribution::Slot => return slot(link, data_plane, run_id).await,
        settings::Attribution::Trace => trace(data_plane, run_id).await?,
        settings::Attribution::Headers => Attribution::Headers(headers(link, run_id, expiry)?),
        settings::Attribution::Plugin => Attribution::Plugin(headers(link, run_id, expiry)?),
    };
    Ok(Registered::without_slot(attribution))
}

async fn trace(data_plane: &DataPlane, run_id: &RunId) -> Result<Attribution, Unattributable> {
    loop {
        let trace = random::bits();
        let span = random::bits() >> 64;
        // Neither may be zero, which is as unlikely as any other value.
        let Ok(parent) = format!("00-{trace:032x}-{span:016x}-01").parse() else { continue };
        data_plane.correlate(run_id, Correlation::Trace(trace)).await?;
        return Ok(Attribution::Trace(parent));
    }
}

/// Leases the first free slot: the proxy knows which are taken.
async fn slot(
    link: &GatewayConnection,
    data_plane: &DataPlane,
    run_id: &RunId,
) -> Result<Registered, Unattributable> {
    let slots = secrets::slots(&link.paths.slots())?;
    let first = random::below(slots.len());
    for at in (first..slots.len()).chain(0..first) {
        match data_plane.correlate(run_id, slots[at]).await {
            Err(error) if error.is_taken() => {}
            Err(error) => return Err(error.into()),
            Ok(()) => {
                let provider =
                    GatewayProvider::parse(&link.gateway.slot_provider(at)).map_err(Error::from)?;
                return Ok(Registered { attribution: Attribution::Slot { provider }, slot: Some(slots[at]) });
            }
        }
    }
    Err(Error::NoSlot(link.id.clone()).into())
}

fn headers(link: &GatewayConnection, run_id: &RunId, expiry: UnixSeconds) -> Result<OutboundHeaders, Error> {
    let token = link.run_token(run_id, expiry)?;
    Ok(OutboundHeaders::new([(header::RUN_TOKEN, token.expose())])?)
}
