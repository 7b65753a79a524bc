//! Implements the commands that show and take out the files of a run: `diff`, `files`, `pull` and `apply`.

pub(super) mod apply;
pub(super) mod diff;
pub(super) mod ls;
pub(super) mod pull;
mod run_and_paths;
mod text;
mod visible;

use runner_files::Scope;

/// Choice of files that ignore rules name.
#[derive(clap::Args)]
struct IgnoredFiles {
    /// Also take new files that the run's .gitignore names, such as build output
    #[arg(long)]
    all: bool,
}

impl IgnoredFiles {
    const fn scope(&self) -> Scope {
        if self.all { Scope::All } else { Scope::Tracked }
    }
}
