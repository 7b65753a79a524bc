//! error defines the reasons why a sync failed, or why the program cannot work at all.

use std::{io, path::PathBuf};

use platform_runtime::file::Unread;

use crate::settings::InvalidSetting;

/// Reason why a sync failed, or why the program cannot work at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A variable is missing or has no such value.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
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
    /// Another process mirrors into the same directory.
    #[error("another git-sync works with {}", path.display())]
    InUse {
        /// Directory of its state.
        path: PathBuf,
    },
    /// The file with the token cannot be used.
    #[error("no token for the repository")]
    Token(#[source] Unread),
    /// Git failed, or the remote refused.
    #[error(transparent)]
    Git(#[from] runner_git::Error),
    /// No signals can be received.
    #[error("cannot listen to signals")]
    Signals(#[source] io::Error),
    /// The runtime cannot be started.
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
    /// A report cannot be printed.
    #[error("cannot print the report of a sync")]
    Print(#[source] io::Error),
}

impl Error {
    /// Returns a function that adds an operation and its path to a cause.
    pub(crate) fn io(action: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}
