//! Workspaces as they lie on the disk. The seam to `workspace`: what they are called, where, and how one is removed.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::workspace::Workspace;

/// A workspace that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Space {
    /// What its row calls it.
    pub(super) name: String,
    /// Where it is.
    pub(super) path: PathBuf,
    /// When anything about the directory itself was last changed. Not the time that its agent can set.
    pub(super) changed: SystemTime,
    /// Containers that have it mounted, by name.
    pub(super) users: Vec<String>,
}

/// All workspaces below `root`; none if there is no such directory.
pub(super) fn list(root: &Path) -> io::Result<Vec<Space>> {
    let entries = match fs::read_dir(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut spaces = Vec::new();
    for entry in entries {
        let path = entry?.path();
        match fs::symlink_metadata(&path) {
            // Removed since the directory was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => {
                let since = Duration::from_secs(u64::try_from(found?.ctime()).unwrap_or_default());
                let name = path.display().to_string();
                spaces.push(Space { name, path, changed: SystemTime::UNIX_EPOCH + since, users: Vec::new() });
            }
        }
    }
    Ok(spaces)
}

/// Removes it; says whether it is gone. Blocks for as long as its files take.
pub(super) fn remove(space: &Space) -> bool {
    Workspace::found(space.path.clone()).remove()
}
