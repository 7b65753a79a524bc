//! Why control is refused something about a run.

use std::{io, path::PathBuf};

use platform_core::id::{GatewayId, RunId};
use platform_runtime::socket;

use super::claims::Owner;
use crate::worker;

/// Why a run was not opened, changed or closed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The run is there already, with another grant.
    #[error("run {run} is open with another grant; close it first")]
    Conflict {
        /// The run.
        run: RunId,
    },
    /// The run was closed. A new attempt is a new run here.
    #[error("run {run} was closed; a closed run is not opened again")]
    Closed {
        /// The run.
        run: RunId,
    },
    /// Somebody else holds the run by now.
    #[error("run {run} was taken over: it is in epoch {epoch}, and this was asked in epoch {asked}")]
    Fenced {
        /// The run.
        run: RunId,
        /// The epoch it is in.
        epoch: u64,
        /// The epoch in whose name this was asked.
        asked: u64,
    },
    /// It cannot be called in the way it was granted.
    #[error(
        "run {run} cannot be opened: its grant wants the shared listener and proxy.listen is not set, or its id is reserved"
    )]
    NoSuchListener {
        /// The run.
        run: RunId,
    },
    /// A socket directory could not be removed.
    #[error("socket directory {} stays, and the proxy's log says why", path.display())]
    Leftover {
        /// The directory.
        path: PathBuf,
    },
    /// A socket directory belongs to another run or gateway.
    #[error("socket directory {} belongs to {owner}: close that first, or choose another name", path.display())]
    SocketInUse {
        /// The directory.
        path: PathBuf,
        /// The owner.
        owner: Owner,
    },
    /// A run that was registered has the name of a run of the configuration, or that name is reserved.
    #[error(
        "a run {run} is open already and not the configuration's, or the name is reserved: close that run, or give this one another name"
    )]
    NameTaken {
        /// The run.
        run: RunId,
    },
    /// Another run of the configuration has its socket at the same place.
    #[error("socket {} is that of run {other}: choose another path", path.display())]
    SameSocket {
        /// The socket, links resolved.
        path: PathBuf,
        /// The other run.
        other: RunId,
    },
    /// A run of the configuration has its socket among the proxy's own.
    #[error("socket {} is in a directory of the proxy's own sockets: choose another directory", path.display())]
    Reserved {
        /// The socket, links resolved.
        path: PathBuf,
    },
    /// The gateway is heard elsewhere.
    #[error("gateway {gateway} is heard at another socket; close that first")]
    GatewayConflict {
        /// The gateway.
        gateway: GatewayId,
    },
    /// What has to outlive the proxy cannot be written down.
    #[error("gateway {gateway} cannot be written down, so it is not heard")]
    KeepGateway {
        /// The gateway.
        gateway: GatewayId,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Its identity does not fit into headers.
    #[error("the grant of run {run} cannot be written as headers")]
    Unwritable {
        /// The run.
        run: RunId,
        /// Why not.
        #[source]
        source: http::Error,
    },
    /// What has to outlive the proxy cannot be written down.
    #[error("run {run} cannot be written down, so nothing was changed")]
    Keep {
        /// The run.
        run: RunId,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The change was made, and a restart would undo it.
    #[error(
        "run {run} cannot be written down: this holds from now on, and a restart of the proxy would forget it; free space in proxy.run_dir and ask again"
    )]
    NotStored {
        /// The run.
        run: RunId,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Its directory could not be made.
    #[error(transparent)]
    Directory(#[from] socket::Error),
    /// Its thread could not open it.
    #[error(transparent)]
    Worker(#[from] worker::Error),
}

impl Error {
    /// Turns the error of a change that is stored first into that of one that holds first.
    pub(super) fn of_what_holds(self) -> Self {
        match self {
            Self::Keep { run, source } => Self::NotStored { run, source },
            other => other,
        }
    }
}
