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
    settings::Serves,
    socket::{self, PrivateSocket},
    task,
};
use tokio::net::{TcpListener, UnixListener, UnixStream};

use super::{
    Plane, admit,
    carried::Carried,
    gateway_socket::GatewaySocket,
    head_memory::HeadPermit,
    identify::{Entrance, Way},
    patience::Quiet,
    room::Places,
    serve,
    timed::Timed,
    unserved::{end, turn_away},
    unwritten::{Owed, Owing},
    wire::{Socket, Wire},
};
use crate::run::Run;

/// Most bytes that are read from a client at once. hyper would read up to 400 KiB ahead per connection. A body that
/// fits comes in one piece and is not copied.
const READ_BUFFER: usize = 256 << 10;

/// A run's listener, bound.
#[derive(Debug)]
pub(crate) struct Listener {
    run: Arc<Run>,
    socket: PrivateSocket,
    listener: UnixListener,
}

impl Listener {
    /// Binds `path` on the current thread's runtime. The file lets agents of any uid connect: inside the
    /// sandbox the socket's owner is an unknown uid. The kernel reports the uid of a peer.
    ///
    /// # Errors
    /// If the socket cannot be bound.
    pub(crate) fn bind(run: Arc<Run>, path: &Path) -> Result<Self, socket::Error> {
        let (socket, listener) = bound(path)?;
        Ok(Self { run, socket, listener })
    }

    /// Serves until the run closes.
    pub(crate) async fn serve(self, plane: Arc<Plane>) {
        let Self { run, socket, listener } = self;
        let (room, _descriptor) = (plane.rooms.of_a_run(), plane.rooms.listener());
        let mut stage = run.changes();
        let mut failures = 0;
        loop {
            let accepted = tokio::select! {
                _closing = stage.wait_for(|stage| !stage.listens()) => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) if is_granted(&run, &stream) => {
                    failures = 0;
                    match plane.rooms.enter(&room) {
                        Some(places) => {
                            let (plane, run) = (Arc::clone(&plane), Arc::clone(&run));
                            task::spawn("connection", own(plane, run, stream, places));
                        }
                        None => turn_away(stream.into_std()),
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    plane.rooms.wait_after(&error, failures).await;
                    failures += 1;
                }
            }
        }
        drop(socket);
    }
}

fn bound(path: &Path) -> Result<(PrivateSocket, UnixListener), socket::Error> {
    let (socket, listener): (_, StdListener) = PrivateSocket::bind(path, 0o666)?;
    let listener = UnixListener::from_std(listener).map_err(|source| socket::Error::Io {
        action: "listen on",
        path: path.to_owned(),
        source,
    })?;
    Ok((socket, listener))
}

fn is_granted(run: &Run, stream: &UnixStream) -> bool {
    match stream.peer_cred() {
        Ok(peer) if run.grant.listener == (grant::Listener::Unix { peer_uid: peer.uid() }) => true,
        Ok(peer) => {
            tracing::warn!(run = %run.grant.run_id, uid = peer.uid(), "connection of a uid that is not granted");
            false
        }
        Err(error) => {
            tracing::warn!(run = %run.grant.run_id, %error, "connection without a known uid");
            false
        }
    }
}

/// Serves a connection of a run's own until it ends, or the run is cut.
async fn own(plane: Arc<Plane>, run: Arc<Run>, stream: UnixStream, places: Places) {
    let carried = Carried::of(Some(Arc::clone(&run)), quiet(&plane));
    let entrance = Entrance { way: Way::Own(Arc::clone(&run)), carried: carried.clone() };
    // Before it is looked for the first time, so that nothing changes unseen in between.
    let mut changes = run.changes();
    let Places { connection: places, heads } = places;
    let mut connection = serving(Arc::clone(&plane), entrance.clone(), heads, stream);
    let ended = loop {
        if run.cut().is_some() || carried.is_cut(&plane.freezes) {
            return;
        }
        if !run.listens() {
            connection.close_softly();
        }
        tokio::select! {
            ended = &mut connection => break ended,
            // The sender lives as long as the run.
            Ok(()) = changes.changed() => {}
        }
    };
    end((&plane, &entrance), connection, ended);
    drop(places);
}

/// The listener that runs share, bound, on one of the threads that serve it.
#[derive(Debug)]
pub(crate) struct SharedListener {
    listener: TcpListener,
    serves: Serves,
}

impl SharedListener {
    /// Serves what `listener`, bound elsewhere, brings to the current thread.
    ///
    /// # Errors
    /// If the runtime cannot watch it.
    pub(crate) fn of(listener: net::TcpListener, serves: Serves) -> io::Result<Self> {
        Ok(Self { listener: TcpListener::from_std(listener)?, serves })
    }

    /// Serves until its task ends. Runs that close end their calls themselves.
    pub(crate) async fn serve(self, plane: Arc<Plane>) {
        let mut failures = 0;
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    failures = 0;
                    match plane.rooms.enter_shared() {
                        Some(places) => {
                            let carried = Carried::of(None, quiet(&plane));
                            let entrance = Entrance { way: Way::Shared(self.serves), carried };
                            let shared = shared(Arc::clone(&plane), entrance, stream, places);
                            task::spawn("shared connection", shared);
                        }
                        None => turn_away(stream.into_std()),
                    }
                }
                Err(error) => {
                    plane.rooms.wait_after(&error, failures).await;
                    failures += 1;
                }
            }
        }
    }
}

/// A gateway's listener, bound.
#[derive(Debug)]
pub(crate) struct GatewayListener {
    heard: GatewaySocket,
    socket: PrivateSocket,
    listener: UnixListener,
}

impl GatewayListener {
    /// Binds it on the current thread's runtime.
    ///
    /// # Errors
    /// If the socket cannot be bound.
    pub(crate) fn bind(heard: GatewaySocket) -> Result<Self, socket::Error> {
        let (socket, listener) = bound(&heard.path)?;
        Ok(Self { heard, socket, listener })
    }

    /// Serves until it is closed, which cuts its connections, too. Runs that close end their calls themselves.
    pub(crate) async fn serve(self, plane: Arc<Plane>) {
        let Self { heard, socket, listener } = self;
        let (room, _descriptor) = (plane.rooms.of_a_run(), plane.rooms.listener());
        let mut failures = 0;
        while let Some(accepted) = heard.closing.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((stream, _)) if is_the_gateway(&heard, &stream) => {
                    failures = 0;
                    match plane.rooms.enter(&room) {
                        Some(places) => {
                            let carried = Carried::of_gateway(heard.closing.clone(), quiet(&plane));
                            let entrance = Entrance { way: Way::Gateway(heard.gateway.clone()), carried };
                            let connection = shared(Arc::clone(&plane), entrance, stream, places);
                            let here = heard.here.clone();
                            task::spawn("gateway's connection", async move {
                                connection.await;
                                drop(here);
                            });
                        }
                        None => turn_away(stream.into_std()),
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    plane.rooms.wait_after(&error, failures).await;
                    failures += 1;
                }
            }
        }
        drop(socket);
    }
}

fn is_the_gateway(heard: &GatewaySocket, stream: &UnixStream) -> bool {
    let uid = stream.peer_cred().map(|peer| peer.uid());
    let is_the_gateway = uid.as_ref().is_ok_and(|uid| *uid == heard.peer_uid);
    if !is_the_gateway {
        tracing::warn!(gateway = %heard.gateway, ?uid, "connection of a uid that is not the gateway's");
    }
    is_the_gateway
}

/// Serves a connection until it ends, or the call it carries is cut.
async fn shared<S: Socket>(plane: Arc<Plane>, entrance: Entrance, stream: S, places: Places) {
    let cut = entrance.carried.clone().until_cut(Arc::clone(&plane));
    let Places { connection: places, heads } = places;
    let mut connection = serving(Arc::clone(&plane), entrance.clone(), heads, stream);
    tokio::select! {
        ended = &mut connection => end((&plane, &entrance), connection, ended),
        () = cut => {}
    }
    drop(places);
}

fn quiet(plane: &Plane) -> Quiet {
    let snapshot = plane.snapshot.load();
    Quiet { head: snapshot.header_read, keep_alive: snapshot.keep_alive }
}

/// Returns a connection that is served when it is polled. Time is watched here, because hyper makes its timer
/// anew for every request and does not tell a head from a pause.
fn serving<S: Socket>(plane: Arc<Plane>, entrance: Entrance, heads: HeadPermit, stream: S) -> Timed<S> {
    let (carried, owed) = (entrance.carried.clone(), Owed::new(Arc::clone(&plane.unwritten)));
    let wire = Wire::new(stream, carried.clone(), owed.clone());
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_header_size(admit::MAX_HEAD)
        .max_buf_size(READ_BUFFER)
        .serve_connection(TokioIo::new(wire), Service { plane, entrance, owed });
    Timed::new(connection, carried, heads)
}

/// Answers the requests of one connection.
#[derive(Debug)]
pub(super) struct Service {
    plane: Arc<Plane>,
    entrance: Entrance,
    owed: Owed,
}

impl hyper::service::Service<Request<Incoming>> for Service {
    type Response = Response<Owing>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Owing>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (plane, entrance, owed) = (Arc::clone(&self.plane), self.entrance.clone(), self.owed.clone());
        owed.begin();
        Box::pin(async move { Ok(owed.of(serve(&plane, &entrance, request).await)) })
    }
}
