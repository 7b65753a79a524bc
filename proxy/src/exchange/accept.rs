//! Serves the listeners of runs and gateways and the shared one, and the connections on them.
//!
//! On a run's listener only processes of the uid in the grant may connect, on a gateway's those of the
//! gateway. When the run closes, the listener closes at once. Its connections finish the call in flight. They
//! are dropped when the run is cut, which ends their calls. When the proxy shuts down, listener and
//! connections stay until the end, so that callers get a refusal. A connection over the limit gets a refusal
//! and is closed: it costs the existing ones nothing.

use std::{
    convert::Infallible, io, net, os::unix::net::UnixListener as StdListener, path::Path, pin::Pin, sync::Arc,
};

use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::rt::TokioIo;
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
    ServeContext, admit,
    connection_limits::ConnectionPermits,
    connection_state::ConnectionState,
    gateway_socket::GatewaySocket,
    head_memory::HeadPermit,
    identify::{Ingress, ListenerKind},
    sensor_io::{ClientStream, SensorIo},
    serve,
    timed_connection::TimedConnection,
    timeouts::IdleTimeouts,
    unserved::{log_connection_end, reject_connection},
    write_tracker::{PendingWrite, TrackedBody},
};
use crate::run::Run;

/// Most bytes that are read from a client at once. hyper would read up to 400 KiB ahead per connection. A body that
/// fits comes in one piece and is not copied.
const READ_BUFFER: usize = 256 << 10;

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
    pub(crate) async fn serve(self, context: Arc<ServeContext>) {
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
                    task::spawn("connection", connection);
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
async fn serve_run(
    context: Arc<ServeContext>,
    run: Arc<Run>,
    stream: UnixStream,
    permits: ConnectionPermits,
) {
    let connection_state = ConnectionState::new(Some(Arc::clone(&run)), idle_timeouts(&context));
    let listener = ListenerKind::Run(Arc::clone(&run));
    let ingress = Ingress { listener, connection_state: connection_state.clone() };
    // Subscribed before the first check, so that no change in between is missed.
    let mut changes = run.changes();
    let ConnectionPermits { connection: permits, head } = permits;
    let mut connection = build_connection(Arc::clone(&context), ingress.clone(), head, stream);
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
    log_connection_end(&context, &ingress, connection, end);
    drop(permits);
}

/// The listener that runs share, bound, on one of the threads that serve it.
#[derive(Debug)]
pub(crate) struct SharedListener {
    listener: TcpListener,
    serves: Serves,
}

impl SharedListener {
    /// Creates the part of the shared listener that the current thread serves.
    ///
    /// # Errors
    /// If the runtime cannot watch it.
    pub(crate) fn of(listener: net::TcpListener, serves: Serves) -> io::Result<Self> {
        Ok(Self { listener: TcpListener::from_std(listener)?, serves })
    }

    /// Serves until its task ends. Runs that close end their calls themselves.
    pub(crate) async fn serve(self, context: Arc<ServeContext>) {
        let mut acceptor = Acceptor::new(self.listener, context.connection_limits.accept_log());
        loop {
            let stream = acceptor.accept().await;
            match context.connection_limits.acquire_shared() {
                Some(permits) => {
                    let connection_state = ConnectionState::new(None, idle_timeouts(&context));
                    let ingress = Ingress { listener: ListenerKind::Shared(self.serves), connection_state };
                    let connection = serve_shared(Arc::clone(&context), ingress, stream, permits);
                    task::spawn("shared connection", connection);
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
    pub(crate) async fn serve(self, context: Arc<ServeContext>) {
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
                    let idle_timeouts = idle_timeouts(&context);
                    let connection_state =
                        ConnectionState::for_gateway(gateway.closing.clone(), idle_timeouts);
                    let listener = ListenerKind::Gateway(gateway.gateway.clone());
                    let ingress = Ingress { listener, connection_state };
                    let connection = serve_shared(Arc::clone(&context), ingress, stream, permits);
                    let in_use = gateway.in_use.clone();
                    task::spawn("gateway's connection", async move {
                        connection.await;
                        drop(in_use);
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

/// Serves a connection until it ends, or its call is cut.
async fn serve_shared<S: ClientStream>(
    context: Arc<ServeContext>,
    ingress: Ingress,
    stream: S,
    permits: ConnectionPermits,
) {
    let cut = ingress.connection_state.clone().wait_until_cut(Arc::clone(&context));
    let ConnectionPermits { connection: permits, head } = permits;
    let mut connection = build_connection(Arc::clone(&context), ingress.clone(), head, stream);
    tokio::select! {
        end = &mut connection => log_connection_end(&context, &ingress, connection, end),
        () = cut => {}
    }
    drop(permits);
}

fn idle_timeouts(context: &ServeContext) -> IdleTimeouts {
    let snapshot = context.snapshot.load();
    IdleTimeouts { head: snapshot.header_read_timeout, keep_alive: snapshot.keep_alive_timeout }
}

/// Returns a connection that is served when it is polled. Timeouts are watched here: hyper creates a new timer for
/// every request, and does not distinguish a slow head from an idle connection.
fn build_connection<S: ClientStream>(
    context: Arc<ServeContext>,
    ingress: Ingress,
    head: HeadPermit,
    stream: S,
) -> TimedConnection<S> {
    let connection_state = ingress.connection_state.clone();
    let pending_write = PendingWrite::new(Arc::clone(&context.write_tracker));
    let sensor_io = SensorIo::new(stream, connection_state.clone(), pending_write.clone());
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_header_size(admit::MAX_HEAD)
        .max_buf_size(READ_BUFFER)
        .serve_connection(TokioIo::new(sensor_io), Service { context, ingress, pending_write });
    TimedConnection::new(connection, connection_state, head)
}

/// Answers the requests of one connection.
#[derive(Debug)]
pub(super) struct Service {
    context: Arc<ServeContext>,
    ingress: Ingress,
    pending_write: PendingWrite,
}

impl hyper::service::Service<Request<Incoming>> for Service {
    type Response = Response<TrackedBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<TrackedBody>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let context = Arc::clone(&self.context);
        let ingress = self.ingress.clone();
        let pending_write = self.pending_write.clone();
        pending_write.begin();
        Box::pin(async move { Ok(pending_write.track(serve(&context, &ingress, request).await)) })
    }
}
