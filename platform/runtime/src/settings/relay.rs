//! Reads the settings of the relay, which brings agents' commits to branches of their repositories.

use platform_core::{
    id::AccountId,
    limit::{ByteSize, Millis},
};

use super::Settings;
use crate::config::settings;

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
const AUTHOR_NAME: &str = "Sluicegate agent";
const AUTHOR_EMAIL: &str = "agent@sluicegate.invalid";

settings! {
    /// `[relay]`
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Relay read from section {
        /// Longest time that a run waits for its commits to be pushed. After it the run ends, and `sluice up` goes on
        /// with them.
        pub wait: Millis => or(WAIT),
        /// Time that commits which were refused or could not be pushed are kept, for `sluice git push`.
        pub keep: Millis => or(KEEP),
        /// Repositories that runs may name: addresses, or their beginnings before `*`. If empty, a shell on this host
        /// may name any, and the API none.
        pub repositories: Vec<String> => list_or(vec![]),
        /// Paths that agents must not change, as in .gitignore, beside workflows, owners and submodules; `!` before one
        /// of these allows it.
        pub protected_paths: Vec<String> => list_or(vec![]),
        /// Most commits of a run.
        pub max_commits: u32 => or(COMMITS),
        /// Most files that the commits of a run change.
        pub max_changed_files: u32 => or(FILES),
        /// Largest file in a commit.
        pub max_file_size: ByteSize => or(FILE_SIZE),
        /// Largest content of all commits of a run together, and largest bundle of them.
        pub max_size: ByteSize => or(SIZE),
        /// Gives agents the whole history of the branch; otherwise its last commit.
        pub full_history: bool => or(false),
        /// Name of the author of agents' commits.
        pub author_name: String => or(AUTHOR_NAME.to_owned()),
        /// Address of the author of agents' commits.
        pub author_email: String => or(AUTHOR_EMAIL.to_owned()),
        /// Labels of pull requests.
        pub labels: Vec<String> => list_or(vec![]),
    }
}

impl Settings {
    /// Returns the repositories that runs of `account` may name, each an address or its beginning before `*`.
    #[must_use]
    pub fn repositories_of(&self, account: &AccountId) -> &[String] {
        self.accounts.of(account).repositories.as_deref().unwrap_or(&self.relay.repositories)
    }
}
