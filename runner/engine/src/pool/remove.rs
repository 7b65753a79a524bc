//! Removes a warm container, or as much of it as was created.

use std::path::Path;

use runner_control_client::DataPlane;
use runner_docker::Docker;
use runner_store::{PoolEntry, PoolStage, WarmContainer};
use runner_workspace as workspace;

use super::{Error, Pool};
use crate::context::EngineHandles;

/// Removes all parts of `warm`, which no run can claim any more. A missing part is not an error.
pub(crate) async fn remove_parts(
    warm: &WarmContainer,
    docker: &Docker,
    data_plane: &DataPlane,
    workspaces: &Path,
) -> Result<(), Error> {
    // The container has the other parts mounted, so it is removed first.
    docker.remove(&warm.container).await?;
    data_plane.release(&warm.listener).await?;
    workspace::remove(workspaces, &warm.workspace).await?;
    Ok(())
}

impl Pool<'_> {
    /// Removes `warm`, and stores its removal.
    pub(super) async fn clear(&self, warm: &WarmContainer) -> Result<(), Error> {
        let EngineHandles { store, docker, data_plane, workspaces, .. } = self.engine;
        remove_parts(warm, docker, data_plane, workspaces.root()).await?;
        Ok(store.mark_warm_gone(&warm.container).await?)
    }

    /// Removes a warm container, unless a run has claimed it first.
    pub(super) async fn release(&self, entry: &PoolEntry) -> Result<(), Error> {
        let EngineHandles { store, worker, .. } = self.engine;
        if !store.mark_warm_leaving(&entry.warm.container, worker).await? {
            return Ok(());
        }
        if entry.stage == PoolStage::Ready {
            self.engine.observer.metrics.pool_expired(&entry.warm.agent);
        }
        self.clear(&entry.warm).await
    }
}
