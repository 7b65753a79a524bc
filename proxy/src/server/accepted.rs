//! Defines a connection that was accepted and belongs to no thread yet.

use std::{convert::Infallible, io, net, os::unix, sync::Arc};

use platform_runtime::{report, task};
use tokio::{net::TcpStream, sync::mpsc};

use super::{
    balancer::LoadShare,
    connection_limits::ConnectionPermits,
    ingress::Ingress,
    sensor_io::ClientStream,
    service::{CallService, ServerContext, build_connection},
    unix_stream::ClientUnixStream,
    unserved::log_connection_end,
};

/// Connection that calls of several runs may use, on its way to the thread that serves it.
#[derive(Debug)]
pub(crate) struct AcceptedConnection {
    pub(super) stream: AcceptedStream,
    pub(super) ingress: Ingress,
    pub(super) permits: ConnectionPermits,
    /// Dropped when the connection ends; of a gateway's connections only.
    pub(super) in_use: Option<mpsc::Sender<Infallible>>,
    pub(super) load: LoadShare,
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
        task::spawn("shared connection", async move { self.serve(&context).await });
    }

    async fn serve<C: CallService>(self, context: &Arc<ServerContext<C>>) {
        let Self { stream, ingress, permits, in_use, load } = self;
        match stream {
            AcceptedStream::Tcp(stream) => {
                serve_shared(context, ingress, TcpStream::from_std(stream), permits).await;
            }
            AcceptedStream::Unix(stream) => {
                serve_shared(context, ingress, ClientUnixStream::new(stream), permits).await;
            }
        }
        drop((in_use, load));
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
