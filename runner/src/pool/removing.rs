//! Removing what waited for a run, or as much of it as was made.

use std::path::Path;

use super::{Error, Pool};
use crate::{data_plane::DataPlane, run::Host, sandbox::docker::Docker, store::Spare, workspace};

/// Removes all parts of `spare`, which no run can take any more. None of them need be there.
pub(crate) async fn remove(
    spare: &Spare,
    (docker, data_plane, workspaces): (&Docker, &DataPlane, &Path),
) -> Result<(), Error> {
    // In this order: what has them mounted goes first.
    docker.remove(&spare.container).await?;
    data_plane.release(&spare.listener).await?;
    workspace::remove(workspaces, &spare.workspace).await?;
    Ok(())
}

impl Pool<'_> {
    /// Removes `spare`, and keeps that it is gone.
    pub(super) async fn clear(&self, spare: &Spare) -> Result<(), Error> {
        let Host { store, docker, data_plane, workspaces, .. } = self.host;
        remove(spare, (docker, data_plane, workspaces.root())).await?;
        Ok(store.spare_is_gone(&spare.container).await?)
    }
}
