//! Reads files below a directory without leaving it, while a process that writes there tries to mislead the reader.

use std::{
    ffi::{CStr, OsString},
    fs::File,
    io::Read,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{ffi::OsStringExt, fs::MetadataExt},
    },
    path::{Path, PathBuf},
};

use platform_core::limit::ByteSize;
use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat2, readlinkat},
    io::Errno,
};

/// Rules the kernel applies at each step, so nothing can be swapped between a check and an open.
const RESOLVE_BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);
/// Number of attempts for an open that another change in the tree disturbed.
const MAX_OPEN_TRIES: u32 = 64;

/// Reason not to read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The file does not exist.
    #[error("does not exist")]
    Missing,
    /// A symbolic link is on the way to the file, or the path leads out of the tree.
    #[error("is not reached without leaving the directory or following a link")]
    Elsewhere,
    /// The path is a directory, socket, pipe or device.
    #[error("is not a file")]
    NotAFile,
    /// The file has further names.
    #[error("has {names} names (hard links) instead of one")]
    Linked {
        /// Number of names.
        names: u64,
    },
    /// The file is too large.
    #[error("is larger than {max_size}")]
    TooLarge {
        /// Largest size allowed.
        max_size: ByteSize,
    },
    /// Another process wrote to the file at the same time.
    #[error("changed while it was read")]
    Changed,
    /// The system refused.
    #[error("cannot be read")]
    Failed(#[source] Errno),
}

impl From<Errno> for Unreadable {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::NOTDIR => Self::Missing,
            Errno::LOOP | Errno::XDEV => Self::Elsewhere,
            // The file is a socket.
            Errno::NXIO => Self::NotAFile,
            other => Self::Failed(other),
        }
    }
}

/// Open directory with a tree that is read or written by relative paths.
#[derive(Debug)]
pub struct TreeRoot(OwnedFd);

impl TreeRoot {
    /// Opens the directory itself. The path to it is trusted, but its last name must not be a link.
    ///
    /// # Errors
    /// The system's, if `tree` is not a directory or cannot be entered.
    pub fn open(tree: &Path) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, tree, flags, Mode::empty()).map(Self)
    }

    /// Opens the directory `relative` as its own tree.
    ///
    /// # Errors
    /// As [`Self::open_beneath`].
    pub fn subtree(&self, relative: &Path) -> Result<Self, Errno> {
        self.open_dir(relative).map(Self)
    }

    /// Opens `relative` below the directory, and nothing else.
    ///
    /// # Errors
    /// The system's: `LOOP` or `XDEV` if the path leads through a link or out of the directory.
    pub fn open_beneath(&self, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut tries = 0..MAX_OPEN_TRIES;
        loop {
            match openat2(&self.0, relative, flags | OFlags::CLOEXEC, Mode::empty(), RESOLVE_BENEATH) {
                Err(Errno::AGAIN | Errno::INTR) if tries.next().is_some() => {}
                other => return other,
            }
        }
    }

    /// Opens the directory `relative` to list it, or to create entries in it.
    ///
    /// # Errors
    /// As [`Self::open_beneath`].
    pub fn open_dir(&self, relative: &Path) -> Result<OwnedFd, Errno> {
        let path = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
        self.open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW)
    }

    /// Opens the regular file `relative` to read it.
    ///
    /// # Errors
    /// [`Unreadable`], with the reason.
    pub fn open_file(&self, relative: &Path) -> Result<PlainFile, Unreadable> {
        // Non-blocking, because it may be a pipe.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        PlainFile::new(File::from(self.open_beneath(relative, flags)?))
    }

    /// Returns the content of the file `relative`, which has one name and at most `max_size` bytes.
    ///
    /// # Errors
    /// [`Unreadable`], with the reason.
    pub fn read_file(&self, relative: &Path, max_size: ByteSize) -> Result<Vec<u8>, Unreadable> {
        self.open_file(relative)?.with_one_name()?.content(max_size)
    }

    /// Returns the target of the link `relative`.
    ///
    /// # Errors
    /// [`Unreadable`], with the reason.
    pub fn read_link(&self, relative: &Path) -> Result<PathBuf, Unreadable> {
        let link = self.open_beneath(relative, OFlags::PATH | OFlags::NOFOLLOW)?;
        let target = readlinkat(&link, c"", Vec::new())?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }
}

impl AsFd for TreeRoot {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Regular file that is open for reading. Its content counts only if it stayed the same meanwhile.
#[derive(Debug)]
pub struct PlainFile {
    file: File,
    version: FileVersion,
    names: u64,
    remaining: u64,
}

/// Facts that differ after each change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileVersion {
    size: u64,
    mode: u32,
    modified: [i64; 2],
    changed: [i64; 2],
}

impl FileVersion {
    fn of(file: &File) -> Result<(Self, std::fs::Metadata), Unreadable> {
        let found = file.metadata().map_err(failed)?;
        let version = Self {
            size: found.len(),
            mode: found.mode(),
            modified: [found.mtime(), found.mtime_nsec()],
            changed: [found.ctime(), found.ctime_nsec()],
        };
        Ok((version, found))
    }
}

impl PlainFile {
    fn new(file: File) -> Result<Self, Unreadable> {
        let (version, found) = FileVersion::of(&file)?;
        if !found.is_file() {
            return Err(Unreadable::NotAFile);
        }
        Ok(Self { file, version, names: found.nlink(), remaining: version.size })
    }

    /// Refuses a file with several names: one of them may be outside the tree.
    ///
    /// # Errors
    /// [`Unreadable::Linked`].
    pub fn with_one_name(self) -> Result<Self, Unreadable> {
        if self.names == 1 { Ok(self) } else { Err(Unreadable::Linked { names: self.names }) }
    }

    /// Returns the size of the file when it was opened.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.version.size
    }

    /// Returns whether its owner may execute the file: the one bit of a mode that git keeps.
    #[must_use]
    pub const fn is_executable(&self) -> bool {
        self.version.mode & 0o100 != 0
    }

    /// Reads the next piece into `buffer` and returns its length; 0 at the end of a file that stayed the same.
    ///
    /// # Errors
    /// [`Unreadable::Changed`] as soon as the file is known to have changed.
    pub fn read_piece(&mut self, buffer: &mut [u8]) -> Result<usize, Unreadable> {
        let len = self.file.read(buffer).map_err(failed)?;
        let len_read = u64::try_from(len).unwrap_or(u64::MAX);
        self.remaining = self.remaining.checked_sub(len_read).ok_or(Unreadable::Changed)?;
        let is_at_end = len == 0 && !buffer.is_empty();
        if is_at_end && (self.remaining > 0 || FileVersion::of(&self.file)?.0 != self.version) {
            return Err(Unreadable::Changed);
        }
        Ok(len)
    }

    /// Returns the whole content, of at most `max_size` bytes.
    ///
    /// # Errors
    /// [`Unreadable`], if the file is larger or changed.
    pub fn content(mut self, max_size: ByteSize) -> Result<Vec<u8>, Unreadable> {
        if self.version.size > max_size.0 {
            return Err(Unreadable::TooLarge { max_size });
        }
        let mut content = vec![0; ByteSize(self.version.size).as_usize().saturating_add(1)];
        let mut len = 0;
        while let read @ 1.. = self.read_piece(&mut content[len..])? {
            len += read;
        }
        content.truncate(len);
        Ok(content)
    }
}

fn failed(error: std::io::Error) -> Unreadable {
    Errno::from_io_error(&error).map_or(Unreadable::Failed(Errno::IO), Unreadable::from)
}

/// Returns whether `name` is one that each directory has for itself and its parent.
pub(crate) fn is_dot(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}
