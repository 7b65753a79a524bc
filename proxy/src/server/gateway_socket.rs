//! Defines the socket of one gateway, as control describes it to a data-plane thread.

use std::{convert::Infallible, path::PathBuf};

use platform_core::id::GatewayId;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Socket on which the calls of one gateway arrive.
#[derive(Debug)]
pub(crate) struct GatewaySocket {
    pub(crate) gateway: GatewayId,
    /// Uid of the processes that may connect, as the host counts.
    pub(crate) peer_uid: u32,
    pub(crate) path: PathBuf,
    /// Cancelled when the socket is to close.
    pub(crate) closing: CancellationToken,
    /// Dropped with the listener and each of its connections: when none is left, nothing of the gateway is.
    pub(crate) in_use: mpsc::Sender<Infallible>,
}
