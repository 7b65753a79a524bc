//! accept: a run's unix listener and the connections on it.
//!
//! Only processes of the uid in the grant are heard. When the run closes, the listener goes at once; its
//! connections finish the call they carry, and are dropped when the run is cut, which ends their calls.

use std::{os::unix::net::UnixListener as StdListener, path::Path, sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use platform_core::grant;
use platform_runtime::{
    socket::{self, PrivateSocket},
    task,
};
use tokio::net::{UnixListener, UnixStream};

use super::{Plane, identify, serve};
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
        loop {
            let accepted = tokio::select! {
                () = run.closing_token().cancelled() => break,
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
    let grant::Listener::Unix { peer_uid } = run.grant.listener;
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == peer_uid => true,
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
    let header_read = plane.snapshot.load().header_read;
    let caller = identify::by_socket(Arc::clone(&run));
    let service = service_fn(move |request| {
        let (plane, caller) = (Arc::clone(&plane), caller.clone());
        async move { Ok::<_, std::convert::Infallible>(serve(&plane, &caller, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_read)
        .max_buf_size(READ_BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = run.cut_token().cancelled() => return,
        () = run.closing_token().cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                () = run.cut_token().cancelled() => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(run = %run.grant.run_id, %error, "connection ended");
    }
}
