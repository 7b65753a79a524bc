//! Small files of ours: those that nobody but their owner may read, and those that are there whole or not at all. Not here: what is
//! in them, and files that a group may read.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

use platform_core::{limit::ByteSize, secret::Secret};
use rustix::fs::OFlags;

use crate::random;

/// Permissions of everybody but the owner.
const OTHERS: u32 = 0o077;

/// Why a file that is private is not read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// Others than its owner may read or write it.
    #[error("it has mode {mode:03o}")]
    Exposed {
        /// Its mode.
        mode: u32,
    },
    /// The system said no, or it is larger than it may be.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What is done with a symbolic link in a file's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// It leads to the file: operators and orchestrators link secrets.
    Follow,
    /// It is none of ours.
    Refuse,
}

/// The text in `path`, of at most `largest` bytes. Who may read it is asked of the very file that is read.
///
/// # Errors
/// If others than its owner may read or write it, if it is larger or no text, or if the system refuses.
pub fn private(path: &Path, link: Link, largest: ByteSize) -> Result<Secret, Unread> {
    let flags = match link {
        Link::Follow => OFlags::empty(),
        Link::Refuse => OFlags::NOFOLLOW,
    };
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let mode = file.metadata()?.mode() & 0o777;
    if mode & OTHERS != 0 {
        return Err(Unread::Exposed { mode });
    }
    let mut text = String::new();
    file.take(largest.0 + 1).read_to_string(&mut text)?;
    let text = Secret::new(text);
    if text.expose().len() as u64 > largest.0 {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge).into());
    }
    Ok(text)
}

/// Puts `content` into `path` with exactly `mode`, whatever is there.
///
/// # Errors
/// If the system refuses; then what was there still is.
pub fn replace(path: &Path, mode: u32, content: &[u8]) -> io::Result<()> {
    aside(path, mode, content, |aside| fs::rename(aside, path))
}

/// The same where nothing is yet, for its owner alone, and on the disk when this returns.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`], and what else the system says.
pub fn create_private(path: &Path, content: &[u8]) -> io::Result<()> {
    aside(path, 0o600, content, |aside| {
        File::open(aside)?.sync_all()?;
        fs::hard_link(aside, path)?;
        fs::remove_file(aside)
    })
}

fn aside(
    path: &Path,
    mode: u32,
    content: &[u8],
    place: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let aside = path.with_file_name(format!(".{:032x}", random::bits()));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&aside)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(content)?;
        place(&aside)
    })();
    if written.is_err() {
        drop(fs::remove_file(&aside));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGEST: ByteSize = ByteSize(8);

    #[test]
    fn what_others_may_read_and_what_is_too_large_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("file"), dir.path().join("link"));
        std::os::unix::fs::symlink(&path, &link).unwrap();
        replace(&path, 0o600, b"12345678").unwrap();
        assert_eq!(private(&path, Link::Refuse, LARGEST).unwrap().expose(), "12345678");
        assert_eq!(private(&link, Link::Follow, LARGEST).unwrap().expose(), "12345678");
        assert!(private(&link, Link::Refuse, LARGEST).is_err());
        for (mode, content) in [(0o640, "12345678"), (0o604, "12345678"), (0o600, "123456789")] {
            replace(&path, mode, content.as_bytes()).unwrap();
            assert!(private(&path, Link::Follow, LARGEST).is_err(), "{mode:o} {content}");
        }
    }

    #[test]
    fn a_file_is_there_whole_and_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        create_private(&path, b"first").unwrap();
        assert_eq!(create_private(&path, b"second").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(
            (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().mode() & 0o777),
            (b"first".to_vec(), 0o600)
        );
        replace(&path, 0o644, b"third").unwrap();
        assert_eq!(
            (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().mode() & 0o777),
            (b"third".to_vec(), 0o644)
        );
        assert!(replace(&dir.path().join("none/file"), 0o600, b"").is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
