//! Defines the errors of taking files into a run and out of it.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use platform_core::{
    code::{Code, Coded},
    id::RunId,
    limit::ByteSize,
};

use super::{beneath::Unreadable, path::RelativePath, rules::COUNTED_FACTOR, size_text::size_text};

/// Most problems that one message lists.
const MAX_LISTED: usize = 8;

/// Reason why files cannot be taken into a run, or out of it.
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
    /// The directory cannot be copied as it is.
    #[error("cannot copy {}: {}", source_dir.display(), Listed(problems))]
    Uncopyable {
        /// The directory.
        source_dir: PathBuf,
        /// All reasons.
        problems: Vec<CopyProblem>,
    },
    /// A pattern names no file.
    #[error("--include {pattern} names no file in {}: give its path from there, or a pattern such as `*.pem`", source_dir.display())]
    UnusedPattern {
        /// The directory.
        source_dir: PathBuf,
        /// The pattern.
        pattern: String,
    },
    /// A file of the directory could not be copied, perhaps because a program writes to it.
    #[error("{path} {why}: nothing was copied; try again when no program writes to {}", source_dir.display())]
    SourceFile {
        /// The directory.
        source_dir: PathBuf,
        /// The file.
        path: RelativePath,
        /// Reason.
        why: Unreadable,
    },
    /// The directory is not the top of a git repository.
    #[error("{} is not the top directory of a git repository with a commit: leave out --git, or commit first", path.display())]
    NotARepository {
        /// The directory.
        path: PathBuf,
        /// Last line that git wrote.
        #[source]
        source: io::Error,
    },
    /// The history of a repository, or its last commit, is too large.
    #[error("{} has {} in its history or its last commit, more than the limit of {}: leave out --git", path.display(), size_text(*found), size_text(*max))]
    LargeRepository {
        /// The directory.
        path: PathBuf,
        /// Size that was found.
        found: ByteSize,
        /// Largest size that is copied.
        max: ByteSize,
    },
    /// Git took too long.
    #[error("git took longer than {} s for {}: leave out --git", max.as_secs(), path.display())]
    SlowClone {
        /// The directory.
        path: PathBuf,
        /// Longest time.
        max: std::time::Duration,
    },
    /// The run has other files already.
    #[error("{run_id} has other files already: start another run")]
    OtherFiles {
        /// The run.
        run_id: RunId,
    },
    /// The run has no files.
    #[error(
        "{run_id} has no files of its own: it was started without --workspace, or they were removed since"
    )]
    NoFiles {
        /// The run.
        run_id: RunId,
    },
    /// The files kept for a run are not those that were stored.
    #[error("the files kept for {run_id} in {} are damaged", path.display())]
    Damaged {
        /// The run.
        run_id: RunId,
        /// File that is damaged.
        path: PathBuf,
        /// Reason.
        #[source]
        source: io::Error,
    },
    /// The workspace has no files of a run.
    #[error("{} has no files of a run: its agent removed them, or they were not written yet", tree.display())]
    NoResult {
        /// The workspace.
        tree: PathBuf,
        /// Cause reported by the system.
        #[source]
        source: io::Error,
    },
    /// The workspace was removed while its files were read.
    #[error("{} was removed while its files were read: they are no longer kept", tree.display())]
    ResultRemoved {
        /// The workspace.
        tree: PathBuf,
    },
    /// The result has more files than are read.
    #[error("the result has more than {max} files and directories that are new or kept")]
    TooManyResults {
        /// Most files and directories that are read.
        max: u64,
    },
    /// The result has no such file.
    #[error("the result has no {path}: `sluice runs files` lists its files")]
    NoSuchFile {
        /// The path that was asked for.
        path: RelativePath,
    },
    /// The directory is in a repository's own one.
    #[error("{} is in {}, which is git's own: name a directory outside of it", path.display(), git_dir.display())]
    InGitDir {
        /// The directory.
        path: PathBuf,
        /// Directory that is git's own.
        git_dir: PathBuf,
    },
    /// The files of a result are larger than any workspace.
    #[error("the files have {} together, more than the {} of a workspace: name the paths to take", size_text(*found), size_text(*max))]
    ResultTooLarge {
        /// Apparent size of all files.
        found: ByteSize,
        /// Size of the workspace.
        max: ByteSize,
    },
    /// The disk has too little space.
    #[error(
        "{} has too little room for {}: {} free, {} in reserve (sandbox.disk_reserve)",
        path.display(), size_text(*needed), size_text(*free), size_text(*reserve)
    )]
    NoRoom {
        /// Directory to write into.
        path: PathBuf,
        /// Bytes to write.
        needed: ByteSize,
        /// Bytes that are free.
        free: ByteSize,
        /// Bytes that have to stay free.
        reserve: ByteSize,
    },
    /// The target of a copy has files.
    #[error("{} is not empty: name a new or empty directory with --to", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Uncopyable { .. }
            | Self::UnusedPattern { .. }
            | Self::LargeRepository { .. }
            | Self::NotARepository { .. }
            | Self::NotEmpty { .. }
            | Self::InGitDir { .. } => Code::FilesUnusable,
            Self::NoFiles { .. } | Self::NoResult { .. } | Self::ResultRemoved { .. } => Code::NoFiles,
            Self::TooManyResults { .. } => Code::TooManyFiles,
            Self::ResultTooLarge { .. }
            | Self::NoRoom { .. }
            | Self::NoSuchFile { .. }
            | Self::OtherFiles { .. } => Code::FilesRefused,
            Self::SourceFile { .. } | Self::SlowClone { .. } => Code::FilesBusy,
            Self::Io { .. } | Self::Damaged { .. } => Code::FilesFailed,
        }
    }
}

impl Error {
    pub(crate) fn io<'p>(action: &'static str, path: &'p Path) -> impl FnOnce(io::Error) -> Self + use<'p> {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    pub(crate) fn os<'p>(
        action: &'static str,
        path: &'p Path,
    ) -> impl FnOnce(rustix::io::Errno) -> Self + use<'p> {
        move |errno| Self::io(action, path)(errno.into())
    }
}

/// Reason why a directory cannot be copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyProblem {
    /// An entry is neither a file, a directory nor a link.
    Special {
        /// The entry.
        path: RelativePath,
        /// Its form, with an article.
        form: &'static str,
    },
    /// An entry cannot be read.
    Unreadable {
        /// The entry.
        path: RelativePath,
        /// Reason.
        why: Unreadable,
    },
    /// A directory is mounted from elsewhere.
    OtherFileSystem {
        /// The directory.
        path: RelativePath,
    },
    /// Directories are nested too deeply.
    TooDeep {
        /// The first directory that is too deep, from its top.
        top: RelativePath,
        /// Most names in a path.
        max: usize,
    },
    /// There are too many files.
    TooManyFiles {
        /// Number of files, links and directories.
        found: u64,
        /// Most that are copied.
        max: u64,
    },
    /// The files are too large together.
    TooLarge {
        /// Their size.
        found: ByteSize,
        /// Largest size that is copied.
        max: ByteSize,
        /// The largest file.
        largest: RelativePath,
    },
}

/// Ways to copy what is too much.
const LARGER: &str = "name some in .ignore to leave them out, raise `disk` of the agent's entry, or sandbox.workspace_size and \
                      sandbox.max_workspace_files";

impl fmt::Display for CopyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Special { path, form } => write!(f, "{path} is {form}"),
            Self::Unreadable { path, why: Unreadable::Failed(errno) } => {
                write!(f, "{path} cannot be read ({errno})")
            }
            Self::Unreadable { path, why } => write!(f, "{path} {why}"),
            Self::OtherFileSystem { path } => {
                write!(f, "{path} is on another file system (name it in .ignore to leave it out)")
            }
            Self::TooDeep { top, max } => write!(f, "{top} has directories nested more than {max} deep"),
            Self::TooManyFiles { found, max } => {
                // The walk has ended there.
                let least = if *found > max.saturating_mul(COUNTED_FACTOR) { "at least " } else { "" };
                write!(
                    f,
                    "its {least}{found} files and directories exceed the limit of {max}, half of the workspace's ({LARGER})"
                )
            }
            Self::TooLarge { found, max, largest } => {
                let [found, max] = [found, max].map(|size| size_text(*size));
                write!(
                    f,
                    "its {found} exceed the limit of {max}, half of the workspace's (largest file: {largest}; {LARGER})"
                )
            }
        }
    }
}

/// List in one message, which names the first entries and counts the others.
pub(crate) struct Listed<'l, T>(pub(crate) &'l [T]);

impl<T: fmt::Display> fmt::Display for Listed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, listed) in self.0.iter().take(MAX_LISTED).enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{listed}")?;
        }
        match self.0.len().saturating_sub(MAX_LISTED) {
            0 => Ok(()),
            others => write!(f, "; and {others} more"),
        }
    }
}
