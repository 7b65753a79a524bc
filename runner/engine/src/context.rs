//! Holds the connections, settings and permits that all runs of this process share.

use std::sync::Arc;

use platform_core::{id::InstallationId, limit::Millis};
use platform_runtime::settings::Settings;
use runner_control_client::DataPlane;
use runner_docker::Docker;
use runner_gateways::GatewayPool;
use runner_store::{Store, Worker};
use runner_workspace::Workspaces;
use tokio::sync::Semaphore;

use crate::{
    current_settings::CurrentSettings,
    observer::Observer,
    relay::{GitHubAccess, Relays},
};

/// Connections, settings and permits that all runs of this process share.
#[derive(Debug, Clone)]
pub struct EngineHandles {
    /// Client of the data plane's control socket.
    pub data_plane: DataPlane,
    /// Client of the Docker that runs the containers.
    pub docker: Docker,
    /// Store of the runs, their resources and their events.
    pub store: Store,
    /// Worker for which this process holds leases.
    pub worker: Worker,
    /// Time after the last renewal at which the runs of this process may be taken over.
    pub lease: Millis,
    /// Workspaces below this host's root, for runs and warm containers.
    pub workspaces: Workspaces,
    /// Name of this installation, which is part of container names.
    pub installation: InstallationId,
    /// Configuration. `sluice up` replaces it with that of its catalog, which follows a reload.
    pub settings: CurrentSettings,
    /// Connections to the gateways at which runs are turns.
    pub gateways: Arc<GatewayPool>,
    /// Permits for runs that are being provisioned and started, because Docker starts many containers at once more
    /// slowly than one after the other.
    pub starts: Arc<Semaphore>,
    /// GitHub, for the relays of runs.
    pub github: Arc<GitHubAccess>,
    /// Observer that reports the runs of this process to operators.
    pub observer: Observer,
}

impl EngineHandles {
    /// Builds the handles from `settings`, a Docker that answers, an open store and a directory for workspaces.
    pub fn of(settings: &Settings, docker: Docker, store: Store, workspaces: Workspaces) -> Self {
        Self {
            data_plane: DataPlane::at(&settings.proxy.control_socket()),
            docker,
            store,
            worker: Worker::this_process(),
            lease: settings.worker.lease_duration,
            workspaces,
            installation: settings.sandbox.installation.clone(),
            settings: CurrentSettings::of(settings),
            gateways: Arc::new(GatewayPool::of(settings)),
            starts: Arc::new(Semaphore::new(settings.worker.max_concurrent_starts as usize)),
            github: Arc::new(GitHubAccess::new(&settings.github, None)),
            observer: Observer::default(),
        }
    }

    /// Returns the relays of this process's runs, under the latest configuration.
    pub(crate) fn relays(&self) -> Relays {
        Relays::of(&self.settings.get(), &self.store, &self.github)
    }
}
