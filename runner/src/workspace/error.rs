//! Why there is no workspace, or nothing to be read in it.

use std::{
    io,
    path::{Path, PathBuf},
};

use platform_core::{id::WorkspaceId, limit::ByteSize};
use platform_runtime::socket;

use super::Room;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A directory cannot be made.
    #[error("cannot make a directory of the workspace")]
    Directory(#[from] socket::Error),
    /// The root lets others in.
    #[error(
        "others can enter {} (mode {mode:o}): name a directory of its own in sandbox.workspace_dir, or `chmod 700` it",
        path.display()
    )]
    Enterable {
        /// The root.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The system said no.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A program is not to be had.
    #[error("cannot start {program}: is its package installed (e2fsprogs, mount, util-linux, coreutils)?")]
    NoProgram {
        /// Its name.
        program: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A program failed.
    #[error("{program} failed on {}: {said}", path.display())]
    Program {
        /// Its name.
        program: &'static str,
        /// What it was to work on.
        path: PathBuf,
        /// Its last words, or its exit status.
        said: String,
    },
    /// Docker would not see what is mounted here.
    #[error(
        "Docker may not see what is mounted here: {} and this process are not known to share their mounts (as a service, `sluice` needs to run without PrivateTmp, PrivateMounts, ProtectSystem and the like)",
        docker.display()
    )]
    MountsApart {
        /// Docker's socket.
        docker: PathBuf,
    },
    /// Images are asked for, and not possible.
    #[error("workspaces cannot be images here; mend that, or set sandbox.workspaces to \"auto\"")]
    NoImages {
        /// Why not.
        #[source]
        source: Box<Self>,
    },
    /// Somebody has it already.
    #[error("there is a workspace {} already", path.display())]
    Taken {
        /// Where.
        path: PathBuf,
    },
    /// There is none.
    #[error("there is no workspace {id} in {}", root.display())]
    Unknown {
        /// Its id.
        id: WorkspaceId,
        /// Where it should be.
        root: PathBuf,
    },
    /// The disk is too full for one more.
    #[error("{} has too little room: {room}; free some, or lower sandbox.disk_reserve or sandbox.workspace_size", root.display())]
    NoRoom {
        /// Where.
        root: PathBuf,
        /// What there is.
        room: Room,
    },
    /// A file of the agent's is not one to be read.
    #[error("{} in the workspace {why}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: Unreadable,
    },
    /// The thread that was at it is gone.
    #[error("the work on the workspace broke off; the log says why")]
    Thread,
}

/// Why a file of an agent's is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    /// Nothing is there.
    #[error("does not exist")]
    Missing,
    /// A symbolic link is on the way to it, or it is elsewhere.
    #[error("is not reached without leaving the workspace or following a link")]
    Elsewhere,
    /// A directory, socket, pipe or device.
    #[error("is not a file")]
    NotAFile,
    /// The same file is there under another name.
    #[error("has {names} names instead of one")]
    Linked {
        /// How many.
        names: u64,
    },
    /// It holds too much.
    #[error("is larger than {most}")]
    TooLarge {
        /// What it may hold.
        most: ByteSize,
    },
}

impl Error {
    pub(super) fn io<'p>(action: &'static str, path: &'p Path) -> impl FnOnce(io::Error) -> Self + use<'p> {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}
