//! Manages the disk that a gateway writes to on this host: its state, and its socket. The disk is a separate workspace.
//! Where this host allows it, the workspace is a file system, which agents can fill without harm to anything else.
//! Otherwise it is a directory, and its size has to be watched.

use std::{fs, io, path::PathBuf};

use platform_runtime::settings::{Gateway, Sandbox};
use runner_workspace::{self as workspace, Durability, Exceeded, Workspaces};

use super::Error;
use crate::{BRIDGE, GatewayPaths, STATE, workspace_id};

/// Disk of one gateway.
#[derive(Debug)]
pub(super) struct Disk<'d> {
    pub(super) sandbox: &'d Sandbox,
    pub(super) gateway: &'d Gateway,
    pub(super) paths: &'d GatewayPaths,
}

impl Disk<'_> {
    /// Creates the disk, or adopts it as it is. A half-created disk has nothing in it yet, and is created again.
    pub(super) async fn prepare(&self) -> Result<(), Error> {
        let workspaces = self.workspaces()?;
        let id = workspace_id();
        if self.marker().exists() {
            workspaces.adopt(&id).await?;
            return Ok(());
        }
        workspaces.remove(&id).await?;
        let reserved = workspaces.reserve()?;
        workspaces.create_for_gateway(&id, &[BRIDGE, STATE]).await?;
        drop(reserved);
        fs::write(self.marker(), "").map_err(self.failed("write"))
    }

    /// Returns the path of the marker that exists once the disk is complete.
    fn marker(&self) -> PathBuf {
        self.paths.dir().join("disk-made")
    }

    fn failed(&self, action: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = self.marker();
        move |source| Error::File { action, path, source }
    }

    /// Returns the limit that the disk exceeds or nearly exceeds, if any.
    pub(super) async fn nearly_exceeded(&self) -> Result<Option<Exceeded>, Error> {
        Ok(workspace::exceeded_bound(
            &self.paths.disk(),
            &workspace_id(),
            self.sandbox,
            self.gateway.managed.disk,
        )
        .await?)
    }

    /// Returns whether the disk must be prepared before its container is started again, as after a reboot.
    pub(super) fn is_unmounted(&self) -> Result<bool, Error> {
        Ok(workspace::is_unmounted(&self.paths.disk(), &workspace_id())?)
    }

    /// Returns the limit that the disk exceeds, if any. A disk with its own file system exceeds none.
    pub(super) async fn exceeded(&self) -> Result<Option<Exceeded>, Error> {
        if workspace::is_image(&self.paths.disk(), &workspace_id()) {
            Ok(None)
        } else {
            self.nearly_exceeded().await
        }
    }

    /// Unmounts the disk; the next preparation adopts it.
    pub(super) async fn unmount(&self) -> Result<(), Error> {
        Ok(workspace::unmount(&self.paths.disk(), &workspace_id()).await?)
    }

    /// Removes the disk with all its content.
    pub(super) async fn remove(&self) -> Result<(), Error> {
        match fs::remove_file(self.marker()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(self.failed("remove")(error));
            }
            _ => {}
        }
        Ok(workspace::remove(&self.paths.disk(), &workspace_id()).await?)
    }

    fn workspaces(&self) -> Result<Workspaces, Error> {
        let own = Sandbox { workspace_dir: self.paths.disk(), ..self.sandbox.clone() };
        Ok(Workspaces::with_durability(&own, Durability::Machine)?.sized(Some(self.gateway.managed.disk)))
    }
}
