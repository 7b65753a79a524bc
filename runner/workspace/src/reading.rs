//! Reads files an agent has left, which it may still be changing to mislead the reader.

use std::{
    fs::File,
    io::Read,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    path::Path,
};

use platform_core::limit::ByteSize;
use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat2},
    io::Errno,
};

use super::error::{
    Error,
    Unreadable::{self, Elsewhere, Linked, Missing, NotAFile, TooLarge},
};

/// Rules the kernel applies at each step, so nothing can be swapped between a check and an open.
const RESOLVE_BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);
/// Number of attempts for an open that another change in the tree disturbed.
const MAX_OPEN_TRIES: u32 = 64;

/// Reads `tree/relative`.
pub(super) fn read(tree: &Path, relative: &Path, max_size: ByteSize) -> Result<Vec<u8>, Error> {
    let unreadable = |why| Error::Unreadable { path: relative.to_owned(), why };
    let failed = |error: std::io::Error| Error::io("read", &tree.join(relative))(error);
    let root = root(tree).map_err(|error| Error::io("open", tree)(error.into()))?;
    // Non-blocking, because it may be a pipe.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = open(&root, relative, flags)
        .map_err(|error| unreadable_reason(error).map_or_else(|| failed(error.into()), unreadable))?;
    let file = File::from(file);
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(unreadable(NotAFile));
    }
    if found.nlink() != 1 {
        return Err(unreadable(Linked { names: found.nlink() }));
    }
    let mut content = Vec::new();
    // Its size may change while it is read.
    file.take(max_size.0.saturating_add(1)).read_to_end(&mut content).map_err(failed)?;
    if content.len() > max_size.as_usize() {
        return Err(unreadable(TooLarge { max_size }));
    }
    Ok(content)
}

/// Opens the tree itself, which is in a directory of ours.
pub(super) fn root(tree: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(
        CWD,
        tree,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

/// Opens `relative` below `root`, and nothing else.
pub(super) fn open(root: impl AsFd, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut tries = 0..MAX_OPEN_TRIES;
    loop {
        match openat2(root.as_fd(), relative, flags | OFlags::CLOEXEC, Mode::empty(), RESOLVE_BENEATH) {
            Err(Errno::AGAIN | Errno::INTR) if tries.next().is_some() => {}
            other => return other,
        }
    }
}

/// Returns why an agent's file must not be read, if `error` shows that; `None` for other errors.
const fn unreadable_reason(error: Errno) -> Option<Unreadable> {
    match error {
        Errno::NOENT | Errno::NOTDIR => Some(Missing),
        Errno::LOOP | Errno::XDEV => Some(Elsewhere),
        // The file is a socket.
        Errno::NXIO => Some(NotAFile),
        _ => None,
    }
}
