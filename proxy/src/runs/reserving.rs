//! Creates socket directories before their runs exist: a warm container has one mounted already.
//!
//! The directories outlive the proxy like those of runs, but nothing about them is stored. The process that requested
//! one registers a run with its name, or gives it back.

use platform_core::{control::SocketDir, id::SocketDirName};
use platform_runtime::socket;

use super::{Error, Runs, run_listener::RunListener};

impl Runs {
    /// Creates an empty directory for a future run, unless it exists.
    pub(crate) fn reserve(&self, name: &SocketDirName) -> Result<SocketDir, Error> {
        let dir = self.socket_dir(name);
        // The agent's uid must be able to pass through, and to do nothing else.
        socket::private_dir(&dir.path, 0o711)?;
        Ok(dir)
    }

    /// Removes a directory that no run uses. The caller ensures that no run is registered with it meanwhile.
    pub(crate) fn release(&self, name: &SocketDirName) -> Result<(), Error> {
        let dir = self.socket_dir(name);
        let path = dir.path.clone();
        if let Some(owner) = self.claims.owner(name) {
            return Err(Error::SocketInUse { path, owner });
        }
        RunListener::Directory(dir).remove();
        // The log says why.
        if path.is_dir() { Err(Error::Leftover { path }) } else { Ok(()) }
    }

    pub(super) fn socket_dir(&self, name: &SocketDirName) -> SocketDir {
        SocketDir { path: self.dir.join(name.as_str()), name: name.clone() }
    }
}
