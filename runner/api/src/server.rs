//! Accepts connections and serves them on a thread of its own.

use std::{
    io,
    net::{self, SocketAddr},
    pin::pin,
    sync::Arc,
    thread,
    time::Duration,
};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use platform_runtime::{accept::Acceptor, report, task};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::timeout,
};
use tokio_io_timeout::TimeoutStream;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{context::ApiContext, routes};

/// Most connections that wait to be accepted.
const BACKLOG: i32 = 1024;
/// Most connections at a time. Others wait to be accepted.
const MAX_CONNECTIONS: usize = 256;
/// Longest time in which a client may send a request's head, and longest silence between two requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time for which a client may read nothing of an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time in which answers are completed after the stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Error for an address that the API cannot listen on: it is in use, or not of this host.
#[derive(Debug, thiserror::Error)]
#[error(
    "api.listen {address} cannot be listened on: set another address, or stop the program that has it (`ss -ltnp` shows it)"
)]
pub struct Unbound {
    address: SocketAddr,
    #[source]
    source: io::Error,
}

/// HTTP API with its bound listener.
#[derive(Debug)]
pub struct Api {
    listener: net::TcpListener,
    address: SocketAddr,
}

impl Api {
    /// Binds `address`. Connections wait there until [`Self::serve`] accepts them.
    ///
    /// # Errors
    /// If the address is in use, or not of this host.
    pub fn bind(address: SocketAddr) -> Result<Self, Unbound> {
        let unbound = |source| Unbound { address, source };
        let listener = net::TcpListener::bind(address).map_err(unbound)?;
        // The standard library asks for 128 waiting connections.
        rustix::net::listen(&listener, BACKLOG).map_err(|error| unbound(error.into()))?;
        listener.set_nonblocking(true).map_err(unbound)?;
        let address = listener.local_addr().map_err(unbound)?;
        Ok(Self { listener, address })
    }

    /// Returns the address on which the API listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves requests on a thread of its own until the stop of `context`, and then ends what is open.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub async fn serve(self, context: ApiContext) -> io::Result<()> {
        let (ended, end) = oneshot::channel();
        thread::Builder::new().name("api".to_owned()).spawn(move || {
            // The receiver waits for it.
            drop(ended.send(self.run(&context)));
        })?;
        end.await.unwrap_or_else(|_panicked| Err(io::Error::other("the thread of the API panicked")))
    }

    fn run(self, context: &ApiContext) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let listener = TcpListener::from_std(self.listener)?;
            accept(listener, &routes::router(context), &context.stop).await;
            Ok(())
        })
    }
}

/// Accepts connections until `stop` is triggered, and waits a moment for those that are open.
async fn accept(listener: TcpListener, router: &Router, stop: &CancellationToken) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut acceptor = Acceptor::new(listener, Arc::default());
    let connections = TaskTracker::new();
    let accepting = async {
        // The semaphore is never closed.
        while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
            let stream = acceptor.accept().await;
            let connection = serve_connection(stream, router.clone(), stop.clone(), permit);
            task::spawn("api connection", connections.track_future(connection));
        }
    };
    stop.run_until_cancelled(accepting).await;
    connections.close();
    if timeout(STOP_TIMEOUT, connections.wait()).await.is_err() {
        tracing::debug!(connections = connections.len(), "API connections cut at the stop");
    }
}

async fn serve_connection(
    stream: TcpStream,
    router: Router,
    stop: CancellationToken,
    _permit: OwnedSemaphorePermit,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    let stream = TokioIo::new(Box::pin(stream));
    let mut connection = pin!(http.serve_connection(stream, TowerToHyperService::new(router)));
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(error = report::chain(&error), "API connection broke");
    }
}
