//! Creates warm containers.

use platform_core::id::SocketDirName;
use platform_runtime::random;
use runner_docker::{self as docker, ContainerSettings, First, SandboxSpec};
use runner_model::failpoint::Point;
use runner_store::WarmContainer;
use runner_workspace::Workspaces;

use super::{Error, Pool, snapshot::PoolTarget};
use crate::{context::EngineHandles, lease_clock::boot_now};

impl Pool<'_> {
    /// Creates a warm container from `template`. After a failure, its parts are removed at once, or later by its row.
    pub(super) async fn create(&self, template: &str, target: &PoolTarget) -> Result<WarmContainer, Error> {
        let EngineHandles { store, worker, lease, installation, .. } = self.engine;
        let warm = WarmContainer {
            container: format!("sluice-{installation}-warm-{:032x}", random::bits()),
            template: template.to_owned(),
            agent: target.agent_id.clone(),
            workspace: Workspaces::new_id(),
            listener: SocketDirName::from_random(random::bits()),
        };
        // The pool waits for a start permit like any run.
        let _permit = self.engine.starts.acquire().await;
        let since = boot_now();
        store.want_warm(&warm, worker, *lease).await?;
        self.extend_lease(since);
        Point::WarmWanted.reach();
        match self.create_parts(&warm, target).await {
            Ok(()) => Ok(warm),
            Err(error) => {
                // If this removal fails, the row leads a later one to the container.
                if store.mark_warm_leaving(&warm.container, worker).await? {
                    self.clear(&warm).await?;
                }
                Err(error)
            }
        }
    }

    async fn create_parts(&self, warm: &WarmContainer, target: &PoolTarget) -> Result<(), Error> {
        let EngineHandles { store, worker, docker, data_plane, workspaces, installation, .. } = self.engine;
        let workspaces = workspaces.sized(target.agent.disk);
        let reserved = workspaces.reserve()?;
        // Disk space must remain for a run that needs its own workspace.
        self.engine.workspaces.disk_space()?.enough().map_err(runner_workspace::Error::from)?;
        let workspace = workspaces.create_waiting(&warm.workspace).await?;
        drop(reserved);
        Point::WarmWorkspaceMade.reach();
        self.check_lease()?;
        let socket_dir = data_plane.reserve(&warm.listener).await?.path;
        let start_dir = workspace.start_dir().ok_or(Error::Lost)?.to_owned();
        let labels = [
            installation.as_str(),
            target.agent_id.as_str(),
            warm.template.as_str(),
            warm.workspace.as_str(),
        ];
        let spec = SandboxSpec {
            name: warm.container.clone(),
            image: target.image.clone(),
            first: First::Wait(start_dir),
            settings: ContainerSettings::of(&target.agent),
            labels: docker::warm_labels(labels),
            workspace: workspace.path().to_owned(),
            socket_dir,
        };
        self.check_lease()?;
        docker.wait(&spec).await?;
        Point::WarmStarted.reach();
        if store.mark_warm_ready(warm, worker).await? { Ok(()) } else { Err(Error::Lost) }
    }

    /// Fails once another process may have judged this process's warm containers as abandoned.
    fn check_lease(&self) -> Result<(), Error> {
        if boot_now() < self.held_until.get() { Ok(()) } else { Err(Error::Lost) }
    }
}
