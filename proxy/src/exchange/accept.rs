//! accept: the listeners, a run's own and the one that runs share, and the connections on them.
//!
//! On a run's own only processes of the uid in the grant are heard. When the run closes, the listener goes at once; its
//! connections finish the call they carry, and are dropped when the run is cut, which ends their calls. When the proxy
//! goes down, listener and connections stay until then, to say so to whoever calls.

use std::{
    convert::Infallible, io, net, os::unix::net::UnixListener as StdListener, path::Path, pin::Pin,
    sync::Arc, time::Duration,
};

use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::rt::{TokioIo, TokioTimer};
use platform_core::grant;
use platform_runtime::{
    settings::Serves,
    socket::{self, PrivateSocket},
    task,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
};

use super::{
    Plane,
    carried::Carried,
    identify::{Entrance, Way},
    serve,
    unwritten::{Noticing, Owed, Owing},
};
use crate::run::Run;

/// How long to wait when the system has no descriptors left, instead of spinning.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Most that is read from a client at once, and so the most that a request's head may have, bytes. hyper would read up to
/// 400 KiB ahead per connection; a body that fits comes in one piece and is not copied.
const READ_BUFFER: usize = 256 << 10;

/// A run's listener, bound.
#[derive(Debug)]
pub(crate) struct Listener {
    run: Arc<Run>,
    socket: PrivateSocket,
    listener: UnixListener,
}

impl Listener {
    /// Binds `path` on the current thread's runtime. Agents of any uid may connect, as far as the file is
    /// concerned: inside the sandbox the socket's owner is nobody; who they are is asked of the kernel.
    ///
    /// # Errors
    /// If the socket cannot be bound.
    pub(crate) fn bind(run: Arc<Run>, path: &Path) -> Result<Self, socket::Error> {
        let (socket, listener): (_, StdListener) = PrivateSocket::bind(path, 0o666)?;
        let listener = UnixListener::from_std(listener).map_err(|source| socket::Error::Io {
            action: "listen on",
            path: path.to_owned(),
            source,
        })?;
        Ok(Self { run, socket, listener })
    }

    /// Serves until the run closes.
    pub(crate) async fn serve(self, plane: Arc<Plane>) {
        let Self { run, socket, listener } = self;
        let mut stage = run.changes();
        loop {
            let accepted = tokio::select! {
                _closing = stage.wait_for(|stage| !stage.listens()) => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) if is_granted(&run, &stream) => {
                    task::spawn("connection", connection(Arc::clone(&plane), Arc::clone(&run), stream));
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(run = %run.grant.run_id, %error, "cannot accept");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(socket);
    }
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

async fn connection(plane: Arc<Plane>, run: Arc<Run>, stream: UnixStream) {
    let carried = Carried::of(Arc::clone(&run));
    let entrance = Entrance { way: Way::Own(Arc::clone(&run)), carried: carried.clone() };
    // Before it is looked for the first time, so that nothing changes unseen in between.
    let mut changes = run.changes();
    let connection = serving(Arc::clone(&plane), entrance, stream);
    tokio::pin!(connection);
    let ended = loop {
        if carried.is_cut(&plane.freezes) {
            return;
        }
        if !run.listens() {
            connection.as_mut().graceful_shutdown();
        }
        tokio::select! {
            ended = connection.as_mut() => break ended,
            // The sender lives as long as the run.
            Ok(()) = changes.changed() => {}
        }
    };
    if let Err(error) = ended {
        tracing::debug!(run = %run.grant.run_id, %error, "connection ended");
    }
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
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) if stream.set_nodelay(true).is_ok() => {
                    task::spawn("shared connection", shared(Arc::clone(&plane), self.serves, stream));
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept on the shared listener");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Serves a connection until it ends, or the call it carries is cut.
async fn shared(plane: Arc<Plane>, serves: Serves, stream: TcpStream) {
    let carried = Carried::default();
    let cut = carried.clone().until_cut(Arc::clone(&plane));
    let entrance = Entrance { way: Way::Shared(serves), carried };
    tokio::select! {
        ended = serving(plane, entrance, stream) => {
            if let Err(error) = ended {
                tracing::debug!(%error, "connection ended");
            }
        }
        () = cut => {}
    }
}

/// A connection that is served when it is polled.
fn serving<S>(
    plane: Arc<Plane>,
    entrance: Entrance,
    stream: S,
) -> http1::Connection<TokioIo<Noticing<S>>, Service>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let owed = Owed::new(Arc::clone(&plane.unwritten));
    let stream = Noticing::new(stream, owed.clone());
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(plane.snapshot.load().header_read)
        .max_buf_size(READ_BUFFER)
        .serve_connection(TokioIo::new(stream), Service { plane, entrance, owed })
}

/// Answers the requests of one connection.
#[derive(Debug)]
struct Service {
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
