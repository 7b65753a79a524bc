//! Lists workspaces on the disk. Only the crate `runner-workspace` creates them and reads their content.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::Path,
    time::{Duration, SystemTime},
};

use platform_core::id::WorkspaceId;

/// A workspace that exists, at least in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WorkspaceDir {
    /// Id of the workspace, as in its row.
    pub(super) id: WorkspaceId,
    /// Time of the last change of its directory's inode. An agent cannot change it.
    pub(super) changed: SystemTime,
    /// Names of the containers that have it mounted.
    pub(super) users: Vec<String>,
}

/// Lists all workspaces below `root`; none if the directory does not exist. Entries with other names are skipped.
pub(super) fn list(root: &Path) -> io::Result<Vec<WorkspaceDir>> {
    let entries = match fs::read_dir(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut dirs = Vec::new();
    for entry in entries {
        let entry = entry?;
        let id = entry.file_name().to_str().and_then(|name| WorkspaceId::parse(name).ok());
        let Some(id) = id else { continue };
        match entry.metadata() {
            // The workspace was removed after the directory was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => {
                let since = Duration::from_secs(u64::try_from(found?.ctime()).unwrap_or_default());
                dirs.push(WorkspaceDir { id, changed: SystemTime::UNIX_EPOCH + since, users: Vec::new() });
            }
        }
    }
    Ok(dirs)
}
