//! Writes the files of a stage into a workspace in which a hostile process may be running already.
//!
//! Until the last file is written, the directory belongs to the host, and no process of a sandbox can enter it.

use std::{
    ffi::OsStr,
    fs::File,
    io::Write,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use platform_core::name::{SANDBOX_UID, path::REPO_DIR};
use rustix::{
    fs::{AtFlags, Gid, Mode, OFlags, Uid, chownat, fchmod, fchown, mkdirat, openat, symlinkat},
    io::Errno,
};
use sha2::{Digest, Sha256};

use super::{
    beneath::TreeRoot,
    error::Error,
    manifest::{ContentHash, StoredFile, StoredForm},
    path::RelativePath,
    stage::Stage,
    stage_writer::BUFFER_SIZE,
};

/// Mode of a directory that belongs to an agent.
const DIR_MODE: u32 = 0o755;
/// Mode of a file that belongs to an agent.
const FILE_MODE: u32 = 0o644;
/// Mode of a program that belongs to an agent.
const PROGRAM_MODE: u32 = 0o755;

impl Stage {
    /// Writes the files into the directory `repo` of `tree`, which must not exist, and gives them to the sandbox's
    /// user. No link is followed, and no existing entry is written to.
    ///
    /// # Errors
    /// The system's, and [`Error::Damaged`] if a content has another hash than it had. Then part of the files may be
    /// there: the workspace cannot be used.
    pub fn unpack(&self, tree: &Path) -> Result<(), Error> {
        let root = TreeRoot::open(tree).map_err(Error::os("open", tree))?;
        let repo = make_dir(root.as_fd(), OsStr::new(REPO_DIR));
        let repo = repo.and_then(check_own).map_err(Error::os("make the directory `repo` in", tree))?;
        let mut unpacking = Unpacking {
            stage: self,
            tree,
            open: vec![OpenDir { path: None, dir: repo }],
            buffer: vec![0; BUFFER_SIZE],
        };
        for entry in self.manifest.entries() {
            unpacking.leave_dirs_beside(&entry.path)?;
            unpacking.write(&entry.path, &entry.form)?;
        }
        unpacking.finish()
    }
}

/// Unpacking of a stage. The directories on the way to the current entry are open.
struct Unpacking<'s> {
    stage: &'s Stage,
    tree: &'s Path,
    open: Vec<OpenDir>,
    buffer: Vec<u8>,
}

/// Directory that is being filled; without a path, that of the repository.
struct OpenDir {
    path: Option<RelativePath>,
    dir: OwnedFd,
}

impl Unpacking<'_> {
    /// Gives away the open directories that `path` is not in.
    fn leave_dirs_beside(&mut self, path: &RelativePath) -> Result<(), Error> {
        let parent = path.parent();
        while let Some(left) = self.open.pop_if(|open| open.path.is_some() && open.path != parent) {
            give_to_agent(&left.dir, DIR_MODE).map_err(self.failed())?;
        }
        Ok(())
    }

    fn write(&mut self, path: &RelativePath, form: &StoredForm) -> Result<(), Error> {
        // A sound manifest has each directory before its content.
        let Some(OpenDir { dir, .. }) = self.open.last() else { return Err(self.stage.damaged_data()) };
        let name = path.name();
        match form {
            StoredForm::Directory => {
                let dir = make_dir(dir.as_fd(), name).map_err(self.failed())?;
                self.open.push(OpenDir { path: Some(path.clone()), dir });
                Ok(())
            }
            StoredForm::Link(target) => {
                let made = symlinkat(target, dir, name).and_then(|()| {
                    let uid = Some(Uid::from_raw(SANDBOX_UID));
                    chownat(dir, name, uid, Some(Gid::from_raw(SANDBOX_UID)), AtFlags::SYMLINK_NOFOLLOW)
                });
                made.map_err(self.failed())
            }
            StoredForm::File(stored) => {
                let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let file = openat(dir, name, new, Mode::RUSR | Mode::WUSR).map_err(self.failed())?;
                self.fill(File::from(file), stored)
            }
        }
    }

    fn fill(&mut self, mut file: File, stored: &StoredFile) -> Result<(), Error> {
        let mut hasher = Sha256::new();
        let mut offset = stored.offset;
        let end = stored.offset.saturating_add(stored.size);
        while offset < end {
            let remaining = usize::try_from(end - offset).unwrap_or(usize::MAX);
            let piece = &mut self.buffer[..remaining.min(BUFFER_SIZE)];
            self.stage.read_at(piece, offset)?;
            hasher.update(&*piece);
            file.write_all(piece).map_err(Error::io("write files into", self.tree))?;
            offset += piece.len() as u64;
        }
        if ContentHash::finish(hasher) != stored.sha256 {
            return Err(self.stage.damaged_data());
        }
        let mode = if stored.executable { PROGRAM_MODE } else { FILE_MODE };
        give_to_agent(&file, mode).map_err(self.failed())
    }

    /// Gives away the directories that are still open, the repository's last.
    fn finish(mut self) -> Result<(), Error> {
        while let Some(OpenDir { dir, .. }) = self.open.pop() {
            give_to_agent(&dir, DIR_MODE).map_err(self.failed())?;
        }
        Ok(())
    }

    fn failed(&self) -> impl FnOnce(Errno) -> Error {
        Error::os("write files into", self.tree)
    }
}

/// Creates and opens a directory that only the host can enter.
fn make_dir(parent: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    mkdirat(&parent, name, Mode::RWXU)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(&parent, name, flags, Mode::empty())
}

/// Refuses a directory that another user put in the place of the one just created.
fn check_own(dir: OwnedFd) -> Result<OwnedFd, Errno> {
    let found = rustix::fs::fstat(&dir)?;
    if found.st_uid == rustix::process::geteuid().as_raw() { Ok(dir) } else { Err(Errno::PERM) }
}

/// Gives the open entry to the sandbox's user with exactly `mode`, whatever the umask says.
fn give_to_agent(entry: impl AsFd, mode: u32) -> Result<(), Errno> {
    fchown(&entry, Some(Uid::from_raw(SANDBOX_UID)), Some(Gid::from_raw(SANDBOX_UID)))?;
    fchmod(&entry, Mode::from_raw_mode(mode))
}
