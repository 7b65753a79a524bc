//! Parses the words of a command that takes a run and paths of its files: with `--last`, all words are paths.

use platform_core::id::RunId;
use runner_files::RelativePath;
use runner_store::Store;

use super::super::{
    Error,
    error::Misused,
    run_reference::{self, RunReference},
};

/// A run, and paths of its files.
#[derive(clap::Args)]
pub(super) struct RunAndPaths {
    /// Id of the run, or at least 4 characters of its beginning or end
    #[arg(value_name = "RUN", required_unless_present = "last")]
    run: Option<String>,
    /// Only these files and directories
    #[arg(value_name = "PATHS")]
    paths: Vec<RelativePath>,
    /// Take the newest run; every word is then a path. Trial runs of `sluice doctor` do not count
    #[arg(long)]
    last: bool,
}

/// Run that was found, with the paths that were given.
pub(super) struct ChosenFiles {
    pub(super) run_id: RunId,
    pub(super) paths: Vec<RelativePath>,
}

impl RunAndPaths {
    /// Finds the run in `store`.
    ///
    /// # Errors
    /// If a word is not an id or path, several runs have the given part, no run exists yet, or the store fails.
    pub(super) async fn in_store(self, store: &Store) -> Result<ChosenFiles, Error> {
        let Self { run, mut paths, last } = self;
        let word = run.unwrap_or_default();
        if !last {
            let reference: RunReference = word.parse()?;
            return Ok(ChosenFiles { run_id: reference.in_store(store).await?, paths });
        }
        if !word.is_empty() {
            paths.insert(0, RelativePath::parse(&word).map_err(|error| Misused(error.to_string()))?);
        }
        Ok(ChosenFiles { run_id: run_reference::newest(store).await?, paths })
    }
}
