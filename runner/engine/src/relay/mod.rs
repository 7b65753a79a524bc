//! Brings an agent's commits from its workspace to a branch of their repository, and makes a pull request of them.
//!
//! ```text
//! before the run    remote ─▶ mirror ─▶ clone ─▶ staged files ─▶ /workspace/repo
//! after the agent   /workspace/repo ─▶ bundle        the run's worker does this: it has the workspace
//! from then on      bundle ─▶ quarantine ─▶ verdict ─▶ branch ─▶ pull request
//! ```
//!
//! `order` says what a run asks for, `record` what has happened, and each step is stored before the next one begins.
//! `prepare` makes the clone, `collect` takes the bundle, `advance` does the rest. The last part needs no run: its lock is
//! that of the relay's directory, and `pending` continues it when the run has ended without it.
//!
//! Does not open the repository that the agent wrote. Invariants: a branch belongs to the account that used it first; only
//! accepted commits are pushed.

mod advance;
mod branch_name;
mod collect;
mod directory;
mod error;
mod github_access;
mod pending;
mod places;
mod prepare;
mod record;
mod repo_order;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use platform_runtime::settings::{self, Sandbox, Settings};
pub use runner_git::{AcceptedWork, CommitSummary, RelayRule};
use runner_git::{
    AskPass, AuthorIdentity, BundleBounds, CloneDepth, Git, Mirror, MirrorCache, ProtectedPaths, RelayPolicy,
    Remote, SecretScan, WorkBounds,
};
use runner_github::{Permission, RepositoryName};
use runner_store::Store;

use self::directory::RelaysDir;
pub use self::{
    branch_name::BranchNames,
    collect::OpenRelay,
    error::RelayError,
    github_access::GitHubAccess,
    pending::continue_relays,
    prepare::RelayOwner,
    record::{PullRequest, RelayRecord, RelayStage},
    repo_order::{InvalidRepo, OrderSource, Publish, RepoChoice, RepoOrder},
};

/// Relays of this host.
#[derive(Debug, Clone)]
pub struct Relays {
    store: Store,
    dir: RelaysDir,
    sandbox: Sandbox,
    settings: settings::Relay,
    github: Arc<GitHubAccess>,
}

impl Relays {
    /// Returns the relays of the runs in `store`, as `settings` say. Touches no file.
    #[must_use]
    pub fn of(settings: &Settings, store: &Store, github: &Arc<GitHubAccess>) -> Self {
        Self {
            store: store.clone(),
            dir: RelaysDir::below(&settings.sandbox.workspace_dir),
            sandbox: settings.sandbox.clone(),
            settings: settings.relay.clone(),
            github: Arc::clone(github),
        }
    }

    /// Returns the settings of relays.
    #[must_use]
    pub const fn settings(&self) -> &settings::Relay {
        &self.settings
    }

    /// Checks that this host can relay commits, and describes how.
    ///
    /// # Errors
    /// If a program is missing, or a credential or setting cannot be used.
    pub fn check(settings: &Settings, github: &GitHubAccess) -> Result<String, RelayError> {
        let git = Git::locate(&RelaysDir::below(&settings.sandbox.workspace_dir).home())?;
        github.source()?;
        AuthorIdentity::new(&settings.relay.author_name, &settings.relay.author_email)?;
        ProtectedPaths::with(&settings.relay.protected_paths)?;
        Ok(format!("git, {}", git.confinement()))
    }

    /// Returns GitHub, for which relays have a credential.
    #[must_use]
    pub const fn github(&self) -> &Arc<GitHubAccess> {
        &self.github
    }

    /// Returns the directory for work of the host's own, which goes the way of agents' commits.
    #[must_use]
    pub fn own_work_dir(&self) -> PathBuf {
        self.dir.own_work()
    }

    /// Finds the host's git.
    ///
    /// # Errors
    /// If a program is missing.
    pub fn git(&self) -> Result<Git, RelayError> {
        Ok(Git::locate(&self.dir.home())?)
    }

    /// Returns the copies of repositories.
    ///
    /// # Errors
    /// The system's.
    pub fn mirrors(&self, git: &Git) -> Result<MirrorCache, RelayError> {
        Ok(MirrorCache::open(git, &self.dir.mirrors())?)
    }

    /// Returns the copy of the repository of `order`, as it was fetched last.
    fn mirror(&self, git: &Git, order: &RepoOrder) -> Result<Mirror, RelayError> {
        Ok(self.mirrors(git)?.mirror(&order.url))
    }

    /// Returns the remote of `order`, with a credential if GitHub has the repository. Git finds it in the directory
    /// `askpass`, as long as the remote is kept.
    ///
    /// # Errors
    /// If GitHub gives no credential, or the system refuses.
    pub async fn remote(
        &self,
        order: &RepoOrder,
        permission: Permission,
        askpass: &Path,
    ) -> Result<Remote, RelayError> {
        let url = order.url.clone();
        let on_github = RepositoryName::of(&url).ok().filter(|name| name.is_at(&self.github.settings().url));
        let Some(repository) = on_github else { return Ok(Remote { url, credential: None }) };
        let credential = self.github.source()?.token_for(&repository, permission).await?;
        let askpass = credential
            .map(|credential| AskPass::create(askpass, credential.user, &credential.token).map(Arc::new));
        Ok(Remote { url, credential: askpass.transpose()? })
    }

    /// Returns the author of commits.
    ///
    /// # Errors
    /// If git cannot store it.
    pub fn author(&self) -> Result<AuthorIdentity, RelayError> {
        Ok(AuthorIdentity::new(&self.settings.author_name, &self.settings.author_email)?)
    }

    fn depth(&self) -> CloneDepth {
        if self.settings.full_history { CloneDepth::Full } else { CloneDepth::default() }
    }

    fn bundle_bounds(&self) -> BundleBounds {
        BundleBounds { bytes: self.settings.max_size, ..BundleBounds::default() }
    }

    fn policy(&self) -> Result<RelayPolicy, RelayError> {
        let bounds = WorkBounds {
            commits: self.settings.max_commits as usize,
            files: self.settings.max_changed_files as usize,
            file: self.settings.max_file_size,
            total: self.settings.max_size,
            ..WorkBounds::default()
        };
        let protected = ProtectedPaths::with(&self.settings.protected_paths)?;
        Ok(RelayPolicy { bounds, protected, secrets: SecretScan::default() })
    }
}
