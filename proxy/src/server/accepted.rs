//! Defines a connection that was accepted and belongs to no thread yet.

use std::{convert::Infallible, io, net, os::unix, sync::Arc};

use platform_runtime::{report, task};
use tokio::{net::TcpStream, sync::mpsc};
use tokio_util::sync::CancellationToken;

use super::{
    balancer::LoadShare,
    connection_limits::ConnectionPermits,
    connection_state::ConnectionState,
    ingress::{Ingress, ListenerKind},
    sensor_io::ClientStream,
    service::{CallService, ServerContext, build_connection},
    unix_stream::ClientUnixStream,
    unserved::log_connection_end,
};

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

impl AcceptedConnection {
    /// Serves the connection on the current thread.
    pub(super) fn start<C: CallService>(self, context: &Arc<ServerContext<C>>) {
        let context = Arc::clone(context);
        task::spawn_local("shared connection", async move { self.serve(&context).await });
    }

    async fn serve<C: CallService>(self, context: &Arc<ServerContext<C>>) {
        let Self { stream, listener, gateway_use, permits, load } = self;
        let idle_timeouts = context.calls.idle_timeouts();
        let connection_state = match &gateway_use {
            Some(gateway) => ConnectionState::for_gateway(gateway.closing.clone(), idle_timeouts),
            None => ConnectionState::new(None, idle_timeouts),
        };
        let ingress = Ingress { listener, connection_state };
        match stream {
            AcceptedStream::Tcp(stream) => {
                serve_shared(context, ingress, TcpStream::from_std(stream), permits).await;
            }
            AcceptedStream::Unix(stream) => {
                serve_shared(context, ingress, ClientUnixStream::new(stream), permits).await;
            }
        }
        drop((gateway_use.map(|gateway| gateway.in_use), load));
    }
}

/// Serves a connection until it ends, or its call is cut.
async fn serve_shared<C: CallService, S: ClientStream>(
    context: &Arc<ServerContext<C>>,
    ingress: Ingress,
    stream: io::Result<S>,
    permits: ConnectionPermits,
) {
    let stream = match stream {
        Ok(stream) => stream,
        Err(error) => {
            tracing::warn!(error = report::chain(&error), "connection closed: no event loop can watch it");
            return;
        }
    };
    let cut = ingress.connection_state.clone().wait_until_cut(Arc::clone(&context.freezes));
    let ConnectionPermits { connection: permits, head } = permits;
    let mut connection = build_connection(context, ingress.clone(), head, stream);
    tokio::select! {
        end = &mut connection => log_connection_end(&context.calls, &ingress, connection, end),
        () = cut => {}
    }
    drop(permits);
}
