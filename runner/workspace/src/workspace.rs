//! Handles one workspace that exists: fills it, watches its bounds.

use std::path::{Path, PathBuf};

use platform_core::start::Start;
use platform_runtime::task::blocking;

use super::{
    content::InitialContent,
    error::Error,
    start,
    watch::{Exceeded, WatchedTree},
};

/// Workspace that exists. Dropping it changes nothing.
#[derive(Debug)]
pub struct Workspace {
    pub(super) tree: PathBuf,
    /// Directory in which a warm container waits for its start file.
    pub(super) start: Option<PathBuf>,
    /// Bounds that only this process enforces, by measuring.
    pub(super) watched: Option<WatchedTree>,
}

impl Workspace {
    /// Returns the directory that a container mounts as its workspace.
    pub fn path(&self) -> &Path {
        &self.tree
    }

    /// Returns the directory that a warm container mounts in addition, for its start file.
    pub fn start_dir(&self) -> Option<&Path> {
        self.start.as_deref()
    }

    /// Writes `content` into a workspace with a running container that has no start file yet.
    pub async fn furnish(&self, content: InitialContent) -> Result<(), Error> {
        let tree = self.tree.clone();
        blocking(move || content.write(&tree)).await
    }

    /// Places the start file `start` for the warm container that waits with this workspace. The first caller wins;
    /// for later callers, and without a waiting container, this has no effect.
    pub async fn place_start_file(&self, start: Start) -> Result<(), Error> {
        let Some(dir) = self.start.clone() else { return Ok(()) };
        blocking(move || start::place(&dir, &start)).await
    }

    /// Writes `content` into a workspace in which agents have run before, and in which none runs now. Their own files
    /// stay. The conversation, the behaviour files and the directory of files are written anew.
    pub async fn refresh(&self, content: InitialContent) -> Result<(), Error> {
        let tree = self.tree.clone();
        blocking(move || content.rewrite(&tree)).await
    }

    /// Returns the bound that the workspace exceeds now. An image exceeds none.
    pub async fn exceeded(&self) -> Result<Option<Exceeded>, Error> {
        let Some(watched) = self.watched.clone() else { return Ok(None) };
        let tree = self.tree.clone();
        blocking(move || watched.measure().map_err(Error::io("look through", &tree))).await
    }

    /// Returns when the workspace exceeds its bounds and its agent has to be stopped. An image bounds itself: then
    /// this never returns. Cancel safe.
    pub async fn watch(&self) -> Exceeded {
        match &self.watched {
            Some(watched) => watched.exceeded().await,
            None => std::future::pending().await,
        }
    }
}
