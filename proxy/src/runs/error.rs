//! Defines the errors of control requests about runs and gateways.

use std::{io, path::PathBuf};

use platform_core::id::{GatewayId, RunId};
use platform_runtime::socket;

use super::claims::DirOwner;
use crate::data_plane_thread;

/// Reason that a run was not opened, changed or closed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The run is open already, with another grant.
    #[error("run {run_id} is open with another grant; close it first")]
    Conflict {
        /// Id of the run.
        run_id: RunId,
    },
    /// This attempt of the run was closed, or a later one.
    #[error("run {run_id} was closed; a closed run is not opened again, except as its next attempt")]
    Closed {
        /// Id of the run.
        run_id: RunId,
    },
    /// Another holder has taken the run over.
    #[error("run {run_id} was taken over: it is in epoch {epoch}, and this was asked in epoch {asked}")]
    Fenced {
        /// Id of the run.
        run_id: RunId,
        /// Epoch of the present holder.
        epoch: u64,
        /// Epoch of the request.
        asked: u64,
    },
    /// The run's listener does not exist, or its id is reserved.
    #[error(
        "run {run_id} cannot be opened: its grant wants the shared listener and proxy.listen is not set, or its id is reserved"
    )]
    NoSuchListener {
        /// Id of the run.
        run_id: RunId,
    },
    /// A socket directory could not be removed.
    #[error("socket directory {} is not removed; the proxy's log says why", path.display())]
    Leftover {
        /// Path of the directory.
        path: PathBuf,
    },
    /// A socket directory belongs to another run or gateway.
    #[error("socket directory {} belongs to {owner}: close that first, or choose another name", path.display())]
    SocketInUse {
        /// Path of the directory.
        path: PathBuf,
        /// Owner of the directory.
        owner: DirOwner,
    },
    /// A registered run has the name of a run of the configuration, or that name is reserved.
    #[error(
        "a run {run_id} is open already and not the configuration's, or the name is reserved: close that run, or give this one another name"
    )]
    NameTaken {
        /// Id of the run.
        run_id: RunId,
    },
    /// Another run of the configuration has the same socket.
    #[error("socket {} is that of run {other}: choose another path", path.display())]
    SameSocket {
        /// Path of the socket, links resolved.
        path: PathBuf,
        /// Id of the other run.
        other: RunId,
    },
    /// A run of the configuration has its socket in a directory of the proxy's own sockets.
    #[error("socket {} is in a directory of the proxy's own sockets: choose another directory", path.display())]
    Reserved {
        /// Path of the socket, links resolved.
        path: PathBuf,
    },
    /// The gateway is served at another socket.
    #[error("gateway {gateway} is served at another socket; close that first")]
    GatewayConflict {
        /// Id of the gateway.
        gateway: GatewayId,
    },
    /// The gateway cannot be stored for the next proxy.
    #[error("gateway {gateway} cannot be stored, so it is not served")]
    GatewayNotPersisted {
        /// Id of the gateway.
        gateway: GatewayId,
        /// Failure of the disk.
        #[source]
        source: io::Error,
    },
    /// The run's identity does not fit into headers.
    #[error("the grant of run {run_id} cannot be written as headers")]
    Unwritable {
        /// Id of the run.
        run_id: RunId,
        /// Failure of the header.
        #[source]
        source: http::Error,
    },
    /// The run cannot be stored for the next proxy.
    #[error("run {run_id} cannot be stored, so nothing was changed")]
    NotPersisted {
        /// Id of the run.
        run_id: RunId,
        /// Failure of the disk.
        #[source]
        source: io::Error,
    },
    /// The change is in effect, and a restart would undo it.
    #[error(
        "run {run_id} cannot be stored: this holds from now on, and a restart of the proxy would forget it; free space in proxy.run_dir and ask again"
    )]
    NotStored {
        /// Id of the run.
        run_id: RunId,
        /// Failure of the disk.
        #[source]
        source: io::Error,
    },
    /// The run's directory could not be created.
    #[error(transparent)]
    Directory(#[from] socket::Error),
    /// The run's thread could not open it.
    #[error(transparent)]
    DataPlaneThread(#[from] data_plane_thread::Error),
}

impl Error {
    /// Converts the error of a change that is stored first into that of one that takes effect first.
    pub(super) fn of_applied_change(self) -> Self {
        match self {
            Self::NotPersisted { run_id, source } => Self::NotStored { run_id, source },
            other => other,
        }
    }
}
