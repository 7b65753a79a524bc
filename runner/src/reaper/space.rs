//! Workspaces as they lie on the disk. How they are made and what is in them is for `workspace` alone.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::Path,
    time::{Duration, SystemTime},
};

use platform_core::id::WorkspaceId;

/// A workspace that is there, or half of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Space {
    /// What its row calls it.
    pub(super) id: WorkspaceId,
    /// When anything about its directory was last changed. Not the time that its agent can set.
    pub(super) changed: SystemTime,
    /// Containers that have it mounted, by name.
    pub(super) users: Vec<String>,
}

/// All workspaces below `root`; none if there is no such directory. What is not called like one is none.
pub(super) fn list(root: &Path) -> io::Result<Vec<Space>> {
    let entries = match fs::read_dir(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut spaces = Vec::new();
    for entry in entries {
        let entry = entry?;
        let id = entry.file_name().to_str().and_then(|name| WorkspaceId::parse(name).ok());
        let Some(id) = id else { continue };
        match entry.metadata() {
            // Removed since the directory was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => {
                let since = Duration::from_secs(u64::try_from(found?.ctime()).unwrap_or_default());
                spaces.push(Space { id, changed: SystemTime::UNIX_EPOCH + since, users: Vec::new() });
            }
        }
    }
    Ok(spaces)
}
