//! git_sync mirrors a branch of a repository into a directory that readers mount.
//!
//! Each commit has its own directory below `.worktrees`. The link `current` leads to the present one, and is replaced
//! in one step, so that no reader sees a part of a tree. A replaced tree stays for a while, for readers in it.
//!
//! 1. `settings` reads the environment.
//! 2. `service` syncs at the start, after each period, and at SIGHUP. It prints a report of each sync.
//! 3. `sync` fetches; `worktrees` shows the commit.
//!
//! The token is read from its file for each fetch, so that a renewed one is used. It is in no argument and no variable.

mod error;
mod service;
mod settings;
mod sync;
mod worktrees;

use platform_runtime::config::Environment;

pub use self::{
    error::Error,
    settings::{InvalidSetting, SyncSettings},
};

/// Mirrors the repository that `environment` names, until a signal ends the program.
///
/// # Errors
/// If the environment names none, or the directories cannot be used. A failed sync is only reported: the next one may
/// succeed.
pub fn run(environment: &Environment) -> Result<(), Error> {
    let settings = SyncSettings::read(environment)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
    runtime.block_on(service::serve(&settings))
}
