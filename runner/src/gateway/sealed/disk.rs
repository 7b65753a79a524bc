//! Where a gateway writes on this host: its state, and the socket at which it is heard. That is a workspace of its own: a file system
//! where this host allows that, so that its agents can fill it and nothing else; else a directory, at which somebody has to look.

use std::{fs, io, path::PathBuf};

use platform_runtime::settings::{Gateway, Sandbox};

use super::Error;
use crate::{
    gateway::{BRIDGE, Place, STATE, workspace_id},
    workspace::{self, Exceeded, Lasting, Workspaces},
};

/// What one gateway writes to.
#[derive(Debug)]
pub(super) struct Disk<'d> {
    pub(super) sandbox: &'d Sandbox,
    pub(super) gateway: &'d Gateway,
    pub(super) place: &'d Place,
}

impl Disk<'_> {
    /// Makes it, or takes it up as it is. What was only half made has nothing in it yet, and is made anew.
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

    /// There once it is made whole.
    fn made(&self) -> PathBuf {
        self.place.dir().join("disk-made")
    }

    fn failed(&self, action: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = self.made();
        move |source| Error::File { action, path, source }
    }

    /// What is too much there, or all but.
    pub(super) async fn look(&self) -> Result<Option<Exceeded>, Error> {
        Ok(workspace::look(&self.place.disk(), &workspace_id(), (self.sandbox, self.gateway.sealed.disk))
            .await?)
    }

    /// Whether it has to be prepared before its container is started again: after the machine was.
    pub(super) fn is_away(&self) -> Result<bool, Error> {
        Ok(workspace::is_away(&self.place.disk(), &workspace_id())?)
    }

    /// What is too much there, where nothing else keeps it from becoming more.
    pub(super) async fn exceeded(&self) -> Result<Option<Exceeded>, Error> {
        if workspace::is_image(&self.place.disk(), &workspace_id()) { Ok(None) } else { self.look().await }
    }

    /// Leaves it to the next one that prepares it.
    pub(super) async fn put_away(&self) -> Result<(), Error> {
        Ok(workspace::put_away(&self.place.disk(), &workspace_id()).await?)
    }

    /// Removes it with all that is in it.
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
