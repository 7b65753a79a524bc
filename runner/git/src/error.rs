//! error defines the reasons why a step failed without a judgement of the agent's work.

use std::{io, path::PathBuf, time::Duration};

use platform_core::limit::ByteSize;

use crate::{
    branch::BaseBranch, object_id::InvalidObjectId, remote_failure::RemoteFailure, repo_url::RepoUrl,
};

/// Reason why a step of a relay failed. The work itself was not judged by it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// Operation that failed, as a verb and its preposition.
        action: &'static str,
        /// Path it was applied to.
        path: PathBuf,
        /// Cause reported by the system.
        #[source]
        source: io::Error,
    },
    /// A program is missing.
    #[error("no program `{name}` in {directories}: install it")]
    MissingProgram {
        /// Its name.
        name: &'static str,
        /// Directories that were searched.
        directories: &'static str,
    },
    /// The home directory of git has files, which git would read.
    #[error("{} must be empty: git takes it for its home", path.display())]
    HomeNotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// Git could not be started.
    #[error("cannot start git {command}")]
    Start {
        /// Its command.
        command: &'static str,
        /// Cause reported by the system.
        #[source]
        source: io::Error,
    },
    /// Git took too long, and was killed.
    #[error("git {command} took longer than {} s", max.as_secs())]
    Slow {
        /// Its command.
        command: &'static str,
        /// Longest time.
        max: Duration,
    },
    /// Git printed too much, and was killed.
    #[error("git {command} printed more than {max}")]
    LargeOutput {
        /// Its command.
        command: &'static str,
        /// Most bytes.
        max: ByteSize,
    },
    /// Git needed more memory or processor time than it got.
    #[error("git {command} needs more memory or processor time than the limits allow")]
    Exhausted {
        /// Its command.
        command: &'static str,
    },
    /// A signal ended git: the host's, or that of a person.
    #[error("signal {signal} ended git {command}")]
    Killed {
        /// Its command.
        command: &'static str,
        /// Number of the signal.
        signal: i32,
    },
    /// Git failed.
    #[error("git {command} failed: {reason}")]
    Failed {
        /// Its command.
        command: &'static str,
        /// Last line that it wrote, made safe to print.
        reason: String,
    },
    /// Git printed something else than its manual says.
    #[error("git {command} answered what this program does not understand")]
    OddAnswer {
        /// Its command.
        command: &'static str,
    },
    /// The credential would go in the clear to another host.
    #[error("{url} is not encrypted: a credential is sent only over https, or to this host")]
    OpenCredential {
        /// The remote.
        url: RepoUrl,
    },
    /// A thread of this program ended early.
    #[error("a thread ended early")]
    Thread,
    /// A remote did not do what it was asked.
    #[error(transparent)]
    Remote(#[from] RemoteFailure),
    /// Another process works on the mirror for too long.
    #[error("another process has held {} for {} s", path.display(), max.as_secs())]
    Locked {
        /// Directory that is locked.
        path: PathBuf,
        /// Longest time.
        max: Duration,
    },
    /// The remote has no such branch.
    #[error("{url} has no branch {branch}")]
    NoBase {
        /// The remote.
        url: RepoUrl,
        /// The branch.
        branch: BaseBranch,
    },
    /// The quarantine does not hold what the order names.
    #[error("{} does not hold what is to be pushed: collect the work again", path.display())]
    NotCollected {
        /// Directory of the quarantine.
        path: PathBuf,
    },
}

impl Error {
    /// Returns a function that adds an operation and its path to a cause.
    pub(crate) fn io(action: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// Returns a function that says which command gave an answer that names no object.
    pub(crate) fn odd_id(command: &'static str) -> impl FnOnce(InvalidObjectId) -> Self {
        move |_invalid| Self::OddAnswer { command }
    }
}
