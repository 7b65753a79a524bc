//! mirror keeps a bare copy of each remote on this host, from which agents' clones are made without a credential.
//!
//! One process at a time fetches. A caller that waited for it takes over what was fetched since it began to wait.

mod leftovers;
mod update;

use std::{
    fs,
    num::NonZeroU32,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use platform_runtime::lock::Lock;
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep};

use self::leftovers::remove_leftovers;
use crate::{
    branch::{BaseBranch, SandboxBranch},
    error::Error,
    object_id::ObjectId,
    program::{Git, GitCommand},
    remote::Remote,
    repo_url::{RepoUrl, own_url},
};

/// Longest time for which a caller waits for other fetches of the same remote.
const LOCK_TIMEOUT: Duration = Duration::from_mins(5);
/// Time between two tries to lock a mirror.
const LOCK_INTERVAL: Duration = Duration::from_millis(20);
/// Name of the repository in a mirror's directory.
const REPOSITORY: &str = "repository.git";
/// Beginning of the names of files that say when a branch was fetched.
const FETCHED: &str = "fetched-";
/// Digits of a hash in the name of a file or directory.
const NAME_DIGITS: usize = 32;

/// Depth of history that is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloneDepth {
    /// The last commits.
    Shallow(NonZeroU32),
    /// All commits.
    Full,
}

impl Default for CloneDepth {
    /// Returns the depth of a clone with one commit.
    fn default() -> Self {
        Self::Shallow(NonZeroU32::MIN)
    }
}

/// Branches that are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MirrorScope {
    /// The base, and all branches of agents.
    #[default]
    BaseAndAgents,
    /// The base alone.
    Base,
}

/// Directory with a bare copy of each remote. It must be on one file system of this host.
#[derive(Debug, Clone)]
pub struct MirrorCache {
    git: Git,
    dir: PathBuf,
    scope: MirrorScope,
}

/// Bare copy of one remote, which holds what [`MirrorCache::refresh`] fetched.
#[derive(Debug, Clone)]
pub struct Mirror {
    git: Git,
    repository: PathBuf,
    url: RepoUrl,
    scope: MirrorScope,
}

impl MirrorCache {
    /// Opens the cache in `dir`, and makes the directory where it is missing.
    ///
    /// # Errors
    /// The system's.
    pub fn open(git: &Git, dir: &Path) -> Result<Self, Error> {
        fs::create_dir_all(dir).map_err(Error::io("create", dir))?;
        let dir = fs::canonicalize(dir).map_err(Error::io("resolve", dir))?;
        Ok(Self { git: git.clone(), dir, scope: MirrorScope::default() })
    }

    /// Returns this cache for other branches.
    #[must_use]
    pub fn with_scope(self, scope: MirrorScope) -> Self {
        Self { scope, ..self }
    }

    /// Fetches the branch `base` and, in the default scope, all branches below `sandbox/`, unless another caller has since
    /// this call began.
    ///
    /// The caller has decided that its account may read the remote. The credential is only for the fetch.
    ///
    /// # Errors
    /// [`Error::Remote`] with the remote's reason, [`Error::NoBase`], [`Error::Locked`], and if git or the system fails.
    pub async fn refresh(&self, remote: &Remote, base: &BaseBranch) -> Result<Mirror, Error> {
        let asked = now();
        let dir = self.dir.join(short_hash(remote.url.as_str()));
        fs::create_dir_all(&dir).map_err(Error::io("create", &dir))?;
        let _lock = lock(&dir).await?;
        let fetched_file = dir.join(format!("{FETCHED}{}", short_hash(base.as_str())));
        let mirror = self.mirror(&remote.url);
        if read_time(&fetched_file).is_some_and(|fetched| (asked..=now()).contains(&fetched))
            && mirror.repository.is_dir()
        {
            return Ok(mirror);
        }
        mirror.make(&dir).await?;
        remove_leftovers(&mirror.repository)?;
        let began = now();
        mirror.fetch_or_mend(remote, base, &dir).await?;
        platform_runtime::file::replace(&fetched_file, 0o600, began.to_string().as_bytes())
            .map_err(Error::io("write", &fetched_file))?;
        mirror.repack().await?;
        Ok(mirror)
    }

    /// Returns the copy of the remote at `url`, with what [`Self::refresh`] fetched last. Asks no remote.
    #[must_use]
    pub fn mirror(&self, url: &RepoUrl) -> Mirror {
        let repository = self.dir.join(short_hash(url.as_str())).join(REPOSITORY);
        Mirror { git: self.git.clone(), repository, url: url.clone(), scope: self.scope }
    }
}

impl Mirror {
    /// Returns the last commit of a branch, as it was fetched.
    ///
    /// # Errors
    /// [`Error::NoBase`], and if git fails.
    pub async fn base_tip(&self, base: &BaseBranch) -> Result<ObjectId, Error> {
        let none = || Error::NoBase { url: self.url.clone(), branch: base.clone() };
        self.tip(&base.reference()).await?.ok_or_else(none)
    }

    /// Returns the last commit of an agent's branch, if the remote has one.
    ///
    /// # Errors
    /// If git fails.
    pub async fn sandbox_tip(&self, branch: &SandboxBranch) -> Result<Option<ObjectId>, Error> {
        self.tip(&branch.reference()).await
    }

    async fn tip(&self, reference: &str) -> Result<Option<ObjectId>, Error> {
        let command = self.git.command("rev-parse", &self.repository);
        let output = command.arguments(["--verify", "--quiet"]).argument(format!("{reference}^{{commit}}"));
        let output = output.run().await?;
        if output.status() == Some(1) {
            return Ok(None);
        }
        ObjectId::from_bytes(&output.checked()?).map(Some).map_err(Error::odd_id("rev-parse"))
    }

    /// Returns the git that made this mirror.
    pub(crate) const fn git(&self) -> &Git {
        &self.git
    }

    /// Begins a command that reads this mirror.
    pub(crate) fn command(&self, name: &'static str) -> GitCommand<'_> {
        self.git.command(name, &self.repository)
    }

    /// Copies `commit` and its history to the repository in `git_dir`, as `reference`. Nothing is shared with it.
    pub(crate) async fn copy_to(
        &self,
        git_dir: &Path,
        commit: &ObjectId,
        copy: &Copied<'_>,
    ) -> Result<(), Error> {
        let mut command = self.git.command("fetch", git_dir).writes(git_dir).reads(&self.repository);
        // What the mirror holds was checked when it came.
        command = command.transport(crate::transport::Transport::File).setting("transfer.fsckObjects=false");
        command = command.arguments(["--quiet", "--no-tags", "--no-write-fetch-head", "--update-head-ok"]);
        if let CloneDepth::Shallow(depth) = copy.depth {
            command = command.argument(format!("--depth={depth}"));
        }
        command = command.arguments(["--no-auto-maintenance", "--"]).argument(own_url(&self.repository));
        command.argument(format!("+{commit}:{}", copy.reference)).output().await.map(drop)
    }
}

/// Form of a copy in another repository.
#[derive(Debug)]
pub(crate) struct Copied<'c> {
    /// Name that the commit gets there.
    pub(crate) reference: &'c str,
    /// Depth of its history.
    pub(crate) depth: CloneDepth,
}

async fn lock(dir: &Path) -> Result<Lock, Error> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        if let Some(lock) = Lock::attempt(dir).map_err(Error::io("lock", dir))? {
            return Ok(lock);
        }
        if Instant::now() >= deadline {
            return Err(Error::Locked { path: dir.to_owned(), max: LOCK_TIMEOUT });
        }
        sleep(LOCK_INTERVAL).await;
    }
}

/// Returns the first digits of the hash of a text.
fn short_hash(text: &str) -> String {
    let digits = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    digits[..NAME_DIGITS].to_owned()
}

/// Returns the nanoseconds since 1970.
fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}

fn read_time(path: &Path) -> Option<u128> {
    fs::read_to_string(path).ok()?.parse().ok()
}
