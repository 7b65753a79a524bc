//! Names the files of a proposal while it is on its way.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use platform_core::id::ProposalId;
use platform_runtime::{lock::Lock, socket::private_dir, task::blocking};
use runner_store::AccountScope;

use crate::{Proposals, error::ProposalError};

/// Mode of the directories: credentials in them are closed to other users.
const DIR_MODE: u32 = 0o700;

/// Directory of one proposal.
#[derive(Debug, Clone)]
pub(crate) struct ProposalDir(PathBuf);

impl Proposals {
    /// Makes the directory of a proposal where it is missing.
    pub(crate) fn make_dir(&self, id: &ProposalId) -> Result<ProposalDir, ProposalError> {
        let all = self.relays.own_work_dir();
        fs::create_dir_all(&all).map_err(failed("make", &all))?;
        let dir = all.join(id.as_str());
        private_dir(&dir, DIR_MODE).map_err(runner_engine::relay::RelayError::from)?;
        Ok(ProposalDir(dir))
    }
}

impl Proposals {
    /// Removes the directories of proposals that have ended, or that need no files: a kill left them.
    pub(crate) async fn remove_left_dirs(&self) -> Result<(), ProposalError> {
        let all = self.relays.own_work_dir();
        let listed = match fs::read_dir(&all) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            listed => listed.map_err(failed("list", &all))?,
        };
        for entry in listed {
            let path = entry.map_err(failed("list", &all))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Ok(id) = ProposalId::parse(name) else { continue };
            let stored = self.store.proposal(&id, &AccountScope::All).await?;
            let dir = ProposalDir(path);
            if stored.is_none_or(|stored| stored.due.is_none())
                && let Some(_lock) = dir.lock()?
            {
                dir.remove().await?;
            }
        }
        Ok(())
    }
}

impl ProposalDir {
    /// Returns the directory of the repository in which the commit is made.
    pub(crate) fn quarantine(&self) -> PathBuf {
        self.0.join("quarantine")
    }

    /// Returns the directory of the credential, while git has one.
    pub(crate) fn askpass(&self) -> PathBuf {
        self.0.join("askpass")
    }

    /// Returns the lock of the proposal, unless another process works on it.
    pub(crate) fn lock(&self) -> Result<Option<Lock>, ProposalError> {
        Lock::attempt(&self.0).map_err(failed("lock", &self.0))
    }

    /// Removes the directory; a missing one is not an error.
    pub(crate) async fn remove(&self) -> Result<(), ProposalError> {
        let path = self.0.clone();
        blocking(move || match fs::remove_dir_all(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(failed("remove", &path)),
        })
        .await
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ProposalError + use<> {
    let path = path.to_owned();
    move |source| ProposalError::Io { action, path, source }
}
