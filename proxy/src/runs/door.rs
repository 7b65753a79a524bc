//! Where a run's calls come in, and the directory that is there for it.

use std::{fs, io, os::unix::fs::DirBuilderExt, path::PathBuf};

use platform_core::{control::SocketDir, name::path::SOCKET_FILE};
use platform_runtime::settings::StaticRun;

/// Where a run's calls come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Door {
    /// At a socket in a directory of its own.
    Directory(SocketDir),
    /// At a socket where the configuration says.
    Path(PathBuf),
    /// At the shared listener.
    Shared,
}

impl Door {
    /// That of a run of the configuration.
    pub(super) fn of(run: &StaticRun) -> Self {
        run.socket.clone().map_or(Self::Shared, Self::Path)
    }

    /// Its directory, if it has one of its own.
    pub(super) const fn dir(&self) -> Option<&SocketDir> {
        match self {
            Self::Directory(dir) => Some(dir),
            Self::Path(_) | Self::Shared => None,
        }
    }

    /// Makes the directory of a socket that the configuration names, if only that is missing. If that fails, the socket says
    /// why.
    pub(super) fn make_parent(&self) {
        if let Self::Path(path) = self
            && let Some(dir) = path.parent().filter(|dir| !dir.exists())
            && let Err(error) = fs::DirBuilder::new().mode(0o711).create(dir)
        {
            tracing::warn!(dir = %dir.display(), %error, "cannot make the directory of a socket");
        }
    }

    /// Whether it has a directory of its own, and that is there.
    pub(super) fn is_there(&self) -> bool {
        self.dir().is_some_and(|dir| dir.path.exists())
    }

    /// Removes a directory that is the run's own. The socket in it is gone, or goes with its listener right now.
    pub(super) fn remove(&self) {
        let Self::Directory(SocketDir { path, .. }) = self else { return };
        for removed in [fs::remove_file(path.join(SOCKET_FILE)), fs::remove_dir(path)] {
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(path = %path.display(), %error, "socket directory stays behind");
                }
                _ => {}
            }
        }
    }
}
