//! Where a gateway writes on this host: its state, and the socket at which it is heard. That is a workspace of its own: a file system
//! where this host allows that, so that its agents can fill it and nothing else; else a directory, at which somebody has to look.

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
    /// Makes it, or takes it up as it is.
    pub(super) async fn prepare(&self) -> Result<(), Error> {
        let (all, id) = (self.workspaces()?, workspace_id());
        if all.list()?.contains(&id) {
            all.adopt(&id).await?;
        } else {
            let room = all.reserve()?;
            all.create_for_gateway(&id, &[BRIDGE, STATE]).await?;
            drop(room);
        }
        Ok(())
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
        Ok(workspace::remove(&self.place.disk(), &workspace_id()).await?)
    }

    fn workspaces(&self) -> Result<Workspaces, Error> {
        let own = Sandbox { workspace_dir: self.place.disk(), ..self.sandbox.clone() };
        Ok(Workspaces::lasting(&own, Lasting::Machine)?.sized(Some(self.gateway.sealed.disk)))
    }
}
