//! Serves accepted connections, on the thread that has the fewest.

use std::{io, sync::Arc};

use platform_runtime::{report, task};
use tokio::net::TcpStream;

use super::{
    accepted::{AcceptedConnection, AcceptedStream},
    balancer::ConnectionQueue,
    connection::build_connection,
    connection_limits::ConnectionPermits,
    connection_state::ConnectionState,
    context::ServerContext,
    ingress::Ingress,
    sensor_io::ClientStream,
    service::CallService,
    thread_load::LoadShare,
    unix_stream::ClientUnixStream,
    unserved::log_connection_end,
};

/// Serves `stream` on the thread that has the fewest connections, as the connection that `accepted` makes of it.
pub(super) fn serve_balanced<C: CallService>(
    context: &Arc<ServerContext<C>>,
    stream: io::Result<AcceptedStream>,
    accepted: impl FnOnce(AcceptedStream, LoadShare) -> AcceptedConnection,
) {
    let stream = match stream {
        Ok(stream) => stream,
        Err(error) => {
            tracing::warn!(error = report::chain(&error), "connection closed: it cannot be handed over");
            return;
        }
    };
    if let Some(connection) = context.balancer.place(|load| accepted(stream, load)) {
        connection.start(context);
    }
}

/// Serves the connections that other threads hand over, until its task ends.
pub(crate) async fn serve_handed_over<C: CallService>(
    context: Arc<ServerContext<C>>,
    mut handed_over: ConnectionQueue,
) {
    while let Some(connection) = handed_over.recv().await {
        connection.start(&context);
    }
}

impl AcceptedConnection {
    /// Serves the connection on the current thread.
    fn start<C: CallService>(self, context: &Arc<ServerContext<C>>) {
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
