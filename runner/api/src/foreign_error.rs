//! Decides which problem an error of another crate is, and what clients are told of it.

use platform_runtime::{report, retry::Transient};
use runner_connections::{AddError, CredentialError};
use runner_control_client as data_plane;
use runner_engine::{
    order::OrderError,
    relay::InvalidRepo,
    run::{NotAdmitted, NotAttempted},
    run_files::RunFilesError,
};
use runner_files as files;
use runner_repos as repos;
use runner_store as store;

use crate::problem::Problem;

pub(super) fn order_problem(error: &OrderError) -> Problem {
    match error {
        OrderError::UnknownAgent { .. } => Problem::UNKNOWN_AGENT,
        OrderError::NotGranted { .. } => Problem::MODEL_NOT_GRANTED,
        OrderError::ToolNotGranted { .. } => Problem::TOOL_NOT_GRANTED,
        OrderError::NoModel { .. } => Problem::NO_MODEL,
        OrderError::Repo(InvalidRepo::NotListed { .. }) => Problem::REPOSITORY_FORBIDDEN,
        OrderError::Repo(InvalidRepo::NotAllowed { .. }) => Problem::REPOSITORY_NOT_ALLOWED,
        OrderError::Repo(_) => Problem::INVALID_REPOSITORY,
        OrderError::Unpriced(_) => Problem::MODEL_UNPRICED,
        OrderError::Store(error) => store_problem(error),
        OrderError::InvalidModel { .. } | OrderError::Behaviour(_) => Problem::CONFIGURATION_INVALID,
    }
}

pub(super) const fn admission_problem(error: &NotAdmitted) -> Problem {
    match error {
        NotAdmitted::TooUrgent { .. } => Problem::PRIORITY_TOO_HIGH,
    }
}

/// Returns the problem of a run that is not attempted again.
pub(super) fn attempt_problem(error: &NotAttempted) -> Problem {
    match error {
        NotAttempted::Store(store::Error::Illegal { .. } | store::Error::Fenced { .. })
        | NotAttempted::NotEnded { .. } => Problem::RUN_NOT_ENDED,
        NotAttempted::Store(store::Error::Forgotten { .. }) => Problem::NOT_REPEATABLE,
        NotAttempted::Store(error) => store_problem(error),
        NotAttempted::OtherAttempt { .. } => Problem::OTHER_ATTEMPT,
        NotAttempted::FilesGone { .. } | NotAttempted::OnGateway { .. } => Problem::NOT_REPEATABLE,
        NotAttempted::Unreadable(_) => Problem::INTERNAL,
    }
}

pub(super) fn store_problem(error: &store::Error) -> Problem {
    match error {
        store::Error::Unknown { .. } | store::Error::NoPrincipal { .. } | store::Error::NoThread { .. } => {
            Problem::NOT_FOUND
        }
        store::Error::NoConnection { .. } => Problem::NOT_FOUND,
        store::Error::ConnectionExists { .. } => Problem::CONNECTION_EXISTS,
        store::Error::ConnectionLimit(_) => Problem::CONNECTIONS_EXHAUSTED,
        store::Error::TopUpExists { .. } => Problem::IDEMPOTENCY_KEY_TAKEN,
        store::Error::ThreadBusy { .. } => Problem::THREAD_BUSY,
        store::Error::StillActive { .. } => Problem::RUN_ACTIVE,
        store::Error::Conflict { .. } => Problem::RUN_ID_TAKEN,
        store::Error::Full(_) => Problem::QUEUE_FULL,
        store::Error::TooLarge { .. } => Problem::TOO_LARGE,
        error if error.is_transient() => Problem::STORE_UNAVAILABLE,
        _ => Problem::INTERNAL,
    }
}

/// Returns the problem of a connection that gives no credential.
pub(super) fn credential_problem(error: &CredentialError) -> Problem {
    match error {
        CredentialError::NotConfigured | CredentialError::KeyFile(_) => Problem::CONNECTIONS_OFF,
        CredentialError::NoConnection { .. } => Problem::NOT_FOUND,
        CredentialError::ProviderUnavailable { .. } => Problem::PROVIDER_UNAVAILABLE,
        CredentialError::Store(error) => store_problem(error),
        _ => Problem::CONNECTION_UNUSABLE,
    }
}

/// Returns the problem of a connection that is not added.
pub(super) fn connection_problem(error: &AddError) -> Problem {
    match error {
        AddError::Keys(error) => credential_problem(error),
        AddError::Secret { .. } => Problem::INVALID_REQUEST,
        AddError::Kind { .. } => Problem::CONNECTION_UNUSABLE,
        AddError::Store(error) => store_problem(error),
        AddError::Seal(_) => Problem::INTERNAL,
    }
}

/// Returns the problem of an error of the files of a run.
pub(super) fn files_problem(error: &RunFilesError) -> Problem {
    match error {
        RunFilesError::Store(error) => store_problem(error),
        RunFilesError::NotYet { .. } => Problem::NO_FILES_YET,
        RunFilesError::NoLongerKept { .. }
        | RunFilesError::Files(
            files::Error::NoFiles { .. } | files::Error::NoResult { .. } | files::Error::ResultRemoved { .. },
        ) => Problem::NO_FILES,
        RunFilesError::Files(files::Error::TooManyResults { .. }) => Problem::TOO_MANY_FILES,
        _ => Problem::INTERNAL,
    }
}

/// Returns the problem of an error of the data plane.
pub(super) fn data_plane_problem(error: &data_plane::Error) -> Problem {
    match error {
        data_plane::Error::Refused { code, .. } if code == Problem::NOT_STORED.code => Problem::NOT_STORED,
        error if error.is_refusal() => Problem::INTERNAL,
        _ => Problem::DATA_PLANE_UNAVAILABLE,
    }
}

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

/// Returns the problem of a mirrored repository.
pub(super) const fn repository_problem(error: &repos::Error) -> Problem {
    match error {
        repos::Error::Unknown { .. } => Problem::NOT_FOUND,
        repos::Error::SyncFailed { .. } => Problem::REPOSITORY_UNREACHABLE,
        repos::Error::Docker(_) => Problem::DOCKER_UNAVAILABLE,
        repos::Error::Exists { .. } | repos::Error::File { .. } | repos::Error::TokenFile { .. } => {
            Problem::INTERNAL
        }
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
