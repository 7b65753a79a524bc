//! Names the reasons why a proposal did not go on.

use std::{io, path::PathBuf, time::Duration};

use platform_core::{
    code::{Code, Coded},
    id::ProposalId,
    json,
};
use platform_runtime::{retry::Transient, task::ThreadEnded};
use runner_engine::relay::RelayError;
use runner_git as git;
use runner_github::InvalidRepositoryName;
use runner_store as store;

/// Reason why a proposal did not go on. Its content was not judged by it.
#[derive(Debug, thiserror::Error)]
pub enum ProposalError {
    /// Git, GitHub, the remote or the store failed.
    #[error(transparent)]
    Relay(#[from] RelayError),
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
    /// The stored proposal cannot be read.
    #[error("proposal {id} was stored by a program that is not compatible with this one")]
    Unreadable {
        /// The proposal.
        id: ProposalId,
        /// Fault of the text.
        #[source]
        source: json::Error,
    },
    /// No proposal has the id.
    #[error("no proposal {id}")]
    Unknown {
        /// The id.
        id: ProposalId,
    },
    /// Another process works on the proposal.
    #[error("another process works on proposal {id}")]
    Busy {
        /// The proposal.
        id: ProposalId,
    },
}

impl ProposalError {
    /// Returns whether another try may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::Relay(error) if error.is_transient())
    }

    /// Returns the delay that GitHub asks for before another try.
    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Relay(error) => error.retry_after(),
            _ => None,
        }
    }
}

impl From<ThreadEnded> for ProposalError {
    fn from(ended: ThreadEnded) -> Self {
        Self::Relay(ended.into())
    }
}

impl From<git::Error> for ProposalError {
    fn from(error: git::Error) -> Self {
        Self::Relay(error.into())
    }
}

impl From<runner_github::Error> for ProposalError {
    fn from(error: runner_github::Error) -> Self {
        Self::Relay(error.into())
    }
}

impl From<InvalidRepositoryName> for ProposalError {
    fn from(error: InvalidRepositoryName) -> Self {
        Self::Relay(error.into())
    }
}

impl From<store::Error> for ProposalError {
    fn from(error: store::Error) -> Self {
        Self::Relay(error.into())
    }
}

impl Coded for ProposalError {
    fn code(&self) -> Code {
        match self {
            Self::Relay(error) => error.code(),
            Self::Unknown { .. } => Code::NotFound,
            Self::Busy { .. } => Code::RelayInUse,
            Self::Io { .. } | Self::Unreadable { .. } => Code::RelayFailed,
        }
    }
}
