//! Names the reasons why a run cannot be a session of a gateway.

use std::{io, path::PathBuf, time::Duration};

use gateway_bridge::{DeviceError, InvalidEndpoint, InvalidHeaders, InvalidSession};
use platform_core::{
    code::{Code, Coded},
    id::{AccountId, GatewayId, InvalidId},
};
use platform_runtime::{
    settings::{NoGateway, token_secrets},
    trust::Exposure,
};

/// Reason why a run cannot be a session of a gateway.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No gateway of the run's agent serves the run's account.
    #[error(
        "none of the agent's gateways serves account {account}: [gateways.NAME] with `account = \"{account}\"`, or without one, does"
    )]
    ServesNot {
        /// Account of the run.
        account: AccountId,
    },
    /// The run was begun at a gateway that is not configured any more.
    #[error(transparent)]
    Unconfigured(#[from] NoGateway),
    /// A file cannot be read.
    #[error("cannot read {what} {}", path.display())]
    File {
        /// Content of the file.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: io::Error,
    },
    /// Other users can read or change a file that only this user may access.
    #[error(transparent)]
    Exposed(Exposure),
    /// A file has other content than expected.
    #[error("{} has no {what}", path.display())]
    NotOne {
        /// Expected content.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The gateway's address is invalid.
    #[error(transparent)]
    Endpoint(#[from] InvalidEndpoint),
    /// The key of this client cannot be read.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The name of its provider, or of the model, is invalid.
    #[error(transparent)]
    Name(#[from] InvalidId),
    /// The session cannot be named.
    #[error(transparent)]
    Session(#[from] InvalidSession),
    /// The headers that identify its calls cannot be sent.
    #[error(transparent)]
    Headers(#[from] InvalidHeaders),
    /// No token can be created for the run.
    #[error("no token can be made for the run")]
    Token(#[from] token_secrets::Error),
    /// No secret is configured that tokens are signed with.
    #[error(
        "gateway {0} is to send run tokens, and there is no proxy.token_secrets_file whose first secret signs them"
    )]
    NoSecret(GatewayId),
    /// All slots are leased, or none is known to the gateway.
    #[error("gateway {0} has no free slot")]
    NoSlot(GatewayId),
    /// The gateway does not listen at its endpoint.
    #[error("no gateway answers at {endpoint}: `sluice gateway up` starts one that runs here")]
    Unreachable {
        /// Endpoint of the gateway.
        endpoint: String,
        /// Cause of the failure.
        #[source]
        source: io::Error,
    },
    /// The gateway does not answer.
    #[error("gateway {gateway} did not answer within {} s", timeout.as_secs())]
    Unavailable {
        /// Name of the gateway.
        gateway: GatewayId,
        /// Timeout of the answer.
        timeout: Duration,
        /// Cause of the failure, if that is known.
        #[source]
        source: Option<gateway_bridge::Error>,
    },
    /// The gateway does not know this client.
    #[error("gateway {gateway} does not know this client: `sluice gateway pair {gateway}` makes it known")]
    Unpaired {
        /// Name of the gateway.
        gateway: GatewayId,
        /// Answer of the gateway.
        #[source]
        source: gateway_bridge::Error,
    },
    /// The gateway refuses the connection or the request.
    #[error("gateway {gateway} cannot be used")]
    Unusable {
        /// Name of the gateway.
        gateway: GatewayId,
        /// Cause of the failure.
        #[source]
        source: gateway_bridge::Error,
    },
}

impl Coded for Error {
    fn code(&self) -> Code {
        Code::GatewayFailed
    }
}

impl Error {
    /// Returns whether the caller of the run may read the reason, and can fix it: the cause is in the request, not on
    /// this host.
    pub const fn is_of_the_request(&self) -> bool {
        matches!(
            self,
            Self::ServesNot { .. }
                | Self::NoSlot(_)
                | Self::Unusable {
                    source: gateway_bridge::Error::InvalidTurn { .. }
                        | gateway_bridge::Error::TooLarge { .. },
                    ..
                }
        )
    }

    /// Returns whether a later attempt may succeed.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::NoSlot(_))
    }
}
