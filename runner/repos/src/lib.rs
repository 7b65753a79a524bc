//! runner_repos mirrors repositories into volumes of Docker, and refreshes them on demand.
//!
//! Each repository has an entry in a file, a volume that agents mount, and a container of `git-sync` that fetches. The
//! entry is what counts: a missing container is made again.
//!
//! 1. [`RepoRegistry`] keeps the entries.
//! 2. [`Repos`] makes, inspects and removes their containers and volumes.
//! 3. [`Refresher`] lets callers at the same time share a refresh.
//! 4. [`monitor()`] keeps the containers running.
//!
//! Does not hold a token: `git-sync` reads it from its file. Does not mount anything into an agent's container.

mod add;
mod coalesce;
mod entry;
mod error;
mod monitor;
mod names;
mod refresh;
mod registry;
mod repos;
mod spec;
mod token_file;

pub use self::{
    coalesce::{Refresher, SharedOutcome},
    entry::RepoEntry,
    error::Error,
    monitor::monitor,
    names::{container, tree_volume},
    refresh::RefreshOutcome,
    registry::RepoRegistry,
    repos::{RepoState, RepoStatus, Repos},
};
