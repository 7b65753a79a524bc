//! Holds the connections, settings and permits that all runs of this process share.

use std::sync::Arc;

use platform_core::{id::InstallationId, limit::Millis};
use platform_runtime::settings::{Accounts, Settings};
use tokio::sync::Semaphore;

use crate::{
    data_plane::DataPlane,
    gateway::Links,
    observer::Observer,
    sandbox::docker::Docker,
    store::{Store, Worker},
    workspace::Workspaces,
};

/// Connections, settings and permits that runs of this process share.
#[derive(Debug, Clone)]
pub(crate) struct EngineHandles {
    pub(crate) data_plane: DataPlane,
    pub(crate) docker: Docker,
    pub(crate) store: Store,
    pub(crate) worker: Worker,
    /// Time after the last renewal at which the runs of this process may be taken over.
    pub(crate) lease: Millis,
    pub(crate) workspaces: Workspaces,
    pub(crate) installation: InstallationId,
    /// Limits that the configuration sets for accounts.
    pub(crate) accounts: Accounts,
    /// Connections to the gateways in which runs may be sessions.
    pub(crate) gateways: Arc<Links>,
    /// Permits for runs that are being provisioned and started. Docker starts many containers at once more slowly than
    /// one after the other.
    pub(crate) starts: Arc<Semaphore>,
    pub(crate) observer: Observer,
}

impl EngineHandles {
    /// Builds the handles from `settings`, a Docker that answers, an open store and a directory for workspaces.
    pub(crate) fn of(settings: &Settings, docker: Docker, store: Store, workspaces: Workspaces) -> Self {
        Self {
            data_plane: DataPlane::at(&settings.proxy.control_socket()),
            docker,
            store,
            worker: Worker::this_process(),
            lease: settings.worker.lease,
            workspaces,
            installation: settings.sandbox.installation.clone(),
            accounts: settings.accounts.clone(),
            gateways: Arc::new(Links::of(settings)),
            starts: Arc::new(Semaphore::new(settings.worker.starts as usize)),
            observer: Observer::default(),
        }
    }
}
