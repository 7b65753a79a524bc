//! Creates warm containers.

use platform_core::id::SocketDirName;
use platform_runtime::random;
use runner_docker::{self as docker, First, Limits, SandboxSpec};
use runner_model::failpoint::Point;
use runner_store::WarmContainer;
use runner_workspace::Workspaces;

use super::{Error, Pool, Want};
use crate::{context::EngineHandles, lease_clock::boot_now};

impl Pool<'_> {
    /// Creates a warm container from `template`. What this leaves behind when it fails is removed at once, or later by
    /// its row.
    pub(super) async fn make(&self, template: &str, want: &Want) -> Result<WarmContainer, Error> {
        let EngineHandles { store, worker, lease, installation, .. } = self.host;
        let warm = WarmContainer {
            container: format!("sluice-{installation}-warm-{:032x}", random::bits()),
            template: template.to_owned(),
            agent: want.agent.clone(),
            workspace: Workspaces::new_id(),
            listener: SocketDirName::from_random(random::bits()),
        };
        // The pool waits for a start permit like any run.
        let _place = self.host.starts.acquire().await;
        let since = boot_now();
        store.want_warm(&warm, worker, *lease).await?;
        self.sure_from(since);
        Point::WarmWanted.reach();
        match self.make_parts(&warm, want).await {
            Ok(()) => Ok(warm),
            Err(error) => {
                // Its row finds it again if the removal does not succeed now.
                if store.warm_leaves(&warm.container, worker).await? {
                    self.clear(&warm).await?;
                }
                Err(error)
            }
        }
    }

    async fn make_parts(&self, warm: &WarmContainer, want: &Want) -> Result<(), Error> {
        let EngineHandles { store, worker, docker, data_plane, workspaces, installation, .. } = self.host;
        let workspaces = workspaces.sized(want.entry.disk);
        let room = workspaces.reserve()?;
        // Beside it there must be disk space for a run that needs a workspace of its own.
        self.host.workspaces.disk_space()?.enough().map_err(runner_workspace::Error::from)?;
        let workspace = workspaces.create_waiting(&warm.workspace).await?;
        drop(room);
        Point::WarmWorkspaceMade.reach();
        self.sure()?;
        let socket_dir = data_plane.reserve(&warm.listener).await?.path;
        let start_dir = workspace.start_dir().ok_or(Error::Lost)?.to_owned();
        let labels =
            [installation.as_str(), want.agent.as_str(), warm.template.as_str(), warm.workspace.as_str()];
        let spec = SandboxSpec {
            name: warm.container.clone(),
            image: want.image.clone(),
            first: First::Wait(start_dir),
            volumes: want.entry.volumes.clone(),
            labels: docker::warm_labels(labels),
            workspace: workspace.path().to_owned(),
            socket_dir,
            limits: Limits::of(&want.entry),
        };
        self.sure()?;
        docker.wait(&spec).await?;
        Point::WarmStarted.reach();
        if store.warm_is_ready(warm, worker).await? { Ok(()) } else { Err(Error::Lost) }
    }

    /// Fails once another process may have taken this process's warm containers for abandoned.
    fn sure(&self) -> Result<(), Error> {
        if boot_now() < self.sure_until.get() { Ok(()) } else { Err(Error::Lost) }
    }
}
