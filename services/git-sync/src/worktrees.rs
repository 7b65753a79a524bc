//! worktrees keeps a directory for each commit, and a link to the present one that is replaced in one step.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use platform_core::name::git_sync::{LINK, WORKTREES};
use platform_runtime::report;
use runner_git::{Mirror, ObjectId, Snapshot, SnapshotOrder};
use rustix::fs::syncfs;

use crate::error::Error;

/// Name of the link before it takes the place of the old one.
const NEW_LINK: &str = ".current.new";
/// Ending of a tree that is not complete.
const UNFINISHED: &str = ".unfinished";
/// Ending of a tree that is being removed.
const REMOVED: &str = ".removed";

/// Trees of commits below a directory that readers mount.
#[derive(Debug)]
pub(crate) struct Worktrees {
    root: PathBuf,
    stale_timeout: Duration,
    /// Trees that were replaced, with the time since when.
    stale: BTreeMap<String, Instant>,
}

/// Effect of showing a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Readers saw another commit before, or none.
    Changed,
    /// Readers saw the commit already.
    Unchanged,
}

impl Worktrees {
    /// Opens the trees below `root`. Those that are not complete are removed; all others than the present one have been
    /// replaced by now.
    pub(crate) fn open(root: &Path, stale_timeout: Duration) -> Result<Self, Error> {
        let dir = root.join(WORKTREES);
        fs::create_dir_all(&dir).map_err(Error::io("create", &dir))?;
        let mut worktrees = Self { root: root.to_owned(), stale_timeout, stale: BTreeMap::new() };
        let present = worktrees.current();
        for entry in fs::read_dir(&dir).map_err(Error::io("list", &dir))? {
            let name = entry.map_err(Error::io("list", &dir))?.file_name();
            let name = name.to_string_lossy().into_owned();
            if ObjectId::parse(&name).is_err() {
                remove(&dir.join(name))?;
            } else if present.as_ref() != Some(&name) {
                worktrees.stale.insert(name, Instant::now());
            }
        }
        Ok(worktrees)
    }

    /// Returns the commit that readers see.
    pub(crate) fn current(&self) -> Option<String> {
        let target = fs::read_link(self.root.join(LINK)).ok()?;
        let commit = target.file_name()?.to_str()?.to_owned();
        self.tree(&commit).is_dir().then_some(commit)
    }

    /// Shows a commit. Readers see the tree before or the whole tree after it, and nothing else.
    pub(crate) async fn show(&mut self, mirror: &Mirror, order: &SnapshotOrder) -> Result<Shown, Error> {
        let commit = order.commit.as_str();
        let present = self.current();
        if present.as_deref() == Some(commit) {
            return Ok(Shown::Unchanged);
        }
        if !self.tree(commit).is_dir() {
            self.make(mirror, order).await?;
        }
        self.swap(commit)?;
        self.stale.remove(commit);
        self.stale.extend(present.map(|replaced| (replaced, Instant::now())));
        Ok(Shown::Changed)
    }

    /// Makes the tree of a commit. It gets its name when it is complete, and on the disk.
    async fn make(&self, mirror: &Mirror, order: &SnapshotOrder) -> Result<(), Error> {
        let tree = self.tree(order.commit.as_str());
        let unfinished = self.tree(&format!("{}{UNFINISHED}", order.commit));
        remove(&unfinished)?;
        let finished = async {
            Snapshot::make(mirror, &unfinished, order).await?;
            sync_file_system(&unfinished)?;
            fs::rename(&unfinished, &tree).map_err(Error::io("rename", &unfinished))
        };
        let finished = finished.await;
        if finished.is_err() {
            // Its space is needed by what made it fail. The next attempt removes what stays.
            drop(remove(&unfinished));
        }
        finished
    }

    /// Replaces the link, which is relative: readers mount the directory elsewhere.
    fn swap(&self, commit: &str) -> Result<(), Error> {
        let new = self.root.join(NEW_LINK);
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &new)(error));
            }
            _ => {}
        }
        symlink(Path::new(WORKTREES).join(commit), &new).map_err(Error::io("create", &new))?;
        fs::rename(&new, self.root.join(LINK)).map_err(Error::io("rename", &new))?;
        sync_file_system(&self.root)
    }

    /// Removes trees that were replaced long ago. What cannot be removed is tried again.
    pub(crate) fn prune(&mut self) {
        let root = self.root.join(WORKTREES);
        let timeout = self.stale_timeout;
        self.stale.retain(|commit, since| {
            if since.elapsed() < timeout {
                return true;
            }
            // A part of a tree has no commit's name, so that it is never shown again.
            let removed = root.join(format!("{commit}{REMOVED}"));
            let moved = fs::rename(root.join(commit), &removed).map_err(Error::io("rename", &removed));
            let result = moved.and_then(|()| remove(&removed));
            if let Err(error) = &result {
                tracing::warn!(%commit, error = report::chain(error), "old tree not removed");
            }
            result.is_err() && root.join(commit).exists()
        });
    }

    fn tree(&self, commit: &str) -> PathBuf {
        self.root.join(WORKTREES).join(commit)
    }
}

/// Waits until all that was written to the file system of `dir` is on the disk.
fn sync_file_system(dir: &Path) -> Result<(), Error> {
    let synced = File::open(dir).and_then(|open| syncfs(&open).map_err(io::Error::from));
    synced.map_err(Error::io("sync", dir))
}

/// Removes a directory with all that is in it, if it exists.
fn remove(dir: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", dir)(error)),
        _ => Ok(()),
    }
}
