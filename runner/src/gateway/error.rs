//! Why a run cannot be a session of a gateway.

use std::{io, path::PathBuf, time::Duration};

use gateway_bridge::{DeviceError, InvalidEndpoint, InvalidHeaders, InvalidSession};
use platform_core::id::{AccountId, GatewayId, InvalidId};
use platform_runtime::{
    settings::{NoGateway, token_secrets},
    trust::Exposure,
};

/// Why a run cannot be a session of a gateway.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// None of its agent's gateways is for its account.
    #[error(
        "none of the agent's gateways serves account {account}: [gateways.NAME] with `account = \"{account}\"`, or without one, does"
    )]
    ServesNot {
        /// Who pays.
        account: AccountId,
    },
    /// The run was begun at a gateway that is not configured any more.
    #[error(transparent)]
    Unconfigured(#[from] NoGateway),
    /// A file is not to be had.
    #[error("cannot read {what} {}", path.display())]
    File {
        /// What is in it.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Other users can read or change what only this one should.
    #[error(transparent)]
    Exposed(Exposure),
    /// A file has something else in it.
    #[error("{} has no {what}", path.display())]
    NotOne {
        /// What should be in it.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// Its address is none.
    #[error(transparent)]
    Endpoint(#[from] InvalidEndpoint),
    /// The key of this client is not to be had.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The name of its provider, or of the model, is none.
    #[error(transparent)]
    Name(#[from] InvalidId),
    /// The session has no name.
    #[error(transparent)]
    Session(#[from] InvalidSession),
    /// What its calls are known by cannot be sent.
    #[error(transparent)]
    Headers(#[from] InvalidHeaders),
    /// No token can be made for the run.
    #[error("the run can have no token")]
    Token(#[from] token_secrets::Error),
    /// There is no secret that tokens are signed with.
    #[error(
        "gateway {0} is to send run tokens, and there is no proxy.token_secrets_file whose first secret signs them"
    )]
    NoSecret(GatewayId),
    /// All slots are leased, or none is known to the gateway.
    #[error("gateway {0} has no slot that is free")]
    NoSlot(GatewayId),
    /// Nobody is heard where it should be.
    #[error("nobody answers at {endpoint}: `sluice gateway up` starts one that runs here")]
    Unreachable {
        /// Where.
        endpoint: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It does not answer.
    #[error("gateway {gateway} did not answer within {} s", patience.as_secs())]
    Away {
        /// Which.
        gateway: GatewayId,
        /// How long it had.
        patience: Duration,
        /// What was in the way, if that is known.
        #[source]
        source: Option<gateway_bridge::Error>,
    },
    /// It does not know this client.
    #[error("gateway {gateway} does not know this client: `sluice gateway pair {gateway}` makes it known")]
    Unpaired {
        /// Which.
        gateway: GatewayId,
        /// What it said.
        #[source]
        source: gateway_bridge::Error,
    },
    /// It does not want to speak to us, or not to do what is asked.
    #[error("gateway {gateway} cannot be used")]
    Unusable {
        /// Which.
        gateway: GatewayId,
        /// Why not.
        #[source]
        source: gateway_bridge::Error,
    },
}

impl Error {
    /// Whether whoever ordered the run may read why, and can mend it: it is of the order, not of this host.
    pub(crate) const fn is_of_the_order(&self) -> bool {
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

    /// Whether it may be possible a little later.
    pub(crate) const fn is_away(&self) -> bool {
        matches!(self, Self::Away { .. } | Self::NoSlot(_))
    }
}
