//! server binds the tool socket, and serves its connections.

use std::{
    os::unix::net::UnixListener as StdListener,
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use platform_runtime::{
    accept::Acceptor,
    report,
    socket::{self, PrivateSocket},
    task,
};
use tokio::{
    net::{UnixListener, UnixStream},
    sync::Semaphore,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{execute::Executor, in_flight::MAX_WAITING};

/// Mode of the socket: its owner and its group may connect. The peer's user is checked in any case.
const SOCKET_MODE: u32 = 0o660;
/// Mode of the socket's directory, which others may pass through to the socket.
const DIR_MODE: u32 = 0o711;
/// Most connections at a time. Others wait to be accepted. Half of them are for calls that run at once.
const MAX_CONNECTIONS: usize = 2 * MAX_WAITING as usize;
/// Longest time in which a client may send a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for calls that read after the stop: nothing is lost with one that is cut.
const READ_STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Time in which the end of a call that writes is stored, and answered, beyond the longest that it may take.
const WRITE_STOP_GRACE: Duration = Duration::from_secs(2);

/// Reason why the tool socket is not served.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The socket or its directory cannot be made.
    #[error("the tool socket cannot be bound: set tools.socket")]
    Unbound(#[from] socket::Error),
}

/// Bound tool socket, which is served later. Connections wait there meanwhile.
#[derive(Debug)]
pub(crate) struct ToolServer {
    socket: PrivateSocket,
    listener: UnixListener,
    peer_uids: Arc<[u32]>,
}

impl ToolServer {
    /// Binds the socket at `path`, in place of a stale one. Processes of `peer_uids`, of root and of this user may speak
    /// to it.
    ///
    /// # Errors
    /// If the directory or the socket cannot be made.
    pub(crate) fn bind(path: &Path, peer_uids: &[u32]) -> Result<Self, StartError> {
        let dir = path.parent().map_or_else(PathBuf::new, Path::to_owned);
        if let Some(above) = dir.parent() {
            std::fs::create_dir_all(above).map_err(|source| socket::Error::Io {
                action: "create directory",
                path: above.to_owned(),
                source,
            })?;
        }
        // The mode of a directory that is there is the operator's: it may be one such as /run.
        if !dir.is_dir() {
            socket::private_dir(&dir, DIR_MODE)?;
        }
        let (socket, listener): (_, StdListener) = PrivateSocket::bind(path, SOCKET_MODE)?;
        let listener = UnixListener::from_std(listener).map_err(|source| socket::Error::Io {
            action: "listen on",
            path: path.to_owned(),
            source,
        })?;
        Ok(Self { socket, listener, peer_uids: peer_uids.into() })
    }

    /// Serves until `stop`, then removes the socket, and waits for the calls in flight. One that writes is never
    /// cut: its outcome would be unknown.
    pub(crate) async fn serve(self, router: Router, executor: Executor, stop: CancellationToken) {
        let Self { socket, listener, peer_uids } = self;
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut acceptor = Acceptor::new(listener, Arc::default());
        let connections = TaskTracker::new();
        let accepting = async {
            // The semaphore is never closed.
            while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
                let stream = acceptor.accept().await;
                if !may_speak(&stream, &peer_uids) {
                    continue;
                }
                let connection = serve_connection(stream, router.clone(), stop.clone());
                let connection = connections.track_future(async move {
                    connection.await;
                    drop(permit);
                });
                drop(task::spawn("tool connection", connection));
            }
        };
        stop.run_until_cancelled(accepting).await;
        // The proxy finds no socket from here on, and answers that tools are away.
        drop(socket);
        executor.stop_waiting();
        connections.close();
        let is_idle = timeout(READ_STOP_TIMEOUT, connections.wait()).await.is_ok();
        let longest = executor.longest_write().await + WRITE_STOP_GRACE;
        let is_drained = timeout(longest, executor.drain()).await.is_ok();
        let is_answered = is_idle || timeout(WRITE_STOP_GRACE, connections.wait()).await.is_ok();
        if !is_drained || !is_answered {
            tracing::warn!(connections = connections.len(), "tool calls cut at the stop");
        }
    }
}

/// Returns whether the process at the other end may speak to this socket.
fn may_speak(stream: &UnixStream, peer_uids: &[u32]) -> bool {
    let own = rustix::process::geteuid().as_raw();
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == 0 || peer.uid() == own || peer_uids.contains(&peer.uid()) => true,
        Ok(peer) => {
            tracing::warn!(uid = peer.uid(), "tool connection rejected: uid not in tools.peer_uids");
            false
        }
        Err(error) => {
            tracing::warn!(error = report::chain(&error), "tool connection rejected: uid unknown");
            false
        }
    }
}

async fn serve_connection(stream: UnixStream, router: Router, stop: CancellationToken) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(error = report::chain(&error), "tool connection broke");
    }
}
