//! Names the reasons why a gateway that runs here is not in the requested state.

use std::{io, path::PathBuf};

use platform_core::id::GatewayId;
use platform_runtime::{settings::NoGateway, socket};
use runner_control_client as data_plane;
use runner_docker as docker;
use runner_workspace::{self as workspace, Exceeded};

use super::{Finding, life::START};

/// Reason why a gateway is not in the requested state.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Unknown(#[from] NoGateway),
    #[error("gateway {id} does not run here but at {url}: start it there")]
    Elsewhere { id: GatewayId, url: String },
    #[error(
        "there is no model for gateway {0}: name some in `models` of an agent with `gateways = [\"{0}\"]`, or start the proxy and its upstream"
    )]
    NoModel(GatewayId),
    #[error("gateway {id} is not started like this: {}", list(.findings))]
    Unsafe { id: GatewayId, findings: Vec<Finding> },
    #[error("cannot {action} {}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Dir(#[from] socket::Error),
    #[error(transparent)]
    Secret(#[from] crate::Error),
    #[error(transparent)]
    Disk(#[from] workspace::Error),
    #[error(transparent)]
    Docker(#[from] docker::Error),
    #[error(transparent)]
    DataPlane(#[from] data_plane::Error),
    #[error(
        "gateway {id} is not started: {exceeded}; remove what its agents left in {}, or all of it (`sluice gateway down {id} --purge`)",
        state.display()
    )]
    Full { id: GatewayId, exceeded: Exceeded, state: PathBuf },
    #[error("gateway {id} did not answer within {} s; its output ends:\n{tail}", START.as_secs())]
    Silent { id: GatewayId, tail: String },
    #[error("gateway {id} has ended; its output ends:\n{tail}")]
    Ended { id: GatewayId, tail: String },
}

fn list(findings: &[Finding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
