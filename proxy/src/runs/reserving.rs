//! Socket directories that are there before their runs: a container that waits for a run has one mounted already.
//!
//! They outlive the proxy like those of runs, and nothing is kept of them: whoever asked for one registers a run with its name,
//! or gives it back.

use platform_core::{
    control::SocketDir,
    id::{RunId, SocketDirName},
};
use platform_runtime::socket;

use super::{Error, Runs, door::Door};

impl Runs {
    /// Makes an empty directory for a run to come, or finds it made.
    pub(crate) fn reserve(&self, name: &SocketDirName) -> Result<SocketDir, Error> {
        let dir = self.socket_dir(name);
        // The agent's uid must be able to pass through, and to do nothing else.
        socket::private_dir(&dir.path, 0o711)?;
        Ok(dir)
    }

    /// Removes a directory that no run came for. Nobody may register one with it meanwhile.
    pub(crate) async fn release(&self, name: &SocketDirName) -> Result<(), Error> {
        let dir = self.socket_dir(name);
        if let Some(run) = self.who_has(&dir) {
            return Err(Error::InUse { run });
        }
        if let Some(gateway) = self.gateway_in(name).await {
            return Err(Error::HeardThere { gateway });
        }
        let path = dir.path.clone();
        Door::Directory(dir).remove();
        // The log says why.
        if path.is_dir() { Err(Error::Leftover { path }) } else { Ok(()) }
    }

    fn who_has(&self, dir: &SocketDir) -> Option<RunId> {
        let has = self.live.iter().find(|live| live.door.dir() == Some(dir));
        has.map(|live| live.key().clone())
    }

    pub(super) fn socket_dir(&self, name: &SocketDirName) -> SocketDir {
        SocketDir { path: self.dir.join(name.as_str()), name: name.clone() }
    }
}
