//! How much room the disk of workspaces has. Admission asks, so that disks fill up by no run's doing.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use platform_core::limit::ByteSize;
use rustix::fs::statvfs;

use super::{Bounds, Error};

/// What there is, and what it has to be enough for.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    root: PathBuf,
    /// Bytes we could use.
    free: ByteSize,
    /// Files that could be made; absent where the file system sets no limit.
    free_files: Option<u64>,
    /// What images that are in use may still take.
    promised: ByteSize,
    /// What is to be left.
    reserve: ByteSize,
    /// What one more may take.
    needed: Bounds,
}

impl Room {
    pub(super) fn of(
        root: &Path,
        needed: Bounds,
        promised: ByteSize,
        reserve: ByteSize,
    ) -> Result<Self, Error> {
        let found = statvfs(root).map_err(|error| Error::io("ask for the room in", root)(error.into()))?;
        Ok(Self {
            root: root.to_owned(),
            free: ByteSize(found.f_bavail.saturating_mul(found.f_frsize)),
            free_files: (found.f_files > 0).then_some(found.f_favail),
            promised,
            reserve,
            needed,
        })
    }

    /// Whether one more workspace could be filled, and the others as well, without the reserve being touched.
    pub(crate) fn is_enough(&self) -> bool {
        let wanted = [self.promised.0, self.reserve.0, self.needed.size.0];
        let wanted = wanted.into_iter().fold(0_u64, u64::saturating_add);
        self.free.0 >= wanted && self.free_files.is_none_or(|files| files >= self.needed.files)
    }

    /// The same, as an error that says what is missing.
    pub(crate) fn enough(self) -> Result<(), Error> {
        if self.is_enough() { Ok(()) } else { Err(Error::NoRoom { root: self.root.clone(), room: self }) }
    }

    /// Whether others on this disk are in danger: half of the reserve is gone.
    pub(super) fn is_critical(&self) -> bool {
        self.free.0 < self.reserve.0 / 2
    }
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} free", about(self.free))?;
        if let Some(files) = self.free_files.filter(|files| *files < self.needed.files) {
            write!(f, " with {files} files of {}", self.needed.files)?;
        }
        if self.promised.0 > 0 {
            write!(f, ", {} of it promised to runs", about(self.promised))?;
        }
        write!(f, ", {} in reserve, {} for the next run", self.reserve, self.needed.size)
    }
}

/// Cut to a unit that people read.
const fn about(size: ByteSize) -> ByteSize {
    let unit = if size.0 >= 10 << 30 { 30 } else { 20 };
    ByteSize(size.0 >> unit << unit)
}
