//! Where things of a gateway are on this host. Whether they are there is another matter.

use std::path::PathBuf;

use platform_core::id::GatewayId;
use platform_runtime::settings::{Gateway, Settings};

/// Where things of one gateway are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    dir: PathBuf,
    url: Option<String>,
    token: Option<PathBuf>,
    slots: Option<PathBuf>,
}

impl Place {
    /// Those of gateway `id`, which is configured as `gateway`.
    pub(crate) fn of(settings: &Settings, id: &GatewayId, gateway: &Gateway) -> Self {
        Self {
            dir: settings.sandbox.gateway_dir.join(id.as_str()),
            url: gateway.url.clone(),
            token: gateway.token_file.clone(),
            slots: gateway.slots_file.clone(),
        }
    }

    /// Directory of what `sluice gateway up` makes; only we can enter it.
    pub(crate) fn dir(&self) -> &PathBuf {
        &self.dir
    }

    /// Its configuration, as the container has it.
    pub(crate) fn config(&self) -> PathBuf {
        self.dir.join("config")
    }

    /// Directory in which its container is heard, at a socket of this name.
    pub(crate) fn bridge(&self) -> PathBuf {
        self.dir.join("bridge")
    }

    /// Where it is spoken to, as an endpoint of the bridge.
    pub(crate) fn endpoint(&self) -> String {
        self.url.clone().unwrap_or_else(|| format!("unix:{}", self.bridge().join(SOCKET).display()))
    }

    /// File of its token.
    pub(crate) fn token(&self) -> PathBuf {
        self.token.clone().unwrap_or_else(|| self.dir.join("token"))
    }

    /// File of its slots.
    pub(crate) fn slots(&self) -> PathBuf {
        self.slots.clone().unwrap_or_else(|| self.dir.join("slots"))
    }
}

/// Name of the socket at which a gateway's container is heard.
pub(crate) const SOCKET: &str = "gateway.sock";
