//! Names the reasons why a relay did not go on.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use platform_core::{
    code::{Code, Coded},
    id::RunId,
    json,
};
use platform_runtime::{retry::Transient, task::ThreadEnded};
use runner_git::{self as git, InvalidAuthor, InvalidGlob, RemoteFailure};
use runner_github::InvalidRepositoryName;
use runner_store as store;

use super::repo_order::InvalidRepo;

/// Reason why a relay did not go on. The commits were not judged by it.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// Git, the remote or the system failed.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// GitHub failed or refused.
    #[error(transparent)]
    GitHub(#[from] runner_github::Error),
    /// GitHub has no such repository.
    #[error(transparent)]
    Repository(#[from] InvalidRepositoryName),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The clone could not be staged.
    #[error(transparent)]
    Files(#[from] runner_files::Error),
    /// A system call failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// Operation that failed.
        action: &'static str,
        /// Path it was applied to.
        path: PathBuf,
        /// Cause reported by the system.
        #[source]
        source: io::Error,
    },
    /// The directory of the relay is not private.
    #[error(transparent)]
    Private(#[from] platform_runtime::socket::Error),
    /// Docker failed while git wrote the bundle.
    #[error(transparent)]
    Docker(#[from] runner_docker::Error),
    /// The host has no credential for the pull request that is ordered.
    #[error(transparent)]
    Order(#[from] InvalidRepo),
    /// The author of commits cannot be written.
    #[error("relay.author_name and relay.author_email: {0}")]
    Author(#[from] InvalidAuthor),
    /// A protected path is not a pattern.
    #[error("relay.protected_paths: {0}")]
    Protected(#[from] InvalidGlob),
    /// The stored relay cannot be read.
    #[error("the relay of run {run_id} was stored by a program that is not compatible with this one")]
    Unreadable {
        /// The run.
        run_id: RunId,
        /// Fault of the text.
        #[source]
        source: json::Error,
    },
    /// The run has no relay.
    #[error(
        "run {run_id} has no commits to show: it has no repository (`sluice run --repo URL`), or its clone is not made yet"
    )]
    NoRelay {
        /// The run.
        run_id: RunId,
    },
    /// The texts of the run were removed.
    #[error("the commits of run {run_id} were removed with its texts")]
    Forgotten {
        /// The run.
        run_id: RunId,
    },
    /// The run has not been collected, or its commits are no longer kept.
    #[error("the commits of run {run_id} are not kept: its relay is {stage}")]
    NoBundle {
        /// The run.
        run_id: RunId,
        /// Stage of the relay.
        stage: &'static str,
    },
    /// Another process works on the relay.
    #[error("another process works on the commits of run {run_id}")]
    Busy {
        /// The run.
        run_id: RunId,
    },
    /// A thread of this process ended early.
    #[error("a thread ended early")]
    Thread,
}

impl From<ThreadEnded> for RelayError {
    fn from(_panicked: ThreadEnded) -> Self {
        Self::Thread
    }
}

impl Coded for RelayError {
    fn code(&self) -> Code {
        match self {
            Self::NoRelay { .. } => Code::RelayMissing,
            Self::Busy { .. } => Code::RelayInUse,
            Self::NoBundle { .. } | Self::Forgotten { .. } => Code::Usage,
            Self::Store(error) => error.code(),
            _ => Code::RelayFailed,
        }
    }
}

impl RelayError {
    /// Returns a function that adds an operation and its path to a cause.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// Returns the delay that GitHub asks for before another try.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::GitHub(error) => error.retry_after(),
            _ => None,
        }
    }
}

impl Transient for RelayError {
    /// Longest wait for a remote before a run: the client of the run waits, too.
    const RETRY_TIMEOUT: Duration = Duration::from_secs(30);

    fn is_transient(&self) -> bool {
        match self {
            Self::Git(git::Error::Remote(RemoteFailure::Unreachable { retry, .. })) => *retry,
            Self::Git(git::Error::Locked { .. }) | Self::Busy { .. } => true,
            Self::Store(error) => error.is_transient(),
            Self::Docker(error) => error.is_transient(),
            Self::GitHub(error) => error.is_transient(),
            _ => false,
        }
    }
}
