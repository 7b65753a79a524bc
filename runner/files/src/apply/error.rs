//! Defines the reasons to write no change of a run into a directory.

use std::{fmt, path::PathBuf};

use platform_core::code::{Code, Coded};

use super::protected_names::ProtectedBy;
use crate::{error::Listed, path::RelativePath};

/// Reason to write no change of a run into a directory.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Changes must not be written, or not as they are.
    #[error("nothing was applied: {}", Listed(problems))]
    Refused {
        /// All reasons.
        problems: Vec<ApplyProblem>,
    },
    /// The directory cannot be read or written. The changes in `applied` are written.
    #[error("{} changes were applied, then it was not possible to {action} {}", applied.len(), path.display())]
    Io {
        /// Operation that failed.
        action: &'static str,
        /// Path it was applied to.
        path: PathBuf,
        /// Changes that are written.
        applied: Vec<RelativePath>,
        /// Cause reported by the system.
        #[source]
        source: std::io::Error,
    },
    /// The files of the run cannot be read.
    #[error(transparent)]
    Files(#[from] crate::error::Error),
}

impl Coded for ApplyError {
    fn code(&self) -> Code {
        match self {
            Self::Refused { .. } => Code::ApplyRefused,
            Self::Io { .. } => Code::ApplyFailed,
            Self::Files(error) => error.code(),
        }
    }

    fn word(&self) -> &str {
        Code::ApplyRefused.word()
    }
}

/// Reason to refuse one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApplyProblem {
    /// The path is in a repository's own directory.
    GitDir(RelativePath),
    /// The change makes or changes a link.
    Link(RelativePath),
    /// The entry cannot be read.
    Unreadable {
        /// The entry.
        path: RelativePath,
        /// Reason, which follows the path in a sentence.
        why: String,
    },
    /// A program runs such files by itself.
    Protected {
        /// The file.
        path: RelativePath,
        /// Reason, which follows the path in a sentence.
        why: &'static str,
    },
    /// The directory has another file there than the run received.
    Conflict {
        /// The file.
        path: RelativePath,
        /// Difference, which follows the path in a sentence.
        why: &'static str,
    },
}

impl ApplyProblem {
    pub(super) const fn protected(path: RelativePath, by: ProtectedBy) -> Self {
        Self::Protected { path, why: by.0 }
    }

    /// Returns the path of the change.
    #[must_use]
    pub const fn path(&self) -> &RelativePath {
        match self {
            Self::GitDir(path)
            | Self::Link(path)
            | Self::Unreadable { path, .. }
            | Self::Protected { path, .. }
            | Self::Conflict { path, .. } => path,
        }
    }
}

impl fmt::Display for ApplyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GitDir(path) => {
                write!(f, "{path} is git's own and never applied (name the paths to apply)")
            }
            Self::Link(path) => {
                write!(f, "{path} is a link, and links are not applied (name the paths to apply)")
            }
            Self::Unreadable { path, why } => write!(f, "{path} {why} (name the paths to apply)"),
            Self::Protected { path, why } => {
                write!(f, "{path} is {why} (--allow {} applies it)", path.shell_pattern())
            }
            Self::Conflict { path, why } => write!(f, "{path} {why}"),
        }
    }
}
