//! entry defines what is known of a mirrored repository.

use std::path::PathBuf;

use platform_core::limit::Millis;
use platform_runtime::settings::Image;
use runner_git::{BaseBranch, RepoUrl};
use serde::{Deserialize, Serialize};

/// Time between two syncs without a refresh, by default.
const DEFAULT_PERIOD: Millis = Millis::seconds(300);
/// Image of `git-sync`, by default.
const DEFAULT_IMAGE: &str = "sluicegate/git-sync:latest";
/// Commits of history that agents see, by default.
const DEFAULT_DEPTH: u32 = 1;

/// Mirrored repository, as an operator has added it. It holds no credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepoEntry {
    /// Address of the repository.
    pub url: RepoUrl,
    /// Branch that is mirrored.
    pub branch: BaseBranch,
    /// Commits of history that agents see; 0 for all.
    pub depth: u32,
    /// Time between two syncs without a refresh.
    pub period: Millis,
    /// File with the token, in its own directory.
    pub token_file: Option<PathBuf>,
    /// Image of `git-sync`.
    pub image: Image,
}

impl RepoEntry {
    /// Returns the entry of a repository that needs no token, with defaults.
    ///
    /// # Panics
    /// Never: the default image follows its own rule.
    #[must_use]
    pub fn of(url: RepoUrl, branch: BaseBranch) -> Self {
        let image = DEFAULT_IMAGE.parse().expect("it follows its own rule");
        Self { url, branch, depth: DEFAULT_DEPTH, period: DEFAULT_PERIOD, token_file: None, image }
    }
}
