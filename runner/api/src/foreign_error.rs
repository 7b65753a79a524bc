//! Decides what clients are told of an error of another crate.

use platform_runtime::report;
use runner_engine::run_files::RunFilesError;
use runner_repos as repos;

/// Returns the text for a client if its run has no files. Paths of this host are for operators, in the log.
pub(super) fn files_detail(error: &RunFilesError) -> String {
    use runner_files::Error as FilesError;
    match error {
        RunFilesError::Files(error @ (FilesError::NoResult { .. } | FilesError::ResultRemoved { .. })) => {
            tracing::debug!(error = report::chain(error), "a run has no files for the API");
            "the workspace has no files of the run any more".to_owned()
        }
        error => report::chain(error),
    }
}

/// Returns the text for a client. Addresses and paths are for operators, in the log.
pub(super) fn repository_detail(error: &repos::Error) -> String {
    if let repos::Error::Unknown { name, .. } = error {
        return format!("there is no repository {name}");
    }
    tracing::warn!(error = report::chain(error), "a repository could not be refreshed for the API");
    match error {
        repos::Error::SyncFailed { name, .. } => format!("repository {name} could not be fetched"),
        _ => "Docker does not answer, or refuses".to_owned(),
    }
}
