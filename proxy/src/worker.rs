//! Data-plane threads: one single-threaded runtime each, with an upstream pool of its own.
//!
//! A run belongs to one thread, which binds its socket and serves every call on it, so that no call wakes another
//! thread. Control sends orders to a thread through its queue: open a run, listen, respond, end.

use std::{io, net, path::PathBuf, sync::Arc, thread};

use arc_swap::ArcSwap;
use platform_runtime::{settings::Serves, socket, task};
use tokio::sync::{mpsc, oneshot};

use crate::{
    bodies::Allowance,
    clock::CallIds,
    directory::Directory,
    exchange::{GatewayListener, GatewaySocket, Listener, Plane, Rooms, SharedListener, Snapshot, Unwritten},
    freezes::Freezes,
    journal::Journal,
    metrics::Metrics,
    run::Run,
    upstream::{Target, Upstream},
};

/// Most orders in a queue. Control waits when there are more.
const QUEUE: usize = 64;

/// Order of control to a thread.
enum Order {
    /// Open a run at a socket, and report the result.
    Open(Arc<Run>, PathBuf, oneshot::Sender<Result<(), socket::Error>>),
    /// Serve a gateway at a socket of its own, and report the result.
    OpenGateway(GatewaySocket, oneshot::Sender<Result<(), socket::Error>>),
    /// Accept calls on the listener that runs share.
    Listen,
    /// Respond, which proves that the thread is not stuck.
    Answer(oneshot::Sender<()>),
    /// End the thread, and everything it still serves.
    Stop,
}

/// Reason that a socket is not served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Its socket could not be bound.
    #[error(transparent)]
    Socket(#[from] socket::Error),
    /// The thread is gone, which only happens while the process stops.
    #[error("the data plane has stopped")]
    Stopped,
}

/// State that every data-plane thread is made with.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    /// Upstream's address and circuit, shared by all threads.
    pub(crate) upstream: Arc<Target>,
    pub(crate) journal: Arc<Journal>,
    pub(crate) bodies: Arc<Allowance>,
    pub(crate) directory: Arc<Directory>,
    pub(crate) freezes: Arc<Freezes>,
    pub(crate) nobody: Arc<Run>,
    pub(crate) snapshot: Arc<ArcSwap<Snapshot>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) rooms: Rooms,
}

/// Handle to a data-plane thread.
#[derive(Debug)]
pub(crate) struct Worker {
    orders: mpsc::Sender<Order>,
    upstream: Arc<Upstream>,
    unwritten: Arc<Unwritten>,
}

impl Worker {
    /// Starts thread `index`. It takes no calls on the `shared` listener before [`Worker::listen`].
    ///
    /// # Errors
    /// If the system gives no thread or no event queue.
    pub(crate) fn start(
        index: usize,
        parts: Parts,
        shared: Option<(net::TcpListener, Serves)>,
    ) -> io::Result<(Self, thread::JoinHandle<()>)> {
        let (queue, orders) = mpsc::channel(QUEUE);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let shared = {
            let _inside = runtime.enter();
            shared.map(|(listener, serves)| SharedListener::of(listener, serves)).transpose()?
        };
        let plane = Arc::new(plane(index, parts));
        let (upstream, unwritten) = (Arc::clone(&plane.upstream), Arc::clone(&plane.unwritten));
        let thread = thread::Builder::new().name(format!("plane-{index}")).spawn(move || {
            runtime.block_on(serve(orders, plane, shared));
            // Looking up a name may take longer than this thread may take to end.
            runtime.shutdown_background();
        })?;
        Ok((Self { orders: queue, upstream, unwritten }, thread))
    }

    /// Returns the number of its idle connections to the upstream.
    pub(crate) fn idle_connections(&self) -> usize {
        self.upstream.idle()
    }

    /// Opens `run` at `socket`; when this returns, agents can connect.
    pub(crate) async fn open(&self, run: Arc<Run>, socket: PathBuf) -> Result<(), Error> {
        let (opened, answer) = oneshot::channel();
        self.orders.send(Order::Open(run, socket, opened)).await.map_err(|_gone| Error::Stopped)?;
        Ok(answer.await.map_err(|_gone| Error::Stopped)??)
    }

    /// Serves a gateway at a socket; when this returns, it can connect.
    pub(crate) async fn open_gateway(&self, socket: GatewaySocket) -> Result<(), Error> {
        let (opened, answer) = oneshot::channel();
        self.orders.send(Order::OpenGateway(socket, opened)).await.map_err(|_gone| Error::Stopped)?;
        Ok(answer.await.map_err(|_gone| Error::Stopped)??)
    }

    /// Accepts calls on the shared listener, if the thread has a part in it. Earlier connections wait in its queue.
    pub(crate) async fn listen(&self) {
        drop(self.orders.send(Order::Listen).await);
    }

    /// Returns once the thread has responded.
    pub(crate) async fn answer(&self) {
        let (here, answer) = oneshot::channel();
        drop(self.orders.send(Order::Answer(here)).await);
        drop(answer.await);
    }

    /// Returns once all answers are written out.
    pub(crate) async fn until_written(&self) {
        self.unwritten.until_none().await;
    }

    /// Ends the thread. It may have ended already.
    pub(crate) async fn stop(&self) {
        drop(self.orders.send(Order::Stop).await);
    }
}

fn plane(index: usize, parts: Parts) -> Plane {
    Plane {
        upstream: Arc::new(Upstream::new(parts.upstream)),
        journal: parts.journal,
        bodies: parts.bodies,
        directory: parts.directory,
        freezes: parts.freezes,
        nobody: parts.nobody,
        snapshot: parts.snapshot,
        metrics: Arc::clone(&parts.metrics.threads()[index]),
        rooms: parts.rooms,
        call_ids: CallIds::new(),
        unwritten: Arc::default(),
    }
}

async fn serve(mut orders: mpsc::Receiver<Order>, plane: Arc<Plane>, mut shared: Option<SharedListener>) {
    let tidied = Arc::clone(&plane);
    task::spawn("upstream pool", async move { tidied.upstream.tidy().await });
    let watched = Arc::clone(&plane.metrics);
    task::spawn("loop lag", async move { watched.watch_lag().await });
    while let Some(order) = orders.recv().await {
        match order {
            Order::Open(run, socket, opened) => {
                let bound = Listener::bind(run, &socket).map(|listener| {
                    task::spawn("listener", listener.serve(Arc::clone(&plane)));
                });
                if opened.send(bound).is_err() {
                    tracing::warn!(socket = %socket.display(), "whoever asked for this socket has left");
                }
            }
            Order::OpenGateway(socket, opened) => {
                let bound = GatewayListener::bind(socket).map(|listener| {
                    task::spawn("gateway's listener", listener.serve(Arc::clone(&plane)));
                });
                drop(opened.send(bound));
            }
            Order::Listen => {
                if let Some(shared) = shared.take() {
                    task::spawn("shared listener", shared.serve(Arc::clone(&plane)));
                }
            }
            Order::Answer(here) => drop(here.send(())),
            Order::Stop => break,
        }
    }
}
