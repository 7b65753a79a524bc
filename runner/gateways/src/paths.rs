//! Locates a gateway's files and sockets on this host. They need not exist.

use std::{collections::BTreeMap, io, path::PathBuf, time::Duration};

use gateway_bridge::Endpoint;
use platform_core::id::{GatewayId, WorkspaceId};
use platform_runtime::{
    settings::{Gateway, Settings},
    socket,
};
use runner_workspace as workspace;
use tokio::{net::TcpStream, time::timeout};

use super::{Error, secrets};

/// Longest wait for a connection that only checks whether the gateway listens.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Paths and endpoint of one gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayPaths {
    dir: PathBuf,
    url: Option<String>,
    token: Option<PathBuf>,
    slots: Option<PathBuf>,
}

impl GatewayPaths {
    /// Returns the paths of gateway `id`, which is configured as `gateway`.
    pub(crate) fn of(settings: &Settings, id: &GatewayId, gateway: &Gateway) -> Self {
        Self {
            dir: settings.sandbox.gateway_dir.join(id.as_str()),
            url: gateway.url.clone(),
            token: gateway.token_file.clone(),
            slots: gateway.slots_file.clone(),
        }
    }

    /// Returns the paths of all gateways.
    pub fn of_all(settings: &Settings) -> BTreeMap<GatewayId, Self> {
        let paths =
            settings.gateways.iter().map(|(id, gateway)| (id.clone(), Self::of(settings, id, gateway)));
        paths.collect()
    }

    /// Returns the paths of a managed gateway with the directory `g` in `dir`.
    #[cfg(test)]
    pub(crate) fn below(dir: &std::path::Path) -> Self {
        Self { dir: dir.join("g"), url: None, token: None, slots: None }
    }

    /// Checks that the gateway listens at its endpoint, and that its token can be read.
    pub async fn reach(&self) -> Result<(), Error> {
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
        let connected = timeout(CONNECT_TIMEOUT, connected)
            .await
            .unwrap_or_else(|_late| Err(io::ErrorKind::TimedOut.into()));
        connected.map_err(|source| Error::Unreachable { endpoint: self.endpoint(), source })
    }

    /// Returns the directory of the files that `sluice gateway up` creates; only this user can enter it.
    pub(crate) fn dir(&self) -> &PathBuf {
        &self.dir
    }

    /// Returns the directory of its configuration, which the container reads.
    pub(crate) fn config(&self) -> PathBuf {
        self.dir.join("config")
    }

    /// Returns the directory of the one workspace that its container writes to.
    pub(crate) fn disk(&self) -> PathBuf {
        self.dir.join("disk")
    }

    /// Returns the directory in which its container listens, at a socket named `SOCKET`.
    pub(crate) fn bridge(&self) -> PathBuf {
        self.in_workspace(BRIDGE)
    }

    /// Returns the directory of its conversations, and of its agents' files.
    pub fn state(&self) -> PathBuf {
        self.in_workspace(STATE)
    }

    fn in_workspace(&self, part: &str) -> PathBuf {
        workspace::tree(&self.disk(), workspace_id().as_str()).join(part)
    }

    /// Returns the address at which it is reached, as an endpoint of the bridge.
    pub(crate) fn endpoint(&self) -> String {
        self.url.clone().unwrap_or_else(|| format!("unix:{}", self.bridge().join(SOCKET).display()))
    }

    /// Returns the file of its token.
    pub(crate) fn token(&self) -> PathBuf {
        self.token.clone().unwrap_or_else(|| self.dir.join("token"))
    }

    /// Returns the file of its slots.
    pub(crate) fn slots(&self) -> PathBuf {
        self.slots.clone().unwrap_or_else(|| self.dir.join("slots"))
    }
}

/// Name of the directory in a gateway's workspace that holds its socket.
pub const BRIDGE: &str = "bridge";
/// Name of the directory in a gateway's workspace for all else that it writes.
pub const STATE: &str = "state";

/// Returns the id of a gateway's workspace: each gateway has a directory of workspaces for itself, and one in it.
pub fn workspace_id() -> WorkspaceId {
    WorkspaceId::from_random(0)
}

/// Name of the socket at which a gateway's container listens.
pub const SOCKET: &str = "gateway.sock";
