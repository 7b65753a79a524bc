//! Writes one change at a time below a directory: to a file beside its place, which is then renamed.

use std::{
    ffi::OsString,
    fs::File,
    io::Write,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, Gid, Mode, OFlags, RenameFlags, Stat, Uid, fchmod, fchown, fstat, mkdirat, openat,
        renameat_with, unlinkat,
    },
    io::Errno,
};
use sha2::{Digest, Sha256};

use super::{
    ApplyStep,
    error::{ApplyError, ApplyProblem},
    present::PresentFile,
};
use crate::{
    beneath::{TreeRoot, Unreadable},
    changes::{ChangeForm, NewSide},
    manifest::ContentHash,
    path::RelativePath,
    result_tree::{ResultTree, reason},
    stage_writer::BUFFER_SIZE,
};

/// Beginning of the names of files that are being written.
const TEMPORARY_PREFIX: &str = ".sluice-";
/// Bits of a mode that say who may read.
const READ_BITS: u32 = 0o444;
/// Bits of a mode that say who may execute.
const EXECUTE_BITS: u32 = 0o111;

/// Writing of changes, and those that are written.
pub(super) struct Writing<'w> {
    pub(super) target: &'w Path,
    pub(super) root: &'w TreeRoot,
    pub(super) result: &'w ResultTree,
    pub(super) applied: Vec<RelativePath>,
}

impl Writing<'_> {
    /// Writes the change of `step`, if the directory still has the file that was judged.
    pub(super) fn write(&mut self, step: &ApplyStep<'_>) -> Result<(), ApplyError> {
        let path = &step.change.path;
        if let Some(why) = PresentFile::read(self.root, path).conflict(step) {
            let problems = vec![ApplyProblem::Conflict { path: path.clone(), why }];
            return Err(self.refused(problems));
        }
        match &step.change.new {
            None => self.remove(path)?,
            Some(NewSide::Link(_)) => return Err(self.refused(vec![ApplyProblem::Link(path.clone())])),
            Some(NewSide::File { executable, .. }) => {
                let permission = if *executable { EXECUTE_BITS } else { 0 };
                self.write_file(step, permission)?;
            }
        }
        self.applied.push(path.clone());
        Ok(())
    }

    /// Returns `problems` as an error, which says what is written if something is.
    fn refused(&self, problems: Vec<ApplyProblem>) -> ApplyError {
        if self.applied.is_empty() {
            return ApplyError::Refused { problems };
        }
        let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
        ApplyError::Io {
            action: "write into",
            path: self.target.to_owned(),
            applied: self.applied.clone(),
            source: std::io::Error::other(texts.join("; ")),
        }
    }

    fn failed(&self, action: &'static str, path: &RelativePath) -> impl Fn(std::io::Error) -> ApplyError {
        let applied = self.applied.clone();
        let path = self.target.join(path.to_string());
        move |source| ApplyError::Io { action, path: path.clone(), applied: applied.clone(), source }
    }

    fn write_file(&self, step: &ApplyStep<'_>, permission: u32) -> Result<(), ApplyError> {
        let path = &step.change.path;
        let failed = self.failed("write", path);
        let parent = self.make_parent(path).map_err(|errno| failed(errno.into()))?;
        let facts = fstat(&parent).map_err(|errno| failed(errno.into()))?;
        let temporary = TemporaryFile::create(&parent, permission).map_err(|errno| failed(errno.into()))?;
        self.copy(step, &temporary)?;
        let replaced = self.root.open_beneath(path.as_path(), OFlags::PATH | OFlags::NOFOLLOW);
        let replaced = replaced.and_then(fstat).ok();
        temporary.take_after(replaced.as_ref(), &facts, permission).map_err(|errno| failed(errno.into()))?;
        let flags = match step.change.form {
            ChangeForm::Added => RenameFlags::NOREPLACE,
            _ => RenameFlags::empty(),
        };
        temporary.rename(path, flags).map_err(|errno| failed(errno.into()))
    }

    /// Copies the new content, which must be the one that was judged.
    fn copy(&self, step: &ApplyStep<'_>, temporary: &TemporaryFile<'_>) -> Result<(), ApplyError> {
        let path = &step.change.path;
        let unreadable = |why: Unreadable| {
            self.refused(vec![ApplyProblem::Unreadable { path: path.clone(), why: reason(why) }])
        };
        let mut source = self.result.open_file(path).map_err(unreadable)?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; BUFFER_SIZE];
        while let len @ 1.. = source.read_piece(&mut buffer).map_err(unreadable)? {
            hasher.update(&buffer[..len]);
            (&temporary.file).write_all(&buffer[..len]).map_err(self.failed("write", path))?;
        }
        if step.new_hash != Some(ContentHash::finish(hasher)) {
            return Err(unreadable(Unreadable::Changed));
        }
        temporary.file.sync_all().map_err(self.failed("write", path))
    }

    /// Opens the directory of `path`, and creates those on the way that are missing.
    fn make_parent(&self, path: &RelativePath) -> Result<OwnedFd, Errno> {
        let parent = path.as_path().parent().unwrap_or(Path::new(""));
        let mut above = self.root.open_dir(Path::new(""))?;
        let mut opened = Path::new("").to_owned();
        for name in parent {
            opened.push(name);
            above = match self.root.open_dir(&opened) {
                Err(Errno::NOENT) => {
                    mkdirat(&above, name, Mode::from_raw_mode(0o777))?;
                    let dir = self.root.open_dir(&opened)?;
                    give_to_owner_of(&dir, &fstat(&above)?)?;
                    dir
                }
                found => found?,
            };
        }
        Ok(above)
    }

    /// Removes the file, and the directories above it that become empty.
    fn remove(&self, path: &RelativePath) -> Result<(), ApplyError> {
        let failed = self.failed("remove", path);
        let parent = path.as_path().parent().unwrap_or(Path::new(""));
        let dir = self.root.open_dir(parent).map_err(|errno| failed(errno.into()))?;
        unlinkat(&dir, path.name(), AtFlags::empty()).map_err(|errno| failed(errno.into()))?;
        let mut empty = path.parent();
        while let Some(dir) = empty {
            let above = dir.as_path().parent().unwrap_or(Path::new(""));
            let removed =
                self.root.open_dir(above).and_then(|above| unlinkat(&above, dir.name(), AtFlags::REMOVEDIR));
            // It has other files, or another process removed it.
            if removed.is_err() {
                break;
            }
            empty = dir.parent();
        }
        Ok(())
    }
}

/// File beside its place, removed on drop unless it was renamed.
struct TemporaryFile<'p> {
    parent: &'p OwnedFd,
    name: OsString,
    file: File,
}

impl<'p> TemporaryFile<'p> {
    fn create(parent: &'p OwnedFd, permission: u32) -> Result<Self, Errno> {
        let name = OsString::from(format!("{TEMPORARY_PREFIX}{:032x}", platform_runtime::random::bits()));
        let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(parent, &name, new, Mode::from_raw_mode(0o666 | permission))?;
        Ok(Self { parent, name, file: File::from(file) })
    }

    /// Takes owner and mode of the file that is replaced, or else the owner of the directory.
    fn take_after(&self, replaced: Option<&Stat>, dir: &Stat, permission: u32) -> Result<(), Errno> {
        let Some(replaced) = replaced else { return give_to_owner_of(&self.file, dir) };
        let readable = replaced.st_mode & READ_BITS;
        let mode = replaced.st_mode & 0o666 | (readable >> 2) & permission;
        give(&self.file, replaced.st_uid, replaced.st_gid)?;
        fchmod(&self.file, Mode::from_raw_mode(mode))
    }

    fn rename(self, path: &RelativePath, flags: RenameFlags) -> Result<(), Errno> {
        renameat_with(self.parent, &self.name, self.parent, path.name(), flags)
    }
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        // After a rename the name is gone.
        if let Err(error) = unlinkat(self.parent, &self.name, AtFlags::empty())
            && error != Errno::NOENT
        {
            let error = platform_runtime::report::chain(&error);
            tracing::warn!(name = %self.name.display(), error, "a temporary file was not removed");
        }
    }
}

fn give_to_owner_of(entry: impl AsFd, other: &Stat) -> Result<(), Errno> {
    give(entry, other.st_uid, other.st_gid)
}

/// Gives `entry` to another user, as far as this one may.
fn give(entry: impl AsFd, uid: u32, gid: u32) -> Result<(), Errno> {
    let found = fstat(&entry)?;
    if (found.st_uid, found.st_gid) == (uid, gid) {
        return Ok(());
    }
    match fchown(&entry, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))) {
        Err(Errno::PERM) => Ok(()),
        given => given,
    }
}
