//! Serves the listeners of runs and gateways and the shared one.
//!
//! The connections of a run stay on the thread of its listener. Those of a gateway and of the shared listener are spread
//! over all threads.
//!
//! On a run's listener only processes of the uid in the grant may connect, on a gateway's those of the
//! gateway. When the run closes, the listener closes at once. Its connections finish the call in flight. They
//! are dropped when the run is cut, which ends their calls. When the proxy shuts down, listener and
//! connections stay until the end, so that callers get a refusal. A connection over the limit gets a refusal
//! and is closed: it costs the existing ones nothing.

use std::{io, net, os::unix::net::UnixListener as StdListener, path::Path, sync::Arc};

use platform_core::grant;
use platform_runtime::{
    accept::Acceptor,
    report,
    settings::Serves,
    socket::{self, PrivateSocket},
    task,
};
use tokio::net::{TcpListener, UnixListener, UnixStream};

use super::{
    accepted::{AcceptedConnection, AcceptedStream, GatewayUse},
    connection::build_connection,
    connection_limits::ConnectionPermits,
    connection_state::ConnectionState,
    context::ServerContext,
    gateway_socket::GatewaySocket,
    ingress::{Ingress, ListenerKind},
    serve_accepted::serve_balanced,
    service::CallService,
    unix_stream::ClientUnixStream,
    unserved::{log_connection_end, reject_connection},
};
use crate::run::Run;

/// A run's listener, bound.
#[derive(Debug)]
pub(crate) struct RunSocketListener {
    run: Arc<Run>,
    socket: PrivateSocket,
    listener: UnixListener,
}

impl RunSocketListener {
    /// Binds `path` on the current thread's runtime. The file lets agents of any uid connect: inside the
    /// sandbox the socket's owner is an unknown uid. The kernel reports the uid of a peer.
    ///
    /// # Errors
    /// If the socket cannot be bound.
    pub(crate) fn bind(run: Arc<Run>, path: &Path) -> Result<Self, socket::Error> {
        let (socket, listener) = bind_socket(path)?;
        Ok(Self { run, socket, listener })
    }

    /// Serves until the run closes.
    pub(crate) async fn serve<C: CallService>(self, context: Arc<ServerContext<C>>) {
        let Self { run, socket, listener } = self;
        let limits = context.connection_limits.for_run();
        let _descriptor = context.connection_limits.acquire_for_listener();
        let mut acceptor = Acceptor::new(listener, context.connection_limits.accept_log());
        let mut stage = run.changes();
        loop {
            let stream = tokio::select! {
                _closing = stage.wait_for(|stage| !stage.listens()) => break,
                stream = acceptor.accept() => stream,
            };
            if !is_peer_granted(&run, &stream) {
                continue;
            }
            match context.connection_limits.acquire(&limits) {
                Some(permits) => {
                    let connection = serve_run(Arc::clone(&context), Arc::clone(&run), stream, permits);
                    task::spawn_local("connection", connection);
                }
                None => reject_connection(stream.into_std()),
            }
        }
        drop(socket);
    }
}

fn bind_socket(path: &Path) -> Result<(PrivateSocket, UnixListener), socket::Error> {
    let (socket, listener): (_, StdListener) = PrivateSocket::bind(path, 0o666)?;
    let listener = UnixListener::from_std(listener).map_err(|source| socket::Error::Io {
        action: "listen on",
        path: path.to_owned(),
        source,
    })?;
    Ok((socket, listener))
}

fn is_peer_granted(run: &Run, stream: &UnixStream) -> bool {
    match stream.peer_cred() {
        Ok(peer) if run.grant.listener == (grant::Listener::Unix { peer_uid: peer.uid() }) => true,
        Ok(peer) => {
            tracing::warn!(run = %run.grant.run_id, uid = peer.uid(), "connection of a uid that is not granted");
            false
        }
        Err(error) => {
            let error = report::chain(&error);
            tracing::warn!(run = %run.grant.run_id, error, "connection without a known uid");
            false
        }
    }
}

/// Serves a connection on a run's own socket until it ends, or the run is cut.
async fn serve_run<C: CallService>(
    context: Arc<ServerContext<C>>,
    run: Arc<Run>,
    stream: UnixStream,
    permits: ConnectionPermits,
) {
    let stream = match stream.into_std().and_then(ClientUnixStream::new) {
        Ok(stream) => stream,
        Err(error) => {
            tracing::warn!(
                error = report::chain(&error),
                "connection closed: the event loop cannot watch it"
            );
            return;
        }
    };
    let connection_state = ConnectionState::new(Some(Arc::clone(&run)), context.calls.idle_timeouts());
    let listener = ListenerKind::Run(Arc::clone(&run));
    let ingress = Ingress { listener, connection_state: connection_state.clone() };
    // Subscribed before the first check, so that no change in between is missed.
    let mut changes = run.changes();
    let ConnectionPermits { connection: permits, head } = permits;
    let mut connection = build_connection(&context, ingress.clone(), head, stream);
    let _load = context.balancer.own_load().add_connection();
    let end = loop {
        if run.cut().is_some() || connection_state.is_cut(&context.freezes) {
            return;
        }
        if !run.listens() {
            connection.graceful_shutdown();
        }
        tokio::select! {
            end = &mut connection => break end,
            // The sender lives as long as the run.
            Ok(()) = changes.changed() => {}
        }
    };
    log_connection_end(&context.calls, &ingress, connection, end);
    drop(permits);
}

/// The listener that runs share, bound.
#[derive(Debug)]
pub(crate) struct SharedListener {
    listener: TcpListener,
    serves: Serves,
}

impl SharedListener {
    /// Creates the shared listener on the current thread's runtime.
    ///
    /// # Errors
    /// If the runtime cannot watch it.
    pub(crate) fn of(listener: net::TcpListener, serves: Serves) -> io::Result<Self> {
        Ok(Self { listener: TcpListener::from_std(listener)?, serves })
    }

    /// Serves until its task ends. Runs that close end their calls themselves.
    pub(crate) async fn serve<C: CallService>(self, context: Arc<ServerContext<C>>) {
        let mut acceptor = Acceptor::new(self.listener, context.connection_limits.accept_log());
        loop {
            let stream = acceptor.accept().await;
            match context.connection_limits.acquire_shared() {
                Some(permits) => {
                    let stream = stream.into_std().map(AcceptedStream::Tcp);
                    serve_balanced(&context, stream, |stream, load| AcceptedConnection {
                        stream,
                        listener: ListenerKind::Shared(self.serves),
                        gateway_use: None,
                        permits,
                        load,
                    });
                }
                None => reject_connection(stream.into_std()),
            }
        }
    }
}

/// A gateway's listener, bound.
#[derive(Debug)]
pub(crate) struct GatewayListener {
    gateway: GatewaySocket,
    socket: PrivateSocket,
    listener: UnixListener,
}

impl GatewayListener {
    /// Binds the socket on the current thread's runtime.
    ///
    /// # Errors
    /// If the socket cannot be bound.
    pub(crate) fn bind(gateway: GatewaySocket) -> Result<Self, socket::Error> {
        let (socket, listener) = bind_socket(&gateway.path)?;
        Ok(Self { gateway, socket, listener })
    }

    /// Serves until it is closed, which cuts its connections, too. Runs that close end their calls themselves.
    pub(crate) async fn serve<C: CallService>(self, context: Arc<ServerContext<C>>) {
        let Self { gateway, socket, listener } = self;
        let limits = context.connection_limits.for_run();
        let _descriptor = context.connection_limits.acquire_for_listener();
        let mut acceptor = Acceptor::new(listener, context.connection_limits.accept_log());
        while let Some(stream) = gateway.closing.run_until_cancelled(acceptor.accept()).await {
            if !is_gateway_peer(&gateway, &stream) {
                continue;
            }
            match context.connection_limits.acquire(&limits) {
                Some(permits) => {
                    let closing = gateway.closing.clone();
                    let gateway_use = Some(GatewayUse { closing, in_use: gateway.in_use.clone() });
                    let stream = stream.into_std().map(AcceptedStream::Unix);
                    serve_balanced(&context, stream, |stream, load| AcceptedConnection {
                        stream,
                        listener: ListenerKind::Gateway(gateway.gateway.clone()),
                        gateway_use,
                        permits,
                        load,
                    });
                }
                None => reject_connection(stream.into_std()),
            }
        }
        drop(socket);
    }
}

fn is_gateway_peer(gateway: &GatewaySocket, stream: &UnixStream) -> bool {
    let uid = stream.peer_cred().map(|peer| peer.uid());
    let is_granted = uid.as_ref().is_ok_and(|uid| *uid == gateway.peer_uid);
    if !is_granted {
        tracing::warn!(gateway = %gateway.gateway, ?uid, "connection of a uid that is not the gateway's");
    }
    is_granted
}
