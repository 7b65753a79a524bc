//! Binds private unix sockets where no other user can interfere, replaces them without a gap, and removes them on drop.
//!
//! A socket is bound under a temporary name and renamed to its path. So a stale socket is never in the way, and a
//! client finds either the old socket or the new one. Symlinks, other users' files and files that are not sockets are
//! refused, never removed.

use std::{
    fs, io,
    os::{
        fd::AsRawFd,
        unix::{
            fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt},
            net::UnixListener,
        },
    },
    path::{Path, PathBuf},
};

use platform_core::limit::MAX_SOCKET_PATH;
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use tokio::net::UnixStream;

use crate::report;

/// Reason why a socket or its directory cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel keeps at most [`MAX_SOCKET_PATH`] bytes of a socket's path.
    #[error("socket path {} is {} bytes long, at most {MAX_SOCKET_PATH} are possible: choose a shorter directory", path.display(), path.as_os_str().len())]
    PathTooLong {
        /// The path.
        path: PathBuf,
    },
    /// Another user could redirect the link.
    #[error("{} is a symbolic link; it must be {expected} itself", path.display())]
    Symlink {
        /// The path.
        path: PathBuf,
        /// Expected kind of file.
        expected: &'static str,
    },
    /// Another kind of file exists at the path.
    #[error("{} exists and is not {expected}: move it away", path.display())]
    Occupied {
        /// The path.
        path: PathBuf,
        /// Expected kind of file.
        expected: &'static str,
    },
    /// The path belongs to another user, who could replace it at any time.
    #[error("{} belongs to uid {owner}, not to this process's uid {own}", path.display())]
    Foreign {
        /// The path.
        path: PathBuf,
        /// Owner of the path.
        owner: u32,
        /// User of this process.
        own: u32,
    },
    /// The system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// Operation that failed.
        action: &'static str,
        /// Path of the operation.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
}

impl Error {
    fn io<'p>(action: &'static str, path: &'p Path) -> impl FnOnce(io::Error) -> Self + use<'p> {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

/// Connects to the socket at `path`, which another user may be able to replace. Opens the path without following links,
/// checks that it is a socket, and connects to the opened file. Cancel safe.
///
/// # Errors
/// If anything else is there, a link to a socket included; and if the system refuses.
pub async fn connect(path: &Path) -> io::Result<UnixStream> {
    let socket = open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&socket)?.st_mode) != FileType::Socket {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no socket, but something else"));
    }
    UnixStream::connect(format!("/proc/self/fd/{}", socket.as_raw_fd())).await
}

/// Returns `path` with the links in its directories resolved, so that two names of one socket are equal. The socket
/// itself is not followed.
#[must_use]
pub fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_error| path.to_owned());
    match path.parent().zip(path.file_name()) {
        Some((dir, name)) => fs::canonicalize(dir).unwrap_or_else(|_missing| resolved(dir)).join(name),
        None => path,
    }
}

/// Creates the directory `path`, or accepts it if it belongs to this user. Sets exactly `mode`, regardless of the
/// umask. The directory above must exist; [`create_dir`](crate::state_file::create_dir) creates that as well.
///
/// # Errors
/// If another kind of file is there, or the system refuses.
pub fn private_dir(path: &Path, mode: u32) -> Result<(), Error> {
    match fs::DirBuilder::new().mode(mode).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let found = fs::symlink_metadata(path).map_err(Error::io("look at", path))?;
            check_own(path, &found, Kind::Directory)?;
        }
        Err(error) => return Err(Error::io("create directory", path)(error)),
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(Error::io("set the mode of", path))
}

/// A bound socket. Its file is removed on drop, unless another process has bound a new socket over it since.
#[derive(Debug)]
pub struct PrivateSocket {
    path: PathBuf,
    inode: (u64, u64),
}

impl PrivateSocket {
    /// Binds `path` with `mode`, in a directory that [`private_dir`] has prepared. The listener does not block.
    ///
    /// # Errors
    /// If the path is too long, another kind of file is there, or the system refuses.
    pub fn bind(path: &Path, mode: u32) -> Result<(Self, UnixListener), Error> {
        // The temporary name is as short as the shortest name in use, so that it fits wherever the socket itself does.
        let temporary = path.with_file_name(format!(".{:07x}", crate::random::bits() & 0xfff_ffff));
        if path.as_os_str().len().max(temporary.as_os_str().len()) > MAX_SOCKET_PATH {
            return Err(Error::PathTooLong { path: path.to_owned() });
        }
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => check_own(path, &found.map_err(Error::io("look at", path))?, Kind::Socket)?,
        }
        let listener = UnixListener::bind(&temporary).map_err(Error::io("bind", path))?;
        let socket = move_into_place(&temporary, path, mode)
            .inspect_err(|_error| drop(fs::remove_file(&temporary)))?;
        listener.set_nonblocking(true).map_err(Error::io("make non-blocking", path))?;
        Ok((socket, listener))
    }
}

fn move_into_place(temporary: &Path, path: &Path, mode: u32) -> Result<PrivateSocket, Error> {
    // Changes apply to the opened file, because other users may be able to write to the directory and replace the name.
    let socket = open(temporary, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| Error::io("look at", path)(errno.into()))?;
    let opened = PathBuf::from(format!("/proc/self/fd/{}", socket.as_raw_fd()));
    let found = fs::metadata(&opened).map_err(Error::io("look at", path))?;
    check_own(&opened, &found, Kind::Socket)?;
    fs::set_permissions(&opened, fs::Permissions::from_mode(mode))
        .map_err(Error::io("set the mode of", path))?;
    fs::rename(temporary, path).map_err(Error::io("put in place", path))?;
    Ok(PrivateSocket { path: path.to_owned(), inode: (found.dev(), found.ino()) })
}

impl Drop for PrivateSocket {
    fn drop(&mut self) {
        let is_ours =
            fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.inode);
        if is_ours
            && let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            let path = self.path.display();
            tracing::warn!(%path, error = report::chain(&error), "socket file not removed");
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Directory,
    Socket,
}

/// Checks that the file at `path` has this kind and belongs to this user.
fn check_own(path: &Path, found: &fs::Metadata, kind: Kind) -> Result<(), Error> {
    let (is_expected, expected) = match kind {
        Kind::Directory => (found.is_dir(), "a directory"),
        Kind::Socket => (found.file_type().is_socket(), "a socket"),
    };
    let own = rustix::process::geteuid().as_raw();
    let path = path.to_owned();
    match () {
        () if found.is_symlink() => Err(Error::Symlink { path, expected }),
        () if !is_expected => Err(Error::Occupied { path, expected }),
        () if found.uid() != own => Err(Error::Foreign { path, owner: found.uid(), own }),
        () => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::{fs::symlink, net::UnixStream};

    use super::*;

    fn mode_of(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_socket_has_its_mode_and_is_removed_on_drop() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("llm.sock");
        let (socket, _listener) = PrivateSocket::bind(&path, 0o666).unwrap();
        assert_eq!(mode_of(&path), 0o666);
        assert!(UnixStream::connect(&path).is_ok());
        drop(socket);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_stale_socket_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("llm.sock");
        let (stale, stale_listener) = PrivateSocket::bind(&path, 0o600).unwrap();
        drop(stale_listener);
        let (_fresh, _listener) = PrivateSocket::bind(&path, 0o600).unwrap();
        drop(stale);
        assert!(UnixStream::connect(&path).is_ok());
    }

    #[test]
    fn symlinks_and_other_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        let file = dir.path().join("file");
        fs::write(&file, "precious").unwrap();
        symlink(&file, &link).unwrap();
        assert!(matches!(PrivateSocket::bind(&link, 0o600), Err(Error::Symlink { .. })));
        assert!(matches!(PrivateSocket::bind(&file, 0o600), Err(Error::Occupied { .. })));
        assert!(matches!(private_dir(&file, 0o700), Err(Error::Occupied { .. })));
        assert_eq!(fs::read(&file).unwrap(), b"precious");
        let elsewhere = dir.path().join("elsewhere");
        symlink(dir.path(), &elsewhere).unwrap();
        assert!(matches!(private_dir(&elsewhere, 0o700), Err(Error::Symlink { .. })));
    }

    #[test]
    fn foreign_directories_and_sockets_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("llm.sock");
        let _stale = UnixListener::bind(&path).unwrap();
        let theirs = std::os::unix::fs::chown(&path, Some(12345), None);
        assert!(theirs.is_ok(), "this test gives a file away and must run as root");
        assert!(matches!(PrivateSocket::bind(&path, 0o600), Err(Error::Foreign { owner: 12345, .. })));
        std::os::unix::fs::chown(dir.path(), Some(12345), None).unwrap();
        assert!(matches!(private_dir(dir.path(), 0o700), Err(Error::Foreign { owner: 12345, .. })));
    }

    #[test]
    fn a_path_of_108_bytes_is_refused_with_advice() {
        let dir = tempfile::tempdir().unwrap();
        let room = MAX_SOCKET_PATH - dir.path().as_os_str().len() - "/".len();
        let longest = dir.path().join("s".repeat(room));
        assert_eq!(longest.as_os_str().len(), 107);
        let (_socket, _listener) = PrivateSocket::bind(&longest, 0o600).unwrap();
        let error =
            PrivateSocket::bind(&dir.path().join("s".repeat(room + 1)), 0o600).unwrap_err().to_string();
        assert!(
            error.contains("is 108 bytes long, at most 107 are possible: choose a shorter directory"),
            "{error}"
        );
    }

    #[test]
    fn a_private_directory_gets_exactly_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("runs");
        private_dir(&path, 0o700).unwrap();
        assert_eq!(mode_of(&path), 0o700);
        private_dir(&path, 0o711).unwrap();
        assert_eq!(mode_of(&path), 0o711);
    }
}
