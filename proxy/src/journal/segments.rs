//! Manages the journal's files: names, lists, creates and locks them.
//!
//! A segment is named after its first line, so the order of names is the order of lines. A reader at the end of a
//! segment knows the name of the next.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use platform_runtime::file;

use super::Error;
use crate::state;

/// Longest wait for the lock, which a proxy that is ending may still hold.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(10);

/// File of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    /// Sequence number of the first line that is or will be in it.
    pub(super) first: u64,
    pub(super) path: PathBuf,
}

impl Segment {
    /// Names the segment that begins with line `first`.
    pub(super) fn new(dir: &Path, first: u64) -> Self {
        Self { first, path: dir.join(format!("{first:020}.ndjson")) }
    }
}

/// Creates the file at `path`, or empties one that a crash has left without a line.
pub(super) fn create_empty(path: &Path) -> io::Result<File> {
    file::open_own(OpenOptions::new().create(true).truncate(true).read(true).write(true), path)
}

/// Lists all segments in `dir`, in their order.
pub(super) fn list(dir: &Path) -> Result<Vec<Segment>, Error> {
    let first = |name: &str| name.strip_suffix(".ndjson").filter(|digits| digits.len() == 20)?.parse().ok();
    let mut segments = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io("list", dir))? {
        let entry = entry.map_err(Error::io("list", dir))?;
        if let Some(first) = entry.file_name().to_str().and_then(first) {
            segments.push(Segment { first, path: entry.path() });
        }
    }
    segments.sort_by_key(|segment| segment.first);
    Ok(segments)
}

/// Returns the id kept in `dir`, which is created on first use.
pub(super) fn journal_id(dir: &Path) -> Result<String, Error> {
    let path = dir.join("id");
    match state::read(&path) {
        Ok(id) if !id.trim().is_empty() => return Ok(id.trim().to_owned()),
        Err(error) => return Err(Error::io("read", &path)(error)),
        // The file does not exist yet, or a crash has left it empty before the first line was written.
        _ => {}
    }
    let id = format!("{:032x}", platform_runtime::random::bits());
    let mut file = file::open_own(OpenOptions::new().create(true).truncate(true).write(true), &path)
        .map_err(Error::io("create", &path))?;
    file.write_all(id.as_bytes()).map_err(Error::io("write", &path))?;
    file.sync_all().map_err(Error::io("write", &path))?;
    Ok(id)
}

/// Locks the journal in `dir` for this process, until the file is closed however the process ends. A proxy that was
/// killed a moment ago may still be ending.
pub(super) fn lock(dir: &Path) -> Result<File, Error> {
    let path = dir.join("lock");
    let file = file::open_own(OpenOptions::new().create(true).truncate(false).write(true), &path)
        .map_err(Error::io("open", &path))?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(LOCK_RETRY_DELAY);
            }
            Err(TryLockError::WouldBlock) => return Err(Error::InUse { path: dir.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", &path)(error)),
        }
    }
}

/// Returns the time at which the segment at `path` began.
pub(super) fn began(path: &Path) -> Result<SystemTime, Error> {
    let file = fs::metadata(path).map_err(Error::io("look at", path))?;
    // Some file systems know when a file was last changed but not when it was created.
    file.created().or_else(|_unknown| file.modified()).map_err(Error::io("look at", path))
}
