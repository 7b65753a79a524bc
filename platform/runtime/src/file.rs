//! Reads and writes small files. They are secrets that other users must not read, state of this user's own, or files
//! that are replaced as a whole. This module does not interpret their content.

use std::{
    fs::{self, File, Metadata, OpenOptions, Permissions},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

use platform_core::{limit::ByteSize, secret::Secret};
use rustix::{fs::OFlags, io::Errno};

use crate::{
    random,
    trust::{self, Exposure, Others, Trusted},
};

/// Permissions of all users but the owner.
const OTHERS_BITS: u32 = 0o077;
/// Permissions in the mode of a file.
const MODE_BITS: u32 = 0o777;
/// Mode of a state file of this user.
const OWN_MODE: u32 = 0o600;

/// Reason why a file of secrets is not read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// Other users can read or change it.
    #[error(transparent)]
    Exposed(#[from] Exposure),
    /// The system refused, or the file is too large or not text.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Returns the secret in `path`, of at most `largest` bytes. Links are followed: operators and orchestrators link
/// secrets.
///
/// # Errors
/// If users other than those in `trusted` can read or change it, if it is larger or not text, or if the system refuses.
pub fn secret(path: &Path, largest: ByteSize, trusted: &Trusted) -> Result<Secret, Unread> {
    let (file, metadata) = open_regular(OpenOptions::new().read(true), OFlags::empty(), path)?;
    trust::check_opened(path, &metadata, trusted)?;
    Ok(Secret::new(read_bounded(file, largest)?))
}

/// Returns the secret in a file that this program created. Only its owner may read it, and a link is refused.
///
/// # Errors
/// As for [`secret`].
pub fn private(path: &Path, largest: ByteSize) -> Result<Secret, Unread> {
    private_of(path, largest, &Trusted::own())
}

/// Returns the secret in a file that only its owner may read, who may be any user in `trusted`. A link is refused.
pub(crate) fn private_of(path: &Path, largest: ByteSize, trusted: &Trusted) -> Result<Secret, Unread> {
    let (file, metadata) = open_secret(path, trusted)?;
    if metadata.mode() & OTHERS_BITS != 0 {
        return Err(Exposure::Readable { path: path.to_owned(), to: Others::EveryoneAndGroup }.into());
    }
    Ok(Secret::new(read_bounded(file, largest)?))
}

/// Opens a file that other users can neither read nor change, and that is not a link.
pub(crate) fn open_secret(path: &Path, trusted: &Trusted) -> Result<(File, Metadata), Unread> {
    let (file, metadata) = open_regular(OpenOptions::new().read(true), OFlags::NOFOLLOW, path)?;
    trust::check_opened(path, &metadata, trusted)?;
    Ok((file, metadata))
}

/// Returns the text in `path`, of at most `largest` bytes.
///
/// # Errors
/// If it is not a regular file, larger or not text, or if the system refuses.
pub fn text(path: &Path, largest: ByteSize) -> io::Result<String> {
    read_bounded(open_regular(OpenOptions::new().read(true), OFlags::empty(), path)?.0, largest)
}

/// Opens a state file of this user with `options`. Sets its mode to 0600, regardless of the umask and of its previous
/// mode.
///
/// # Errors
/// If a symbolic link or anything but a regular file is there, if it belongs to another user, or if the system refuses.
pub fn open_own(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let (file, metadata) = open_regular(options.mode(OWN_MODE), OFlags::NOFOLLOW, path)?;
    let own = rustix::process::geteuid().as_raw();
    if metadata.uid() != own {
        let words = format!("it belongs to uid {}, not to this process's uid {own}", metadata.uid());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, words));
    }
    if metadata.mode() & 0o7777 != OWN_MODE {
        file.set_permissions(Permissions::from_mode(OWN_MODE))?;
    }
    Ok(file)
}

/// Returns the content of a state file of this user.
///
/// # Errors
/// As for [`open_own`].
pub fn own(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open_own(OpenOptions::new().read(true), path)?.read_to_end(&mut content)?;
    Ok(content)
}

/// Opens a regular file. Fails at once, without blocking, if there is a pipe or a device instead.
fn open_regular(options: &mut OpenOptions, flags: OFlags, path: &Path) -> io::Result<(File, Metadata)> {
    let flags =
        i32::try_from((flags | OFlags::NONBLOCK | OFlags::NOCTTY).bits()).map_err(io::Error::other)?;
    let file =
        options.custom_flags(flags).open(path).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::LOOP) => {
                io::Error::new(error.kind(), "it is a symbolic link: put the file itself in its place")
            }
            _ => error,
        })?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok((file, metadata))
}

fn read_bounded(file: File, largest: ByteSize) -> io::Result<String> {
    let mut text = String::new();
    file.take(largest.0 + 1).read_to_string(&mut text)?;
    if text.len() as u64 > largest.0 {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {largest}")));
    }
    Ok(text)
}

/// Replaces `path` with a file that has `content` and exactly `mode`.
///
/// # Errors
/// If the system refuses; then the previous file is unchanged.
pub fn replace(path: &Path, mode: u32, content: &[u8]) -> io::Result<()> {
    write_temporary(path, mode, content, |temporary, _file| fs::rename(temporary, path))
}

/// Replaces the content of an existing file, and keeps its mode and owner. A link stays: what it leads to is replaced.
///
/// # Errors
/// If the system refuses, also that the owner is kept; then the previous file is unchanged.
pub fn replace_content(path: &Path, content: &[u8]) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let earlier = fs::metadata(&path)?;
    write_temporary(&path, earlier.mode() & MODE_BITS, content, |temporary, file| {
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (earlier.uid(), earlier.gid()) {
            std::os::unix::fs::fchown(file, Some(earlier.uid()), Some(earlier.gid()))?;
        }
        file.sync_all()?;
        fs::rename(temporary, &path)
    })
}

/// Creates `path` with `content`, readable by its owner alone, where no file exists. It is on the disk when this
/// returns.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`], and any other error of the system.
pub fn create_private(path: &Path, content: &[u8]) -> io::Result<()> {
    create_prepared(path, content, |_file| Ok(()))
}

/// Creates a private file as [`create_private`] does, and calls `prepare` on it before it gets its name.
pub(crate) fn create_prepared(
    path: &Path,
    content: &[u8],
    prepare: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    write_temporary(path, OWN_MODE, content, |temporary, file| {
        prepare(file)?;
        file.sync_all()?;
        fs::hard_link(temporary, path)?;
        fs::remove_file(temporary)
    })
}

/// Writes a temporary file beside `path` and passes it to `place`, which gives it its name. Removes the temporary file
/// if that fails.
fn write_temporary(
    path: &Path,
    mode: u32,
    content: &[u8],
    place: impl FnOnce(&Path, &File) -> io::Result<()>,
) -> io::Result<()> {
    let temporary = path.with_file_name(format!(".{:032x}", random::bits()));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(content)?;
        place(&temporary, &file)
    })();
    if written.is_err() {
        drop(fs::remove_file(&temporary));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_FILE: ByteSize = ByteSize(8);

    #[test]
    fn files_readable_by_others_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        replace(&path, 0o600, b"12345678").unwrap();
        assert_eq!(private(&path, MAX_FILE).unwrap().expose(), "12345678");
        assert_eq!(secret(&link, MAX_FILE, &Trusted::own()).unwrap().expose(), "12345678");
        assert!(private(&link, MAX_FILE).is_err());
        for (mode, content) in [(0o640, "12345678"), (0o604, "12345678"), (0o600, "123456789")] {
            replace(&path, mode, content.as_bytes()).unwrap();
            assert!(private(&path, MAX_FILE).is_err(), "{mode:o} {content}");
        }
        for (mode, content) in [(0o604, "12345678"), (0o600, "123456789")] {
            replace(&path, mode, content.as_bytes()).unwrap();
            assert!(secret(&path, MAX_FILE, &Trusted::own()).is_err(), "{mode:o} {content}");
        }
    }

    #[test]
    fn a_pipe_or_device_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        for path in [&pipe, Path::new("/dev/zero"), dir.path()] {
            assert!(text(path, MAX_FILE).unwrap_err().to_string().contains("not a regular file"), "{path:?}");
            assert!(secret(path, MAX_FILE, &Trusted::own()).is_err() && own(path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn state_is_private_and_never_behind_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let link = dir.path().join("link");
        fs::write(&path, "state").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        assert_eq!(own(&path).unwrap(), b"state");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let refused = open_own(OpenOptions::new().append(true).create(true), &link).unwrap_err();
        assert!(refused.to_string().contains("is a symbolic link"), "{refused}");
        std::os::unix::fs::chown(&path, Some(12345), None).expect("this test must run as root");
        assert!(own(&path).unwrap_err().to_string().contains("belongs to uid 12345"));
    }

    #[test]
    fn new_content_keeps_owner_mode_and_links() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let link = dir.path().join("link");
        replace(&file, 0o640, b"first").unwrap();
        std::os::unix::fs::chown(&file, Some(12345), Some(54321)).expect("this test must run as root");
        std::os::unix::fs::symlink("file", &link).unwrap();
        replace_content(&link, b"second").unwrap();
        let found = fs::metadata(&file).unwrap();
        assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (12345, 54321, 0o640));
        assert!(link.is_symlink() && fs::read(&file).unwrap() == b"second");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no temporary file is left");
        assert!(replace_content(&dir.path().join("absent"), b"x").is_err());
    }

    #[test]
    fn a_file_is_replaced_as_a_whole() {
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
