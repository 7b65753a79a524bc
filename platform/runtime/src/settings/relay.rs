//! Reads the settings of the relay, which brings agents' commits to branches of their repositories.

use platform_core::{
    id::AccountId,
    limit::{ByteSize, Millis},
};

use super::Settings;
use crate::config::Section;

/// Time that a run waits for its commits to be pushed.
const WAIT: Millis = Millis::seconds(60);
/// Time that commits which could not be pushed are kept.
const KEEP: Millis = Millis::seconds(7 * 24 * 60 * 60);
/// Most commits of a run.
const COMMITS: u32 = 200;
/// Most files that the commits of a run change.
const FILES: u32 = 2_000;
/// Largest file in a commit.
const FILE_SIZE: ByteSize = ByteSize::mib(10);
/// Largest content of all commits of a run.
const SIZE: ByteSize = ByteSize::mib(64);
/// Author of agents' commits.
const AUTHOR: [&str; 2] = ["Sluicegate agent", "agent@sluicegate.invalid"];

/// `[relay]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relay {
    /// Longest time that a run waits for its commits to be pushed before it ends without them.
    pub wait: Millis,
    /// Time that commits which were refused or could not be pushed are kept.
    pub keep: Millis,
    /// Repositories that runs may name, each an address or its beginning before `*`.
    pub repositories: Vec<String>,
    /// Patterns of paths that agents must not change, as in `.gitignore`, beside the built-in ones.
    pub protected_paths: Vec<String>,
    /// Most commits of a run.
    pub max_commits: u32,
    /// Most files that the commits of a run change.
    pub max_changed_files: u32,
    /// Largest file in a commit.
    pub max_file_size: ByteSize,
    /// Largest content of all commits of a run.
    pub max_size: ByteSize,
    /// True if agents get the whole history; otherwise the last commit alone.
    pub full_history: bool,
    /// Name of the author of agents' commits.
    pub author_name: String,
    /// Address of the author of agents' commits.
    pub author_email: String,
    /// Labels of pull requests.
    pub labels: Vec<String>,
}

impl Relay {
    pub(super) fn section(section: &Section<'_>) -> Self {
        let field = |name, doc| section.field(name, doc);
        let [author_name, author_email] = AUTHOR.map(str::to_owned);
        Self {
            wait: field("wait", "Longest time that a run waits for its commits to be pushed. After it the run ends, and `sluice up` goes on with them.").or(WAIT),
            keep: field("keep", "Time that commits which were refused or could not be pushed are kept, for `sluice git push`.").or(KEEP),
            repositories: field("repositories", "Repositories that runs may name: addresses, or their beginnings before `*`. If empty, a shell on this host may name any, and the API none.").list_or(vec![]),
            protected_paths: field("protected_paths", "Paths that agents must not change, as in .gitignore, beside workflows, owners and submodules; `!` before one of these allows it.").list_or(vec![]),
            max_commits: field("max_commits", "Most commits of a run.").or(COMMITS),
            max_changed_files: field("max_changed_files", "Most files that the commits of a run change.").or(FILES),
            max_file_size: field("max_file_size", "Largest file in a commit.").or(FILE_SIZE),
            max_size: field("max_size", "Largest content of all commits of a run together, and largest bundle of them.").or(SIZE),
            full_history: field("full_history", "Gives agents the whole history of the branch; otherwise its last commit.").or(false),
            author_name: field("author_name", "Name of the author of agents' commits.").or(author_name),
            author_email: field("author_email", "Address of the author of agents' commits.").or(author_email),
            labels: field("labels", "Labels of pull requests.").list_or(vec![]),
        }
    }
}

impl Settings {
    /// Returns the repositories that runs of `account` may name, each an address or its beginning before `*`.
    #[must_use]
    pub fn repositories_of(&self, account: &AccountId) -> &[String] {
        self.accounts.of(account).repositories.as_deref().unwrap_or(&self.relay.repositories)
    }
}
