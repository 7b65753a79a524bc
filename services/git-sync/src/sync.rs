//! sync asks the remote for its last commit, fetches it, and has it shown.

use std::{
    fs, io,
    path::Path,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use platform_core::{limit::ByteSize, name::git_sync::STATUS_FILE, sync_report::SyncReport};
use platform_runtime::{file, lock::Lock, report, terminal};
use runner_git::{AskPass, Git, MirrorCache, MirrorScope, ProcessBounds, Remote, SnapshotOrder};

use crate::{
    error::Error,
    settings::{CredentialFile, SyncSettings},
    worktrees::{Shown, Worktrees},
};

/// Largest token.
const MAX_TOKEN: ByteSize = ByteSize::kib(16);
/// Directory below the state that git takes for its user's.
const HOME: &str = "home";
/// Directory below the state with the copy of the remote.
const CACHE: &str = "cache";
/// Directory below the one for the credential: it is made anew for each fetch.
const CREDENTIAL: &str = "fetch";
/// Mode of the file with the last report.
const STATUS_MODE: u32 = 0o644;

/// Mirror of one branch, which this process alone works on.
#[derive(Debug)]
pub(crate) struct Syncer<'s> {
    settings: &'s SyncSettings,
    cache: MirrorCache,
    worktrees: Worktrees,
    _lock: Lock,
}

impl<'s> Syncer<'s> {
    /// Opens the directories, and removes what a killed process left half done.
    pub(crate) fn open(settings: &'s SyncSettings) -> Result<Self, Error> {
        let state = &settings.state;
        fs::create_dir_all(state).map_err(Error::io("create", state))?;
        let lock = Lock::attempt(state).map_err(Error::io("lock", state))?;
        let lock = lock.ok_or_else(|| Error::InUse { path: state.clone() })?;
        let bounds = ProcessBounds { time: settings.sync_timeout, ..ProcessBounds::default() };
        let git = Git::locate(&state.join(HOME))?.with_bounds(bounds);
        let cache = MirrorCache::open(&git, &state.join(CACHE))?.with_scope(MirrorScope::Base);
        let worktrees = Worktrees::open(&settings.root, settings.stale_timeout)?;
        Ok(Self { settings, cache, worktrees, _lock: lock })
    }

    /// Syncs once. A failure is in the report, and readers see what they saw before.
    pub(crate) async fn sync(&mut self) -> SyncReport {
        let began_ns = now_ns();
        let shown = self.fetch_and_show().await;
        self.worktrees.prune();
        let error = shown.as_ref().err().map(|error| terminal::safe(&report::chain(error)).into_owned());
        let report = SyncReport {
            began_ns,
            ended_ns: now_ns(),
            commit: self.worktrees.current(),
            changed: matches!(shown, Ok(Shown::Changed)),
            error,
        };
        if let Err(error) = self.write_status(&report) {
            tracing::warn!(error = report::chain(&error), "status of the sync not written");
        }
        report
    }

    async fn fetch_and_show(&mut self) -> Result<Shown, Error> {
        let SyncSettings { url, branch, depth, credential, .. } = self.settings;
        // Its files are removed as soon as the fetch has ended.
        let credential = credential.as_ref().map(open_credential).transpose()?;
        let remote = Remote { url: url.clone(), credential: credential.map(Arc::new) };
        let mirror = self.cache.refresh(&remote, branch).await?;
        drop(remote);
        let commit = mirror.base_tip(branch).await?;
        let order = SnapshotOrder { commit, branch: branch.clone(), depth: *depth };
        self.worktrees.show(&mirror, &order).await
    }

    fn write_status(&self, report: &SyncReport) -> Result<(), Error> {
        let path = self.settings.state.join(STATUS_FILE);
        let line = serde_json::to_vec(report).map_err(io::Error::other);
        let written = line.and_then(|line| file::replace(&path, STATUS_MODE, &line));
        written.map_err(Error::io("write", &path))
    }
}

/// Reads the token, and puts it where git asks for it.
fn open_credential(credential: &CredentialFile) -> Result<AskPass, Error> {
    let CredentialFile { user, file, askpass_dir } = credential;
    let token = file::private(file, MAX_TOKEN).map_err(Error::Token)?;
    Ok(AskPass::create(&dir_in(askpass_dir)?, user, &token)?)
}

/// Returns the directory for a credential in `parent`, which is made where it is missing.
fn dir_in(parent: &Path) -> Result<std::path::PathBuf, Error> {
    fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
    Ok(parent.join(CREDENTIAL))
}

/// Returns the nanoseconds since 1970.
fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
