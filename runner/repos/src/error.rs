//! error defines the reasons why a mirror is not in the requested state.

use std::{io, path::PathBuf};

use platform_core::{
    code::{Code, Coded},
    id::RepoName,
};
use runner_docker as docker;

/// Reason why a mirror is not in the requested state.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No repository of this name was added.
    #[error("there is no repository {name}; there are: {known} (`sluice repo add {name} URL` adds it)")]
    Unknown {
        /// The name.
        name: RepoName,
        /// Names of all repositories, or `none`.
        known: String,
    },
    /// Another repository has the name.
    #[error("there is a repository {name} with other settings: remove it first (`sluice repo rm {name}`)")]
    Exists {
        /// The name.
        name: RepoName,
    },
    /// A file of the registry cannot be used.
    #[error("cannot {action} {}", path.display())]
    File {
        /// Operation that failed, as a verb.
        action: &'static str,
        /// Path that it was applied to.
        path: PathBuf,
        /// Cause reported by the system.
        #[source]
        source: io::Error,
    },
    /// The token's file cannot be given to a container.
    #[error("{} is not a file for a token: {problem}", path.display())]
    TokenFile {
        /// Path of the file.
        path: PathBuf,
        /// Reason, and its remedy.
        problem: String,
    },
    /// Docker failed.
    #[error(transparent)]
    Docker(#[from] docker::Error),
    /// The last sync failed.
    #[error("repository {name} could not be fetched: {reason}")]
    SyncFailed {
        /// The repository.
        name: RepoName,
        /// Reason that `git-sync` reported.
        reason: String,
    },
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Exists { .. } | Self::TokenFile { .. } => Code::RepositoryExists,
            Self::Unknown { .. } => Code::NotFound,
            Self::Docker(docker::Error::VolumeInUse { .. }) => Code::DockerBusy,
            Self::Docker(error) => error.code(),
            Self::SyncFailed { .. } => Code::RepositoryUnreachable,
            Self::File { .. } => Code::RepositoryFailed,
        }
    }
}

impl Error {
    /// Returns a function that adds an operation and its path to a cause.
    pub(crate) fn file(
        action: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}
