//! Names the files of relays, below the directory of workspaces.

use std::{
    fs,
    path::{Path, PathBuf},
};

use platform_core::id::RunId;
use platform_runtime::{lock::Lock, socket::private_dir};

use super::error::RelayError;

/// Directory of all relays. No workspace id begins with a dot.
const RELAYS: &str = ".relay";
/// Mode of the directories: agents' commits are closed to other users.
const DIR_MODE: u32 = 0o700;

/// Directory with everything that relays keep.
#[derive(Debug, Clone)]
pub(super) struct RelaysDir(PathBuf);

impl RelaysDir {
    /// Returns the directory below `workspaces`, the directory of workspaces.
    pub(super) fn below(workspaces: &Path) -> Self {
        Self(workspaces.join(RELAYS))
    }

    /// Returns the empty directory that git takes for its home.
    pub(super) fn home(&self) -> PathBuf {
        self.0.join("home")
    }

    /// Returns the directory of copies of repositories.
    pub(super) fn mirrors(&self) -> PathBuf {
        self.0.join("mirrors")
    }

    /// Returns the directory of work that is this host's own.
    pub(super) fn own_work(&self) -> PathBuf {
        self.0.join("own")
    }

    /// Makes the directory of one attempt where it is missing.
    pub(super) fn make(&self, run_id: &RunId, attempt: u32) -> Result<RelayDir, RelayError> {
        let dir = self.of(run_id, attempt);
        fs::create_dir_all(self.runs()).map_err(RelayError::io("make", &self.runs()))?;
        private_dir(&dir.0, DIR_MODE)?;
        Ok(dir)
    }

    /// Returns the directory of one attempt, which may be missing.
    pub(super) fn of(&self, run_id: &RunId, attempt: u32) -> RelayDir {
        RelayDir(self.runs().join(format!("{run_id}.{attempt}")))
    }

    /// Lists the attempts that have a directory.
    pub(super) fn list(&self) -> Result<Vec<(RunId, u32)>, RelayError> {
        let runs = self.runs();
        let entries = match fs::read_dir(&runs) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(RelayError::io("list", &runs))?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let name = entry.map_err(RelayError::io("list", &runs))?.file_name();
            let attempt = name.to_str().and_then(|name| name.rsplit_once('.'));
            let attempt = attempt
                .and_then(|(run, attempt)| Some((RunId::parse(run).ok()?, attempt.parse::<u32>().ok()?)));
            found.extend(attempt);
        }
        Ok(found)
    }

    fn runs(&self) -> PathBuf {
        self.0.join("runs")
    }
}

/// Directory of the relay of one attempt.
#[derive(Debug, Clone)]
pub(super) struct RelayDir(PathBuf);

impl RelayDir {
    /// Returns the file with the agent's commits.
    pub(super) fn bundle(&self) -> PathBuf {
        self.0.join("bundle")
    }

    /// Returns the file into which the commits are written.
    pub(super) fn unfinished_bundle(&self) -> PathBuf {
        self.0.join("bundle.part")
    }

    /// Returns the file with the text that the agent wrote for a pull request.
    pub(super) fn description(&self) -> PathBuf {
        self.0.join("pull-request.md")
    }

    /// Returns the directory of the clone, before it is staged.
    pub(super) fn clone_dir(&self) -> PathBuf {
        self.0.join("clone")
    }

    /// Returns the directory of the credential, while git has one.
    pub(super) fn askpass(&self) -> PathBuf {
        self.0.join("askpass")
    }

    /// Returns the directory of the repository in which the commits are judged.
    pub(super) fn quarantine(&self) -> PathBuf {
        self.0.join("quarantine")
    }

    /// Returns the lock of the relay, unless another process works on it.
    pub(super) fn lock(&self) -> Result<Option<Lock>, RelayError> {
        Lock::attempt(&self.0).map_err(RelayError::io("lock", &self.0))
    }

    /// Removes the directory; a missing one is not an error.
    pub(super) fn remove(&self) -> Result<(), RelayError> {
        remove_dir(&self.0)
    }
}

/// Removes a directory; a missing one is not an error.
pub(super) fn remove_dir(dir: &Path) -> Result<(), RelayError> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(RelayError::io("remove", dir)),
    }
}
