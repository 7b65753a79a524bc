//! Where things of a gateway are on this host. Whether they are there is another matter.

use std::{collections::BTreeMap, io, path::PathBuf, time::Duration};

use gateway_bridge::Endpoint;
use platform_core::id::{GatewayId, WorkspaceId};
use platform_runtime::{
    settings::{Gateway, Settings},
    socket,
};
use tokio::{net::TcpStream, time::timeout};

use super::{Error, secrets};
use crate::workspace;

/// How long it may take to accept a connection, for whoever only looks.
const CONNECT: Duration = Duration::from_secs(2);

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

    /// Those of all gateways.
    pub(crate) fn of_all(settings: &Settings) -> BTreeMap<GatewayId, Self> {
        let place = |(id, gateway): (&GatewayId, &Gateway)| (id.clone(), Self::of(settings, id, gateway));
        settings.gateways.iter().map(place).collect()
    }

    /// Those of a sealed gateway whose directory is `dir`'s `g`.
    #[cfg(test)]
    pub(crate) fn below(dir: &std::path::Path) -> Self {
        Self { dir: dir.join("g"), url: None, token: None, slots: None }
    }

    /// Whether somebody is heard where it is, and its token can be read.
    pub(crate) async fn reach(&self) -> Result<(), Error> {
        secrets::token(&self.token())?;
        let endpoint: Endpoint = self.endpoint().parse()?;
        let connected = async {
            match &endpoint {
                Endpoint::Unix(path) => socket::connect(path).await.map(drop),
                Endpoint::Tcp { host, port } | Endpoint::Tls { host, port } => {
                    TcpStream::connect((host.as_str(), *port)).await.map(drop)
                }
            }
        };
        let connected =
            timeout(CONNECT, connected).await.unwrap_or_else(|_late| Err(io::ErrorKind::TimedOut.into()));
        connected.map_err(|source| Error::Unreachable { endpoint: self.endpoint(), source })
    }

    /// Directory of what `sluice gateway up` makes; only we can enter it.
    pub(crate) fn dir(&self) -> &PathBuf {
        &self.dir
    }

    /// Its configuration, as the container has it.
    pub(crate) fn config(&self) -> PathBuf {
        self.dir.join("config")
    }

    /// Directory of the one workspace that its container writes to.
    pub(crate) fn disk(&self) -> PathBuf {
        self.dir.join("disk")
    }

    /// Directory in which its container is heard, at a socket of this name.
    pub(crate) fn bridge(&self) -> PathBuf {
        self.written(BRIDGE)
    }

    /// Directory of its conversations, and of its agents' files.
    pub(crate) fn state(&self) -> PathBuf {
        self.written(STATE)
    }

    fn written(&self, part: &str) -> PathBuf {
        workspace::tree(&self.disk(), workspace_id().as_str()).join(part)
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

/// Directories of a gateway's workspace: where it is heard, and all else that it writes.
pub(crate) const BRIDGE: &str = "bridge";
pub(crate) const STATE: &str = "state";

/// Each gateway has a directory of workspaces for itself, and one in it.
pub(crate) fn workspace_id() -> WorkspaceId {
    WorkspaceId::from_random(0)
}

/// Name of the socket at which a gateway's container is heard.
pub(crate) const SOCKET: &str = "gateway.sock";
