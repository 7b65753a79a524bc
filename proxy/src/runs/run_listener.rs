//! Describes the listener of a run, and manages the directory of its socket.

use std::{fs, io, path::PathBuf};

use platform_core::control::SocketDir;
use platform_runtime::{report, settings::StaticRun, socket};

/// Listener on which a run's calls arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RunListener {
    /// A socket in its own directory.
    Directory(SocketDir),
    /// A socket at a path of the configuration.
    Path(PathBuf),
    /// The shared listener.
    Shared,
}

impl RunListener {
    /// Returns the listener of a run of the configuration.
    pub(super) fn of(run: &StaticRun) -> Self {
        run.socket.clone().map_or(Self::Shared, Self::Path)
    }

    /// Returns its own directory, if it has one.
    pub(super) const fn dir(&self) -> Option<&SocketDir> {
        match self {
            Self::Directory(dir) => Some(dir),
            Self::Path(_) | Self::Shared => None,
        }
    }

    /// Creates the directory of a socket that the configuration names, if only its last part is missing.
    pub(super) fn create_parent(&self) -> Result<(), socket::Error> {
        let Self::Path(path) = self else { return Ok(()) };
        match path.parent().filter(|dir| !dir.exists()) {
            Some(dir) => socket::private_dir(dir, 0o711),
            None => Ok(()),
        }
    }

    /// Returns whether it has its own directory, and that exists.
    pub(super) fn dir_exists(&self) -> bool {
        self.dir().is_some_and(|dir| dir.path.exists())
    }

    /// Removes a directory that is the run's own, with its content: its socket, and temporary files of proxies that
    /// were killed. A path that is not a directory was not created by this proxy, and stays.
    pub(super) fn remove(&self) {
        let Self::Directory(SocketDir { path, .. }) = self else { return };
        if !fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
            return;
        }
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(path = %path.display(), error = report::chain(&error), "socket directory not removed");
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use platform_core::{id::SocketDirName, name::path::SOCKET_FILE};

    use super::*;

    #[test]
    fn a_half_made_socket_goes_with_the_directory() {
        let runs = tempfile::tempdir().unwrap();
        let name = SocketDirName::from_random(7);
        let path = runs.path().join(name.as_str());
        fs::create_dir(&path).unwrap();
        let _half_made = UnixListener::bind(path.join(".0123abc")).unwrap();
        let _in_place = UnixListener::bind(path.join(SOCKET_FILE)).unwrap();
        let listener = RunListener::Directory(SocketDir { path, name });
        listener.remove();
        assert_eq!(fs::read_dir(runs.path()).unwrap().count(), 0);
        listener.remove();
    }
}
