//! Measures workspaces that are directories: nothing bounds them, so they are measured again and again.
//!
//! Between two measurements an agent can write more than it may. Files that it has open and removed are seen in no
//! tree. Therefore the free space of the disk is checked as well. An image has neither weakness.

use std::{
    ffi::OsString,
    fmt, io,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    rc::Rc,
    time::{Duration, Instant},
};

use platform_core::limit::ByteSize;
use platform_runtime::{report, settings::WorkspaceBounds};
use runner_files::TreeRoot;
use rustix::{
    fs::{AtFlags, Dir, FileType, StatxFlags, statx},
    io::Errno,
};
use tokio::{task::spawn_blocking, time::sleep};

use super::disk_space::DiskSpace;

/// Shortest interval between two measurements.
const MIN_MEASURE_INTERVAL: Duration = Duration::from_millis(250);
/// Longest interval between two measurements. While the interval is shorter than this, measuring takes at most a tenth
/// of the time.
const MAX_MEASURE_INTERVAL: Duration = Duration::from_secs(5);

/// Bound that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exceeded {
    /// Number of bytes.
    Size(ByteSize),
    /// Number of files and directories.
    Files(u64),
    /// Nesting of directories: deeper than a path can name.
    Depth,
    /// Free space of the disk: it is nearly full, perhaps not by this workspace.
    Disk,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => write!(f, "its workspace grew beyond {size}"),
            Self::Files(files) => write!(f, "its workspace had more than {files} files"),
            Self::Depth => {
                write!(f, "directories in its workspace were nested more deeply than a path can be long")
            }
            Self::Disk => write!(f, "the disk of workspaces was nearly full"),
        }
    }
}

/// Directory and its bounds.
#[derive(Debug, Clone)]
pub(super) struct WatchedTree {
    tree: PathBuf,
    bounds: WorkspaceBounds,
    reserve: ByteSize,
}

impl WatchedTree {
    pub(super) fn new(tree: &Path, bounds: WorkspaceBounds, reserve: ByteSize) -> Self {
        Self { tree: tree.to_owned(), bounds, reserve }
    }

    /// Returns once the directory exceeds its bounds.
    pub(super) async fn exceeded(&self) -> Exceeded {
        loop {
            let watched = self.clone();
            let began = Instant::now();
            match spawn_blocking(move || watched.measure()).await {
                Ok(Ok(Some(exceeded))) => return exceeded,
                Ok(Ok(None)) => {}
                Ok(Err(error)) => self.log_unmeasured(&error),
                Err(error) => self.log_unmeasured(&error),
            }
            sleep((began.elapsed() * 10).clamp(MIN_MEASURE_INTERVAL, MAX_MEASURE_INTERVAL)).await;
        }
    }

    fn log_unmeasured(&self, error: &dyn std::error::Error) {
        tracing::warn!(tree = %self.tree.display(), error = report::chain(error), "workspace not measured");
    }

    /// Returns the bound that is exceeded now.
    pub(super) fn measure(&self) -> io::Result<Option<Exceeded>> {
        let space = DiskSpace::measure(&self.tree, self.bounds, ByteSize(0), self.reserve);
        if space.is_ok_and(|space| space.is_critical()) {
            return Ok(Some(Exceeded::Disk));
        }
        let mut size = TreeSize { bytes: 0, files: 0, bounds: self.bounds };
        size.add_tree(&self.tree)
    }
}

/// Returns the space that `tree` uses, as far as paths can name its directories. A missing one uses none.
pub(super) fn size(tree: &Path) -> io::Result<ByteSize> {
    let bounds = WorkspaceBounds { size: ByteSize(u64::MAX), files: u64::MAX };
    let mut size = TreeSize { bytes: 0, files: 0, bounds };
    match size.add_tree(tree) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ByteSize(0)),
        added => added.map(|_exceeded| ByteSize(size.bytes)),
    }
}

/// Size of the tree as far as it was walked.
struct TreeSize {
    bytes: u64,
    files: u64,
    bounds: WorkspaceBounds,
}

impl TreeSize {
    /// Counts everything in `tree`, until a bound is exceeded.
    fn add_tree(&mut self, tree: &Path) -> io::Result<Option<Exceeded>> {
        let root = TreeRoot::open(tree)?;
        // Names with the path of the directory they are in, which they share.
        let mut pending = vec![(Rc::new(PathBuf::new()), OsString::from("."))];
        while let Some((parent, name)) = pending.pop() {
            let path = Rc::new(parent.join(name));
            match root.open_dir(&path) {
                Ok(directory) => {
                    let exceeded =
                        self.add(Dir::new(directory)?, |name| pending.push((Rc::clone(&path), name)))?;
                    if exceeded.is_some() {
                        return Ok(exceeded);
                    }
                }
                Err(Errno::NAMETOOLONG) => return Ok(Some(Exceeded::Depth)),
                // The entry existed a moment ago; the next measurement sees what it is now.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Counts the entries of `directory`, and passes the directories among them to `below`.
    fn add(&mut self, mut directory: Dir, mut below: impl FnMut(OsString)) -> io::Result<Option<Exceeded>> {
        while let Some(entry) = directory.next() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let found = match statx(directory.fd()?, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS)
            {
                Ok(found) => found,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            };
            self.files += 1;
            let is_directory = FileType::from_raw_mode(found.stx_mode.into()) == FileType::Directory;
            // A file with several names has all of them here.
            let names = if is_directory { 1 } else { found.stx_nlink.max(1) };
            self.bytes += found.stx_blocks * 512 / u64::from(names);
            if self.bytes > self.bounds.size.0 {
                return Ok(Some(Exceeded::Size(self.bounds.size)));
            }
            if self.files > self.bounds.files {
                return Ok(Some(Exceeded::Files(self.bounds.files)));
            }
            if is_directory {
                below(OsString::from_vec(name.to_bytes().to_vec()));
            }
        }
        Ok(None)
    }
}
