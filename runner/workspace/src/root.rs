//! Creates and adopts workspaces below their root, in the form this host allows.

use std::{fs, path::PathBuf};

use platform_core::{id::WorkspaceId, limit::ByteSize};
use platform_runtime::{report, settings::WorkspaceBounds, socket::private_dir, sync::Mutex};

use super::{
    bounds::Durability,
    content::InitialContent,
    error::Error,
    image,
    paths::{self, WorkspacePaths},
    watch::WatchedTree,
    workspace::Workspace,
};

/// Directory that holds all workspaces, with the settings for new ones.
#[derive(Debug)]
pub(super) struct WorkspaceRoot {
    pub(super) path: PathBuf,
    pub(super) form: Form,
    pub(super) reserve: ByteSize,
    /// Total size of the workspaces that are reserved and not created yet: on disk their demand cannot be seen.
    pub(super) reserved: Mutex<u64>,
}

/// Form of new workspaces. An existing one keeps the form it was created in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Form {
    Image,
    Directory {
        /// Reason that images are not possible, unless the settings ask for directories.
        because: Option<String>,
    },
}

/// Purpose of a new workspace.
#[derive(Debug)]
pub(super) enum Purpose {
    /// A run. Its content is in the workspace from the beginning.
    Run(InitialContent),
    /// A warm container that waits for a run.
    Waiting,
    /// A gateway, which sees these directories of it.
    Gateway(&'static [&'static str]),
}

impl WorkspaceRoot {
    /// Returns the paths of workspace `id`.
    pub(super) fn paths(&self, id: &WorkspaceId) -> WorkspacePaths {
        WorkspacePaths::of(&self.path, id.as_str())
    }

    /// Creates workspace `id`. A failure leaves nothing behind.
    pub(super) fn create(
        &self,
        id: &WorkspaceId,
        bounds: WorkspaceBounds,
        durability: Durability,
        purpose: &Purpose,
    ) -> Result<Workspace, Error> {
        let paths = self.paths(id);
        paths.create_dirs()?;
        let filled = self.fill(&paths, bounds, durability, purpose);
        if filled.is_err()
            && let Err(error) = paths.remove()
        {
            tracing::warn!(%id, error = report::chain(&error), "workspace not removed; left for gc");
        }
        filled?;
        Ok(self.workspace(paths, bounds))
    }

    fn fill(
        &self,
        paths: &WorkspacePaths,
        bounds: WorkspaceBounds,
        durability: Durability,
        purpose: &Purpose,
    ) -> Result<(), Error> {
        if self.form == Form::Image {
            image::create(paths, bounds)?;
            image::mount(paths, durability)?;
        }
        paths::give_to_agent(&paths.tree, paths::AGENT_DIR_MODE)?;
        match purpose {
            Purpose::Run(content) => content.write(&paths.tree),
            Purpose::Waiting => Ok(private_dir(&paths.start, paths::AGENT_DIR_MODE)?),
            Purpose::Gateway(parts) => parts.iter().try_for_each(|part| {
                let path = paths.tree.join(part);
                fs::create_dir(&path).map_err(Error::io("make", &path))?;
                paths::give_to_agent(&path, paths::AGENT_DIR_MODE)
            }),
        }
    }

    /// Returns workspace `id`, which exists, and mounts it where it needs a mount and has none.
    pub(super) fn adopt(
        &self,
        id: &WorkspaceId,
        bounds: WorkspaceBounds,
        durability: Durability,
    ) -> Result<Workspace, Error> {
        let paths = self.paths(id);
        if !paths.tree.is_dir() {
            return Err(Error::Unknown { id: id.clone(), root: self.path.clone() });
        }
        if paths.has_image() && !paths.is_mounted()? {
            let mounted = image::repair(&paths).and_then(|()| image::mount(&paths, durability));
            // Another process may have mounted it in the meantime.
            if mounted.is_err() && !paths.is_mounted()? {
                mounted?;
            }
        }
        Ok(self.workspace(paths, bounds))
    }

    fn workspace(&self, paths: WorkspacePaths, bounds: WorkspaceBounds) -> Workspace {
        let watched = (!paths.has_image()).then(|| WatchedTree::new(&paths.tree, bounds, self.reserve));
        let start = Some(paths.start).filter(|start| start.is_dir());
        Workspace { tree: paths.tree, start, watched }
    }
}
