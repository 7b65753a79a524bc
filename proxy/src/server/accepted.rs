//! Defines a connection that was accepted and belongs to no thread yet.

use std::{convert::Infallible, net, os::unix};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{connection_limits::ConnectionPermits, ingress::ListenerKind, thread_load::LoadShare};

/// Connection that calls of several runs may use, on its way to the thread that serves it.
#[derive(Debug)]
pub(crate) struct AcceptedConnection {
    pub(super) stream: AcceptedStream,
    pub(super) listener: ListenerKind,
    /// Present for a gateway's connections only.
    pub(super) gateway_use: Option<GatewayUse>,
    pub(super) permits: ConnectionPermits,
    pub(super) load: LoadShare,
}

/// Relation of a connection to its gateway's listener.
#[derive(Debug)]
pub(super) struct GatewayUse {
    /// Cancelled when the listener closes.
    pub(super) closing: CancellationToken,
    /// Dropped when the connection ends.
    pub(super) in_use: mpsc::Sender<Infallible>,
}

/// Stream that no event loop watches.
#[derive(Debug)]
pub(super) enum AcceptedStream {
    /// Connection to the listener that runs share.
    Tcp(net::TcpStream),
    /// Connection to a gateway's socket.
    Unix(unix::net::UnixStream),
}
