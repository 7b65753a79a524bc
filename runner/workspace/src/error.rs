//! Defines the errors of creating and keeping a workspace.

use std::{
    io,
    path::{Path, PathBuf},
};

use platform_core::{
    code::{Code, Coded},
    id::{RunId, WorkspaceId},
    name::SANDBOX_UID,
};
use platform_runtime::{socket, task::ThreadEnded};

use super::disk_space::InsufficientDisk;

/// Reason why a workspace cannot be created or kept.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A directory cannot be created.
    #[error("cannot make a directory of the workspace")]
    Directory(#[from] socket::Error),
    /// Other users can enter the root.
    #[error(
        "others can enter {} (mode {mode:o}): name a directory of its own in sandbox.workspace_dir, or `chmod 700` it",
        path.display()
    )]
    Enterable {
        /// Path of the root.
        path: PathBuf,
        /// Mode of the root.
        mode: u32,
    },
    /// The process may not give files to the sandbox's user.
    #[error(
        "user {uid} may not give files to the sandbox's user ({SANDBOX_UID}): use root; the group docker is not enough"
    )]
    NotPrivileged {
        /// User of this process.
        uid: u32,
    },
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
    /// A program cannot be started.
    #[error("cannot start {program}: is its package installed (e2fsprogs, mount, util-linux, coreutils)?")]
    NoProgram {
        /// Name of the program.
        program: &'static str,
        /// Cause reported by the system.
        #[source]
        source: io::Error,
    },
    /// A program failed.
    #[error("{program} failed on {}: {message}", path.display())]
    Program {
        /// Name of the program.
        program: &'static str,
        /// Path the program worked on.
        path: PathBuf,
        /// Last line of its standard error, or its exit status.
        message: String,
    },
    /// Docker may not see what this process mounts.
    #[error(
        "Docker may not see what is mounted here: {} and this process are not known to share their mounts (as a service, `sluice` needs to run without PrivateTmp, PrivateMounts, ProtectSystem and the like)",
        docker.display()
    )]
    MountsApart {
        /// Path of Docker's socket.
        docker: PathBuf,
    },
    /// Images are required by the settings, but not possible on this host.
    #[error("workspaces cannot be images here; fix that, or set sandbox.workspaces to \"auto\"")]
    NoImages {
        /// Failure of the trial image.
        #[source]
        source: Box<Self>,
    },
    /// A workspace with this id exists already.
    #[error("there is a workspace {} already", path.display())]
    Taken {
        /// Path of the existing workspace.
        path: PathBuf,
    },
    /// No workspace has this id.
    #[error("there is no workspace {id} in {}", root.display())]
    Unknown {
        /// Id that was looked for.
        id: WorkspaceId,
        /// Root it should be in.
        root: PathBuf,
    },
    /// Another process works on the workspace.
    #[error("another process works on workspace {id}")]
    InUse {
        /// Id of the workspace.
        id: WorkspaceId,
    },
    /// The disk is too full for another workspace.
    #[error(transparent)]
    InsufficientDisk(#[from] InsufficientDisk),
    /// The files that a run begins with cannot be staged, read or written.
    #[error(transparent)]
    Files(#[from] runner_files::Error),
    /// The files staged for a run are not those of its request.
    #[error(
        "the files staged for run {run_id} are not those that it was requested with: request it again with --workspace"
    )]
    OtherFiles {
        /// Id of the run.
        run_id: RunId,
    },
    /// The thread that did the work is gone.
    #[error("the work on the workspace was aborted; see the log")]
    Thread,
}

impl From<ThreadEnded> for Error {
    fn from(_panicked: ThreadEnded) -> Self {
        Self::Thread
    }
}

impl Coded for Error {
    fn code(&self) -> Code {
        Code::WorkspaceFailed
    }
}

impl Error {
    /// Returns whether the files of a run did not fit into its workspace.
    pub fn is_out_of_space(&self) -> bool {
        let is_full = |source: &io::Error| {
            matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        };
        match self {
            Self::Io { source, .. } => is_full(source),
            Self::Files(runner_files::Error::Io { source, .. }) => is_full(source),
            _ => false,
        }
    }

    pub(super) fn io<'p>(action: &'static str, path: &'p Path) -> impl FnOnce(io::Error) -> Self + use<'p> {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}
