//! Names the reasons why a managed gateway is not in the requested state.

use std::{io, path::PathBuf};

use platform_core::{
    code::{Code, Coded},
    id::GatewayId,
};
use platform_runtime::{settings::NoGateway, socket};
use runner_control_client as data_plane;
use runner_docker as docker;
use runner_workspace::{self as workspace, Exceeded};

use super::{Finding, lifecycle::START_TIMEOUT};

/// Reason why a gateway is not in the requested state.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The gateway does not run.
    #[error("the gateway is down: start it with `sluice gateway up {0}`")]
    Down(GatewayId),
    /// The gateway differs from its settings in what it takes at its start alone.
    #[error("its settings differ in {}: restart it with `sluice gateway up {id}`", changed.join(", "))]
    NeedsRestart {
        /// The gateway.
        id: GatewayId,
        /// Paths of the settings.
        changed: Vec<String>,
    },
    /// The agents that people made cannot be read.
    #[error(transparent)]
    Store(#[from] runner_store::Error),
    /// No gateway of this name is configured.
    #[error(transparent)]
    Unknown(#[from] NoGateway),
    /// The gateway runs elsewhere: its settings name an address.
    #[error("gateway {id} does not run here but at {url}: start it there")]
    Elsewhere {
        /// Name of the gateway.
        id: GatewayId,
        /// Address in its settings.
        url: String,
    },
    /// No model is known that the gateway's agents may call.
    #[error(
        "there is no model for gateway {0}: name some in `models` of an agent with `gateways = [\"{0}\"]`, or start the proxy and its upstream"
    )]
    NoModel(GatewayId),
    /// The configuration that the gateway would have is not safe.
    #[error("gateway {id} is not started like this: {}", list(.findings))]
    Unsafe {
        /// Name of the gateway.
        id: GatewayId,
        /// Defects of that configuration; at least one.
        findings: Vec<Finding>,
    },
    /// An operation on a file or directory failed.
    #[error("cannot {action} {}", path.display())]
    File {
        /// Operation that failed, as a verb.
        action: &'static str,
        /// Path that it was applied to.
        path: PathBuf,
        /// Cause reported by the system.
        #[source]
        source: io::Error,
    },
    /// A directory of the gateway cannot be created, or is not private.
    #[error(transparent)]
    Dir(#[from] socket::Error),
    /// The gateway's token or slots cannot be read.
    #[error(transparent)]
    Secret(#[from] crate::Error),
    /// The workspace that the gateway writes to failed.
    #[error(transparent)]
    Disk(#[from] workspace::Error),
    /// Docker failed.
    #[error(transparent)]
    Docker(#[from] docker::Error),
    /// The data plane failed.
    #[error(transparent)]
    DataPlane(#[from] data_plane::Error),
    /// The disk that the gateway writes to is full.
    #[error(
        "gateway {id} is not started: {exceeded}; remove what its agents left in {}, or all of it (`sluice gateway down {id} --purge`)",
        state.display()
    )]
    Full {
        /// Name of the gateway.
        id: GatewayId,
        /// Bound that its disk exceeds.
        exceeded: Exceeded,
        /// Directory of its conversations, and of its agents' files.
        state: PathBuf,
    },
    /// The gateway runs, and did not answer in time.
    #[error("gateway {id} did not answer within {} s; its output ends:\n{tail}", START_TIMEOUT.as_secs())]
    Silent {
        /// Name of the gateway.
        id: GatewayId,
        /// Last lines of its output; empty if they could not be read.
        tail: String,
    },
    /// The gateway ended before it answered.
    #[error("gateway {id} has ended; its output ends:\n{tail}")]
    Ended {
        /// Name of the gateway.
        id: GatewayId,
        /// Last lines of its output; empty if they could not be read.
        tail: String,
    },
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Unknown(_) | Self::Elsewhere { .. } => Code::GatewayMisused,
            Self::Unsafe { .. } | Self::Full { .. } | Self::NeedsRestart { .. } => Code::GatewayRefused,
            Self::Down(_) => Code::GatewayUnavailable,
            Self::Store(error) => error.code(),
            Self::Disk(_) | Self::Docker(_) | Self::DataPlane(_) | Self::NoModel(_) => {
                Code::GatewayUnavailable
            }
            Self::File { .. } | Self::Dir(_) | Self::Secret(_) | Self::Silent { .. } | Self::Ended { .. } => {
                Code::GatewayFailed
            }
        }
    }
}

fn list(findings: &[Finding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
