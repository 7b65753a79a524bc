//! Runs the data-plane threads: one single-threaded runtime each, with its own upstream pool.
//!
//! A run's socket belongs to one thread, which binds it and serves every call on it. A connection to a gateway or to the
//! shared listener belongs to the thread that it was handed to. So no call wakes another thread. Control sends commands
//! to a thread through its queue: open a run, listen, respond, end.

use std::{io, net, path::PathBuf, sync::Arc, thread};

use arc_swap::ArcSwap;
use platform_runtime::{settings::Serves, socket, task};
use tokio::{
    runtime::{Builder, LocalOptions, LocalRuntime},
    sync::{mpsc, oneshot},
};

use crate::{
    balance_gate::BalanceGate,
    body_memory::{BodyMemory, BodyMemoryPool},
    clock::CallIds,
    exchange::{ServeContext, Snapshot},
    freezes::Freezes,
    journal::{Committer, Journal},
    metrics::Metrics,
    output_rates::OutputRates,
    registry::RunRegistry,
    run::Run,
    run_keys::RunKeys,
    server::{
        BalancedThread, ConnectionBalancer, ConnectionLimits, ConnectionQueue, GatewayListener,
        GatewaySocket, LoadShare, RunSocketListener, ServerContext, SharedListener, ThreadLoad, WriteTracker,
        serve_handed_over,
    },
    tool_socket::ToolSocket,
    upstream::{Target, Upstream},
};

/// Most commands in a queue. Control waits when there are more.
const MAX_QUEUED_COMMANDS: usize = 64;

/// Command of control to a thread.
enum Command {
    /// Open a run at a socket, and report the result.
    Open(OpenRun, oneshot::Sender<Result<(), socket::Error>>),
    /// Serve a gateway at its own socket, and report the result.
    OpenGateway(OpenGateway, oneshot::Sender<Result<(), socket::Error>>),
    /// Accept calls on the listener that runs share.
    Listen,
    /// Respond, which proves that the thread is not stuck.
    Ping(oneshot::Sender<()>),
    /// End the thread, and everything it still serves.
    Stop,
}

/// A run to open at a socket.
struct OpenRun {
    run: Arc<Run>,
    socket: PathBuf,
    load: LoadShare,
}

/// A gateway to serve at a socket.
struct OpenGateway {
    gateway: GatewaySocket,
    load: LoadShare,
}

/// Reason that a socket is not served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Its socket could not be bound.
    #[error(transparent)]
    Socket(#[from] socket::Error),
    /// The thread has ended, which only happens while the process stops.
    #[error("the data plane has stopped")]
    Stopped,
}

/// State that every data-plane thread starts with.
#[derive(Debug, Clone)]
pub(crate) struct SharedState {
    /// Upstream's address and circuit, shared by all threads.
    pub(crate) upstream: Arc<Target>,
    pub(crate) tool_socket: Arc<ToolSocket>,
    pub(crate) journal: Arc<Journal>,
    pub(crate) body_memory: Arc<BodyMemory>,
    pub(crate) registry: Arc<RunRegistry>,
    pub(crate) freezes: Arc<Freezes>,
    pub(crate) run_keys: Arc<RunKeys>,
    pub(crate) balances: Arc<BalanceGate>,
    pub(crate) output_rates: Arc<OutputRates>,
    pub(crate) unattributed_run: Arc<Run>,
    pub(crate) snapshot: Arc<ArcSwap<Snapshot>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) connection_limits: ConnectionLimits,
}

/// Handle to a data-plane thread.
#[derive(Debug)]
pub(crate) struct DataPlaneThread {
    commands: mpsc::Sender<Command>,
    upstream: Arc<Upstream>,
    body_memory: Arc<BodyMemoryPool>,
    load: Arc<ThreadLoad>,
    write_tracker: Arc<WriteTracker>,
}

impl DataPlaneThread {
    /// Starts thread `index`. It takes no calls on the `shared` listener before [`DataPlaneThread::listen`].
    ///
    /// # Errors
    /// If the system refuses a thread, an event queue or its file of in-flight marks.
    pub(crate) fn start(
        index: usize,
        state: SharedState,
        BalancedThread { balancer, handed_over }: BalancedThread,
        shared: Option<(net::TcpListener, Serves)>,
    ) -> io::Result<(Self, thread::JoinHandle<()>)> {
        let (queue, commands) = mpsc::channel(MAX_QUEUED_COMMANDS);
        let load = Arc::clone(balancer.own_load());
        let journal = Committer::new(Arc::clone(&state.journal), index).map_err(io::Error::other)?;
        let context = Arc::new(server_context(index, state, balancer, journal));
        let upstream = Arc::clone(&context.calls.upstream);
        let body_memory = Arc::clone(&context.calls.body_memory);
        let write_tracker = Arc::clone(&context.write_tracker);
        let (started, start) = std::sync::mpsc::sync_channel(1);
        let thread = thread::Builder::new().name(format!("plane-{index}")).spawn(move || {
            // Nothing of a connection leaves its thread, so its state needs no locks.
            let (runtime, shared) = match start_runtime(shared) {
                Ok(parts) => parts,
                Err(error) => return drop(started.send(Err(error))),
            };
            drop(started.send(Ok(())));
            runtime.block_on(serve(commands, handed_over, context, shared));
            // A name lookup may take longer than this thread may take to end.
            runtime.shutdown_background();
        })?;
        start.recv().map_err(io::Error::other)??;
        Ok((Self { commands: queue, upstream, body_memory, load, write_tracker }, thread))
    }

    /// Returns the number of its idle connections to the upstream.
    pub(crate) fn idle_connections(&self) -> usize {
        self.upstream.idle()
    }

    /// Returns the bytes of request bodies that its calls hold.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body_memory.held()
    }

    /// Returns the connections and listeners that it serves.
    pub(crate) fn load(&self) -> u64 {
        self.load.total()
    }

    /// Opens `run` at `socket`; once the future is ready, agents can connect. Counts as load from now on.
    pub(crate) fn open(&self, run: Arc<Run>, socket: PathBuf) -> impl Future<Output = Result<(), Error>> {
        let open = OpenRun { run, socket, load: self.load.add_listener() };
        self.request(|opened| Command::Open(open, opened))
    }

    /// Serves a gateway at a socket; once the future is ready, the gateway can connect. Counts as load from now on.
    pub(crate) fn open_gateway(&self, gateway: GatewaySocket) -> impl Future<Output = Result<(), Error>> {
        let open = OpenGateway { gateway, load: self.load.add_listener() };
        self.request(|opened| Command::OpenGateway(open, opened))
    }

    async fn request(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<(), socket::Error>>) -> Command,
    ) -> Result<(), Error> {
        let (opened, answer) = oneshot::channel();
        self.commands.send(command(opened)).await.map_err(|_gone| Error::Stopped)?;
        Ok(answer.await.map_err(|_gone| Error::Stopped)??)
    }

    /// Accepts calls on the shared listener, if the thread serves it. Earlier connections wait in its queue.
    pub(crate) async fn listen(&self) {
        drop(self.commands.send(Command::Listen).await);
    }

    /// Returns once the thread has responded.
    pub(crate) async fn ping(&self) {
        let (responded, answer) = oneshot::channel();
        drop(self.commands.send(Command::Ping(responded)).await);
        drop(answer.await);
    }

    /// Returns once all answers are written out.
    pub(crate) async fn until_written(&self) {
        self.write_tracker.wait_until_written().await;
    }

    /// Ends the thread. It may have ended already.
    pub(crate) async fn stop(&self) {
        drop(self.commands.send(Command::Stop).await);
    }
}

/// Starts the current thread's runtime, with the `shared` listener in it.
fn start_runtime(
    shared: Option<(net::TcpListener, Serves)>,
) -> io::Result<(LocalRuntime, Option<SharedListener>)> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    let shared = {
        let _inside = runtime.enter();
        shared.map(|(listener, serves)| SharedListener::of(listener, serves)).transpose()?
    };
    Ok((runtime, shared))
}

fn server_context(
    index: usize,
    state: SharedState,
    balancer: ConnectionBalancer,
    journal: Committer,
) -> ServerContext<Arc<ServeContext>> {
    let calls = ServeContext {
        upstream: Arc::new(Upstream::new(state.upstream)),
        journal,
        body_memory: Arc::new(BodyMemoryPool::new(state.body_memory)),
        registry: state.registry,
        freezes: Arc::clone(&state.freezes),
        run_keys: state.run_keys,
        balances: state.balances,
        output_rates: state.output_rates,
        tool_socket: state.tool_socket,
        unattributed_run: state.unattributed_run,
        snapshot: state.snapshot,
        metrics: Arc::clone(&state.metrics.threads()[index]),
        call_ids: CallIds::new(),
    };
    ServerContext {
        calls: Arc::new(calls),
        freezes: state.freezes,
        connection_limits: state.connection_limits,
        balancer,
        write_tracker: Arc::default(),
    }
}

async fn serve(
    mut commands: mpsc::Receiver<Command>,
    handed_over: ConnectionQueue,
    context: Arc<ServerContext<Arc<ServeContext>>>,
    mut shared: Option<SharedListener>,
) {
    let pooled = Arc::clone(&context.calls);
    task::spawn_local("upstream pool", async move { pooled.upstream.maintain().await });
    let committing = Arc::clone(&context.calls);
    task::spawn_local("journal committer", async move { committing.journal.run().await });
    let watched = Arc::clone(&context.calls.metrics);
    task::spawn_local("loop lag", async move { watched.watch_lag().await });
    task::spawn_local("connections of other threads", serve_handed_over(Arc::clone(&context), handed_over));
    while let Some(command) = commands.recv().await {
        match command {
            Command::Open(OpenRun { run, socket, load }, opened) => {
                let bound = RunSocketListener::bind(run, &socket).map(|listener| {
                    let served = listener.serve(Arc::clone(&context));
                    task::spawn_local("listener", async move {
                        served.await;
                        drop(load);
                    });
                });
                if opened.send(bound).is_err() {
                    tracing::warn!(socket = %socket.display(), "socket opened; its requester is gone");
                }
            }
            Command::OpenGateway(OpenGateway { gateway, load }, opened) => {
                let bound = GatewayListener::bind(gateway).map(|listener| {
                    let served = listener.serve(Arc::clone(&context));
                    task::spawn_local("gateway's listener", async move {
                        served.await;
                        drop(load);
                    });
                });
                drop(opened.send(bound));
            }
            Command::Listen => {
                if let Some(shared) = shared.take() {
                    task::spawn_local("shared listener", shared.serve(Arc::clone(&context)));
                }
            }
            Command::Ping(responded) => drop(responded.send(())),
            Command::Stop => break,
        }
    }
}
