//! Making one that waits.

use platform_core::id::SocketDirName;
use platform_runtime::random;

use super::{Error, Pool, Want};
use crate::{
    failpoint::Point,
    run::{Host, now},
    sandbox::{First, Limits, SandboxSpec, docker},
    store::Spare,
    workspace::Workspaces,
};

impl Pool<'_> {
    /// Makes one from `mould`. What this leaves behind when it fails goes at once, or later by its row.
    pub(super) async fn make(&self, mould: &str, want: &Want) -> Result<Spare, Error> {
        let Host { store, worker, lease, installation, .. } = self.host;
        let spare = Spare {
            container: format!("sluice-{installation}-spare-{:032x}", random::bits()),
            mould: mould.to_owned(),
            agent: want.agent.clone(),
            workspace: Workspaces::new_id(),
            listener: SocketDirName::from_random(random::bits()),
        };
        // Runs that need one made are waited for like by any other start.
        let _place = self.host.starts.acquire().await;
        let since = now();
        store.want_spare(&spare, worker, *lease).await?;
        self.sure_from(since);
        Point::SpareWanted.reach();
        match self.make_parts(&spare, want).await {
            Ok(()) => Ok(spare),
            Err(error) => {
                // By its row it is found again if that does not succeed now.
                if store.spare_leaves(&spare.container, worker).await? {
                    self.clear(&spare).await?;
                }
                Err(error)
            }
        }
    }

    async fn make_parts(&self, spare: &Spare, want: &Want) -> Result<(), Error> {
        let Host { store, worker, docker, data_plane, workspaces, installation, .. } = self.host;
        let workspaces = workspaces.sized(want.entry.disk);
        let room = workspaces.reserve()?;
        // Beside it there has to be room for a run that needs a workspace of its own.
        self.host.workspaces.room()?.enough()?;
        let workspace = workspaces.create_waiting(&spare.workspace).await?;
        drop(room);
        Point::SpareWorkspaceMade.reach();
        self.sure()?;
        let socket_dir = data_plane.reserve(&spare.listener).await?.path;
        let start_dir = workspace.start_dir().ok_or(Error::Lost)?.to_owned();
        let labels =
            [installation.as_str(), want.agent.as_str(), spare.mould.as_str(), spare.workspace.as_str()];
        let spec = SandboxSpec {
            name: spare.container.clone(),
            image: want.image.clone(),
            first: First::Wait(start_dir),
            volumes: want.entry.volumes.clone(),
            labels: docker::spare_labels(labels),
            workspace: workspace.path().to_owned(),
            socket_dir,
            limits: Limits::of(&want.entry),
        };
        self.sure()?;
        docker.wait(&spec).await?;
        Point::SpareStarted.reach();
        if store.spare_is_ready(spare, worker).await? { Ok(()) } else { Err(Error::Lost) }
    }

    /// Whether nobody can have taken what is ours for abandoned.
    fn sure(&self) -> Result<(), Error> {
        if now() < self.sure_until.get() { Ok(()) } else { Err(Error::Lost) }
    }
}
