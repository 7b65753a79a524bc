//! Manages the disk that a gateway writes to on this host: its state, and its socket. The disk is a workspace of its
//! own. Where this host allows it, the workspace is a file system, which agents can fill without harm to anything else.
//! Otherwise it is a directory whose size has to be watched.

use std::{fs, io, path::PathBuf};

use platform_runtime::settings::{Gateway, Sandbox};
use runner_workspace::{self as workspace, Exceeded, Lasting, Workspaces};

use super::Error;
use crate::{BRIDGE, Place, STATE, workspace_id};

/// Disk of one gateway.
#[derive(Debug)]
pub(super) struct Disk<'d> {
    pub(super) sandbox: &'d Sandbox,
    pub(super) gateway: &'d Gateway,
    pub(super) place: &'d Place,
}

impl Disk<'_> {
    /// Creates the disk, or adopts it as it is. A half-created disk has nothing in it yet, and is created anew.
    pub(super) async fn prepare(&self) -> Result<(), Error> {
        let (all, id) = (self.workspaces()?, workspace_id());
        if self.made().exists() {
            all.adopt(&id).await?;
            return Ok(());
        }
        all.remove(&id).await?;
        let room = all.reserve()?;
        all.create_for_gateway(&id, &[BRIDGE, STATE]).await?;
        drop(room);
        fs::write(self.made(), "").map_err(self.failed("write"))
    }

    /// Returns the path of the marker that exists once the disk is complete.
    fn made(&self) -> PathBuf {
        self.place.dir().join("disk-made")
    }

    fn failed(&self, action: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = self.made();
        move |source| Error::File { action, path, source }
    }

    /// Returns the limit that the disk exceeds or nearly exceeds, if any.
    pub(super) async fn look(&self) -> Result<Option<Exceeded>, Error> {
        Ok(workspace::look(&self.place.disk(), &workspace_id(), (self.sandbox, self.gateway.sealed.disk))
            .await?)
    }

    /// Returns whether it must be prepared before its container is started again, as after a reboot.
    pub(super) fn is_away(&self) -> Result<bool, Error> {
        Ok(workspace::is_away(&self.place.disk(), &workspace_id())?)
    }

    /// Returns the exceeded limit, where no file system bounds the disk.
    pub(super) async fn exceeded(&self) -> Result<Option<Exceeded>, Error> {
        if workspace::is_image(&self.place.disk(), &workspace_id()) { Ok(None) } else { self.look().await }
    }

    /// Unmounts the disk; the next preparation adopts it.
    pub(super) async fn put_away(&self) -> Result<(), Error> {
        Ok(workspace::put_away(&self.place.disk(), &workspace_id()).await?)
    }

    /// Removes the disk with all that is in it.
    pub(super) async fn remove(&self) -> Result<(), Error> {
        match fs::remove_file(self.made()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(self.failed("remove")(error));
            }
            _ => {}
        }
        Ok(workspace::remove(&self.place.disk(), &workspace_id()).await?)
    }

    fn workspaces(&self) -> Result<Workspaces, Error> {
        let own = Sandbox { workspace_dir: self.place.disk(), ..self.sandbox.clone() };
        Ok(Workspaces::lasting(&own, Lasting::Machine)?.sized(Some(self.gateway.sealed.disk)))
    }
}
