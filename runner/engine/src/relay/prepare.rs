//! Makes the clone that an agent works in, and stages it as the files of its run.

use std::path::PathBuf;

use platform_core::{
    id::{AccountId, RunId},
    limit::ByteSize,
};
use platform_runtime::task::blocking;
use runner_files::{CopyBounds, GitGaps, OutsideFiles, Selection, Stage, stages_dir};
use runner_git::{AgentClone, CloneOrder};
use runner_github::Permission;
use runner_store::{NewRelay, StoredRelay};

use super::{
    Relays,
    directory::{RelayDir, remove_dir},
    error::RelayError,
    record::{RelayRecord, RelayStage},
    repo_order::RepoOrder,
};

/// Attempt of a run that a clone is for.
#[derive(Debug, Clone, Copy)]
pub struct RelayOwner<'o> {
    /// Id of the run.
    pub run_id: &'o RunId,
    /// Account that pays for the run.
    pub account: &'o AccountId,
    /// The attempt.
    pub attempt: u32,
    /// Size of its workspace, if its agent has another than all. A clone takes a share of it.
    pub disk: Option<ByteSize>,
}

impl Relays {
    /// Fetches the repository of `order`, and stages a clone of it for `owner`. Returns the one that is there if an
    /// earlier worker made it. Dropping the future leaves parts that the next call replaces.
    ///
    /// # Errors
    /// If the remote, git, the disk or the store fails, or another account has the branch.
    pub async fn prepare(&self, owner: RelayOwner<'_>, order: &RepoOrder) -> Result<Stage, RelayError> {
        let RelayOwner { run_id, attempt, .. } = owner;
        let stored = self.store.relay_of(run_id, attempt).await?;
        if stored.is_some()
            && let Ok(stage) = self.staged(run_id).await
        {
            return Ok(stage);
        }
        let dir = self.dir.make(run_id, attempt)?;
        let staged = self.clone_and_stage(owner, order, &dir, stored).await;
        if staged.is_err() {
            dir.remove()?;
        }
        staged
    }

    async fn clone_and_stage(
        &self,
        owner: RelayOwner<'_>,
        order: &RepoOrder,
        dir: &RelayDir,
        stored: Option<StoredRelay>,
    ) -> Result<Stage, RelayError> {
        let RelayOwner { run_id, account, attempt, .. } = owner;
        // The order may come from a process that does not know this one's credential.
        order.check_credential(&self.github)?;
        let git = self.git()?;
        let remote = self.remote(order, Permission::Fetch, &dir.askpass()).await?;
        let mirror = self.mirrors(&git)?.refresh(&remote, &order.base).await?;
        remove_dir(&dir.clone_dir())?;
        let clone_order = CloneOrder {
            base: order.base.clone(),
            branch: order.branch.clone(),
            depth: self.depth(),
            author: self.author()?,
        };
        let clone = AgentClone::make(&mirror, &dir.clone_dir(), &clone_order).await?;
        let (stage, lacking) = self.stage(owner, clone.dir).await?;
        let record = RelayRecord {
            order: order.clone(),
            start: clone.start,
            remote_tip: clone.remote_tip,
            lacking,
            outside: OutsideFiles::default(),
            commits: Vec::new(),
            uncommitted: false,
            stage: RelayStage::Cloned,
            tries: 0,
            fault: None,
        };
        match stored {
            Some(stored) => drop(self.store.change_relay(&stored, &record.progress(None)).await?),
            None => {
                let new = NewRelay {
                    run_id: run_id.clone(),
                    attempt,
                    account: account.clone(),
                    url: order.url.identity(),
                    branch: order.branch.to_string(),
                    progress: record.progress(None),
                };
                self.store.add_relay(&new).await?;
            }
        }
        Ok(stage)
    }

    async fn staged(&self, run_id: &RunId) -> Result<Stage, RelayError> {
        let stages = stages_dir(&self.sandbox.workspace_dir);
        let run_id = run_id.clone();
        blocking(move || Ok(Stage::open(&stages, &run_id)?)).await
    }

    /// Moves the clone in `dir` to the staged files of its run. Also returns what the clone lacks.
    async fn stage(&self, owner: RelayOwner<'_>, dir: PathBuf) -> Result<(Stage, GitGaps), RelayError> {
        let stages = stages_dir(&self.sandbox.workspace_dir);
        let run_id = owner.run_id.clone();
        let disk_reserve = self.sandbox.disk_reserve;
        let bounds = CopyBounds::of_workspace(self.sandbox.workspace_bounds(owner.disk));
        blocking(move || {
            Stage::remove(&stages, &run_id)?;
            let selection = Selection::of_repository(&dir, bounds)?;
            selection.check_room(&stages, disk_reserve)?;
            let lacking = selection.git_gaps();
            Stage::write(&stages, &run_id, &selection, &mut |_progress| {})?;
            remove_dir(&dir)?;
            Ok((Stage::open(&stages, &run_id)?, lacking))
        })
        .await
    }
}
