//! Opens a gateway that runs here, with all that acts on it.

use platform_core::id::{GatewayId, InstallationId};
use platform_runtime::settings::{Gateway, Settings};
use runner_control_client::DataPlane;
use runner_docker::Docker;

use super::Error;
use crate::GatewayPaths;

/// A managed gateway, with the clients that act on it.
#[derive(Debug)]
pub struct ManagedGateway<'s> {
    pub(super) settings: &'s Settings,
    pub(super) id: &'s GatewayId,
    pub(super) gateway: &'s Gateway,
    pub(super) paths: GatewayPaths,
    pub(super) docker: Docker,
    pub(super) data_plane: DataPlane,
}

impl<'s> ManagedGateway<'s> {
    /// Opens the gateway of this name.
    pub async fn open(settings: &'s Settings, id: &GatewayId) -> Result<Self, Error> {
        let (id, gateway) = settings.gateway(id)?;
        if let Some(url) = &gateway.url {
            return Err(Error::Elsewhere { id: id.clone(), url: url.clone() });
        }
        let paths = GatewayPaths::of(settings, id, gateway);
        let docker = Docker::connect(&settings.sandbox.docker_socket).await?;
        let data_plane = DataPlane::at(&settings.proxy.control_socket());
        Ok(Self { settings, id, gateway, paths, docker, data_plane })
    }

    /// Returns the name of the gateway's container.
    pub(super) fn container_name(&self) -> String {
        container(&self.settings.sandbox.installation, self.id.as_str())
    }
}

/// Returns the name of a gateway's container.
pub fn container(installation: &InstallationId, gateway: &str) -> String {
    format!("sluice-{installation}-gateway-{gateway}")
}
