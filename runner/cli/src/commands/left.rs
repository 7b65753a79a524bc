//! Finds what an ended run leaves besides its answer: commits on their way, and files that no command takes over.

use platform_core::id::RunId;
use platform_runtime::settings::Sandbox;
use runner_engine::{relay::RelayRecord, run_files::RunFiles};
use runner_files::OutsideFiles;
use runner_store::Store;
use tokio::task::spawn_blocking;

use super::{Error, git};

/// Work of a run besides its answer.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Its commits, if it has a repository.
    pub(super) relay: Option<RelayRecord>,
    /// Files beside its repository, or beside the files that it received.
    pub(super) outside: OutsideFiles,
}

impl Left {
    /// Finds what the run left. Its files are only those of a workspace that is still there.
    pub(super) async fn of(store: &Store, sandbox: &Sandbox, run_id: &RunId) -> Result<Self, Error> {
        if let Some(relay) = git::known(store, run_id).await? {
            return Ok(Self { outside: relay.outside.clone(), relay: Some(relay) });
        }
        // Most runs received no files.
        let Ok(files) = RunFiles::open(store, sandbox, run_id).await else { return Ok(Self::default()) };
        let outside = spawn_blocking(move || files.outside()).await.unwrap_or_default();
        Ok(Self { relay: None, outside })
    }
}
