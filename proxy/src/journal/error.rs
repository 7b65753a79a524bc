//! Defines the reasons why the journal cannot be opened, read or written.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use platform_core::{
    json::{self, Bounds},
    record::SCHEMA_VERSION,
};
use platform_runtime::socket;

/// Reason why the journal cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// Operation that failed.
        action: &'static str,
        /// File or directory of the operation.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The content was not written by this program. Nothing was changed.
    #[error("{}: the data at byte {offset} was not written by this program; restore the file, or move the directory away to start a new journal", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Position at which the line begins.
        offset: u64,
    },
    /// A line was written by a newer program. Nothing was changed.
    #[error("{}: the line at byte {offset} has schema version {version}, and this program reads up to {SCHEMA_VERSION}; start a newer one, or move the directory away to start a new journal", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Position at which the line begins.
        offset: u64,
        /// Version of the line.
        version: u32,
    },
    /// A line should be there and is not.
    #[error("line {seq} of the journal is missing: restore the file that it was in")]
    Missing {
        /// Number of the missing line.
        seq: u64,
    },
    /// A line was removed because it was old.
    #[error("these lines were removed; the oldest that is kept is {oldest}")]
    Removed {
        /// Oldest line that is kept.
        oldest: u64,
    },
    /// The cursor belongs to another journal, where its numbers mean something else.
    #[error("this is another journal: {present}")]
    Changed {
        /// Id of this journal.
        present: String,
    },
    /// The space for lines is used up, or writing has stopped.
    #[error("the journal has no space for a line, or a write to it has failed")]
    NoSpace,
    /// Another proxy writes the journal.
    #[error("another proxy has the journal {} open: stop it, or use another proxy.state_dir", path.display())]
    InUse {
        /// Directory of the journal.
        path: PathBuf,
    },
    /// The directory cannot be reserved for this process alone.
    #[error(transparent)]
    Directory(#[from] socket::Error),
    /// The commit of the turn failed, for all calls that waited for it.
    #[error(transparent)]
    Commit(Arc<Error>),
    /// An earlier write failed; nothing is appended after a gap.
    #[error("the journal stopped after a failed write")]
    Stopped,
}

impl Error {
    /// Returns the reason why a `line`, which begins at `offset` of `path`, could not be read.
    pub(super) fn unreadable(line: &[u8], path: &Path, offset: u64) -> Self {
        let path = path.to_owned();
        match json::from_slice(line, Bounds::STORED) {
            Ok(LineVersion { v }) if v > SCHEMA_VERSION => Self::Newer { path, offset, version: v },
            _ => Self::Corrupt { path, offset },
        }
    }

    pub(super) fn io<'p>(action: &'static str, path: &'p Path) -> impl FnOnce(io::Error) -> Self + use<'p> {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

/// Version of a line.
#[derive(serde::Deserialize)]
struct LineVersion {
    v: u32,
}
