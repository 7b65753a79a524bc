//! Takes an agent's commits from the program that wrote them as a bundle, and keeps them on this host.

use std::{
    fs::{self, File},
    path::Path,
};

use platform_core::{id::RunId, limit::ByteSize, name::path};
use platform_runtime::{report, task::blocking};
use runner_docker::{ExtractEnd, Extracted, Limits, Program};
use runner_files::TreeRoot;
use runner_git::{BundleCommand, BundleExit, CollectOrder, Objection, OtherWork, RelayRule};
use runner_store::StoredRelay;

use super::{
    Relays,
    directory::RelayDir,
    error::RelayError,
    record::{RelayRecord, RelayStage},
};

/// Largest text for a pull request.
const MAX_DESCRIPTION: ByteSize = ByteSize::kib(64);
/// Places in a workspace where an agent may leave that text, the first one first.
const DESCRIPTIONS: [&str; 2] = [".cogni/pr.md", "repo/.cogni/pr.md"];

/// Relay of an attempt, with the files that it keeps.
#[derive(Debug)]
pub struct OpenRelay {
    pub(super) stored: StoredRelay,
    /// Everything that is known of it.
    pub record: RelayRecord,
    pub(super) dir: RelayDir,
}

impl Relays {
    /// Opens the relay of an attempt; `None` if its agent got no clone.
    ///
    /// # Errors
    /// If the store or the disk fails, or the relay cannot be read.
    pub async fn open(&self, run_id: &RunId, attempt: u32) -> Result<Option<OpenRelay>, RelayError> {
        let Some(stored) = self.store.relay_of(run_id, attempt).await? else { return Ok(None) };
        let record = RelayRecord::read(&stored)?;
        Ok(Some(OpenRelay { dir: self.dir.make(run_id, attempt)?, stored, record }))
    }

    /// Returns whether all work of the agent is kept without its workspace, or the agent has left none.
    ///
    /// # Errors
    /// If the store fails, or the relay cannot be read.
    pub async fn is_work_kept(&self, run_id: &RunId, attempt: u32) -> Result<bool, RelayError> {
        let Some(stored) = self.store.relay_of(run_id, attempt).await? else { return Ok(true) };
        let record = RelayRecord::read(&stored)?;
        let are_commits_kept = record.stage.is_done() || self.dir.of(run_id, attempt).bundle().is_file();
        Ok(are_commits_kept && !record.uncommitted)
    }

    /// Stores that the agent of an attempt never ran, and so has no commits.
    ///
    /// # Errors
    /// If the store or the disk fails, or the relay cannot be read.
    pub async fn abandon(&self, run_id: &RunId, attempt: u32) -> Result<(), RelayError> {
        match self.open(run_id, attempt).await? {
            Some(mut relay) if relay.record.stage == RelayStage::Cloned => {
                self.change(&mut relay, RelayStage::Unchanged).await
            }
            _ => Ok(()),
        }
    }

    /// Returns the program that writes the bundle, and its limits.
    #[must_use]
    pub fn extraction(&self, relay: &OpenRelay) -> (Program, Limits) {
        let command = BundleCommand::new(&self.collect_order(&relay.record));
        let program = Program {
            argv: command.argv(),
            environment: command.environment(),
            working_directory: BundleCommand::WORKING_DIRECTORY.to_owned(),
        };
        (program, Limits::of_extraction(self.settings.max_size))
    }

    pub(super) fn collect_order(&self, record: &RelayRecord) -> CollectOrder {
        CollectOrder {
            start: record.start.clone(),
            branch: record.order.branch.clone(),
            depth: self.depth(),
            bounds: self.bundle_bounds(),
        }
    }

    /// Stores the end of the program that wrote the bundle. Afterwards the workspace is not needed any more, unless the
    /// relay has failed or the agent left other work.
    ///
    /// # Errors
    /// If the disk or the store fails.
    pub async fn collected(&self, relay: &mut OpenRelay, extracted: &Extracted) -> Result<(), RelayError> {
        relay.record.uncommitted = match extracted.end {
            ExtractEnd::Exited(code) => OtherWork::of(code) == OtherWork::Some,
            ExtractEnd::TooLarge | ExtractEnd::OutOfMemory | ExtractEnd::TimedOut => false,
        };
        let stage = match extracted.end {
            ExtractEnd::Exited(code) => stage_after(relay, BundleExit::of(code), extracted).await?,
            ExtractEnd::TooLarge => {
                let detail = format!("its commits are larger than {}", self.settings.max_size);
                RelayStage::Refused {
                    objections: vec![Objection { rule: RelayRule::BundleSize, path: None, detail }],
                }
            }
            ExtractEnd::OutOfMemory => failed("git needed more memory than it may have", extracted),
            ExtractEnd::TimedOut => failed("git took too long", extracted),
        };
        self.change(relay, stage).await
    }

    /// Stores that the commits could not be taken out of the workspace.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn fail(&self, relay: &mut OpenRelay, reason: String) -> Result<(), RelayError> {
        self.change(relay, RelayStage::Failed { reason }).await
    }
}

async fn stage_after(
    relay: &OpenRelay,
    exit: BundleExit,
    extracted: &Extracted,
) -> Result<RelayStage, RelayError> {
    Ok(match exit {
        BundleExit::Complete if extracted.bytes == 0 => RelayStage::Unchanged,
        BundleExit::Complete => {
            relay.dir.keep_bundle().await?;
            RelayStage::Collected
        }
        BundleExit::Behind => RelayStage::Unchanged,
        BundleExit::NoBranch => {
            failed(&format!("the agent has left no branch {}", relay.record.order.branch), extracted)
        }
        BundleExit::NoRepository => failed(&format!("there is no repository in {}", path::REPO), extracted),
        BundleExit::Failed => failed("git cannot read the repository that the agent left", extracted),
    })
}

fn failed(reason: &str, extracted: &Extracted) -> RelayStage {
    let detail = platform_runtime::terminal::safe(extracted.detail.trim());
    let last = detail.lines().last().unwrap_or_default();
    let reason = if last.is_empty() { reason.to_owned() } else { format!("{reason}: {last}") };
    RelayStage::Failed { reason }
}

impl OpenRelay {
    /// Removes the files of a relay that is done. A fault leaves them to the removal of old ones.
    pub(super) async fn remove_if_done(&self) {
        if !self.record.stage.is_done() {
            return;
        }
        let dir = self.dir.clone();
        if let Err(error) = blocking(move || dir.remove()).await {
            let run = &self.stored.run_id;
            tracing::warn!(%run, error = report::chain(&error), "files of published commits not removed yet");
        }
    }

    /// Opens the file for the bundle, empty.
    ///
    /// # Errors
    /// The system's.
    pub fn bundle_file(&self) -> Result<File, RelayError> {
        let path = self.dir.unfinished_bundle();
        File::create(&path).map_err(RelayError::io("create", &path))
    }

    /// Keeps the text that the agent left for a pull request in the workspace `tree`, if it did. Follows no link.
    ///
    /// # Errors
    /// The system's, for the file on this host. An agent's file that cannot be read is as good as none.
    pub fn keep_description(&self, tree: &Path) -> Result<(), RelayError> {
        let Ok(root) = TreeRoot::open(tree) else { return Ok(()) };
        let read = |path| root.read_file(Path::new(path), MAX_DESCRIPTION).ok();
        let Some(text) = DESCRIPTIONS.into_iter().find_map(read) else { return Ok(()) };
        let path = self.dir.description();
        fs::write(&path, text).map_err(RelayError::io("write", &path))
    }
}

impl RelayDir {
    /// Gives the finished bundle its name, once it is on the disk.
    async fn keep_bundle(&self) -> Result<(), RelayError> {
        let [part, bundle] = [self.unfinished_bundle(), self.bundle()];
        blocking(move || {
            let synced = File::open(&part).and_then(|file| file.sync_all());
            synced.map_err(RelayError::io("write", &part))?;
            fs::rename(&part, &bundle).map_err(RelayError::io("rename", &part))
        })
        .await
    }
}
