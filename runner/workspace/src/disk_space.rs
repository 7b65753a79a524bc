//! Measures the space on the disk of workspaces. Admission checks it, so that no run fills the disk.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use platform_core::{
    code::{Code, Coded},
    limit::ByteSize,
};
use platform_runtime::settings::WorkspaceBounds;
use rustix::fs::statvfs;

/// Space on a disk, and the demands on it.
#[derive(Debug, Clone)]
pub struct DiskSpace {
    root: PathBuf,
    /// Bytes that this process could use.
    free: ByteSize,
    /// Files that could be created; absent where the file system sets no limit.
    free_files: Option<u64>,
    /// Bytes by which images in use may still grow.
    promised: ByteSize,
    /// Bytes that have to stay free.
    reserve: ByteSize,
    /// Demand of one more workspace.
    needed: WorkspaceBounds,
}

/// The disk is too full for another workspace.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "{} has too little room: {space}; free some, or lower sandbox.disk_reserve or sandbox.workspace_size",
    space.root.display()
)]
pub struct InsufficientDisk {
    /// Space on the disk, and the demands on it.
    pub space: DiskSpace,
}

impl Coded for InsufficientDisk {
    fn code(&self) -> Code {
        Code::InsufficientDisk
    }
}

impl DiskSpace {
    /// Measures the disk of `root`.
    pub(super) fn measure(
        root: &Path,
        needed: WorkspaceBounds,
        promised: ByteSize,
        reserve: ByteSize,
    ) -> io::Result<Self> {
        let stats = statvfs(root)?;
        Ok(Self {
            root: root.to_owned(),
            free: ByteSize(stats.f_bavail.saturating_mul(stats.f_frsize)),
            free_files: (stats.f_files > 0).then_some(stats.f_favail),
            promised,
            reserve,
            needed,
        })
    }

    /// Returns whether one more workspace and all others could be filled without touching the reserve.
    pub fn is_enough(&self) -> bool {
        let demand = [self.promised.0, self.reserve.0, self.needed.size.0];
        let demand = demand.into_iter().fold(0_u64, u64::saturating_add);
        self.free.0 >= demand && self.free_files.is_none_or(|files| files >= self.needed.files)
    }

    /// Returns an error that names the space and the demands, unless [`Self::is_enough`].
    pub fn enough(self) -> Result<(), InsufficientDisk> {
        if self.is_enough() { Ok(()) } else { Err(InsufficientDisk { space: self }) }
    }

    /// Returns whether all users of this disk are in danger: half of the reserve is gone.
    pub(super) fn is_critical(&self) -> bool {
        self.free.0 < self.reserve.0 / 2
    }
}

impl fmt::Display for DiskSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} free", rounded(self.free))?;
        if let Some(files) = self.free_files.filter(|files| *files < self.needed.files) {
            write!(f, " with {files} files of {}", self.needed.files)?;
        }
        if self.promised.0 > 0 {
            write!(f, ", {} of it promised to runs", rounded(self.promised))?;
        }
        write!(f, ", {} in reserve, {} for the next run", self.reserve, self.needed.size)
    }
}

/// Rounds down to a unit that people read.
const fn rounded(size: ByteSize) -> ByteSize {
    let unit = if size.0 >= 10 << 30 { 30 } else { 20 };
    ByteSize(size.0 >> unit << unit)
}
