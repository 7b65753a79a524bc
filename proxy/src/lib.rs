//! Sluicegate's data plane.
//!
//! Agents reach it through one unix socket per run, and the socket identifies the run. It writes the upstream's
//! credential and the billing identity itself. It meters every answer as it passes, and records every call in a
//! journal.
//!
//! `server` serves connections, and `exchange` is the life of a call on them, one file per phase. `control` serves
//! requests about the proxy. `data_plane_thread` and `run` define threads and state.

mod account_limits;
mod accounts;
mod balance_gate;
mod body_memory;
mod budget;
mod clock;
mod closed;
mod config;
mod control;
mod data_plane_thread;
mod exchange;
mod freezes;
#[cfg(feature = "internals")]
pub mod fuzzing;
mod journal;
mod log;
mod mask;
mod metrics;
mod output_rates;
mod pieces;
mod policy;
#[cfg(test)]
mod raw_nest;
mod refusal;
mod registry;
mod run;
mod run_keys;
mod run_usage;
mod runs;
mod server;
mod shared;
mod state;
mod sum;
mod tap;
mod tool_socket;
mod trace;
mod upstream;
mod usage;

use std::{
    fs,
    future::ready,
    io,
    net::{self, SocketAddr},
    os::unix::fs::DirBuilderExt,
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
    thread,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use platform_runtime::{
    notify::Notifier,
    poll::poll_until,
    report,
    settings::{self, Settings},
    shutdown::{Shutdown, Signalled, Signals},
    socket, task,
};
use tokio::{net::TcpListener, sync::Notify, task::JoinHandle};

pub use self::config::{Config, ConfigSources};
use self::{
    account_limits::AccountLimits,
    accounts::Accounts,
    balance_gate::BalanceGate,
    body_memory::BodyMemory,
    closed::ClosedRuns,
    control::{Control, Socket, shown_prices::ShownPrices},
    data_plane_thread::{DataPlaneThread, SharedState},
    freezes::Freezes,
    journal::{Journal, Maintenance, UsageTotals},
    metrics::Metrics,
    registry::RunRegistry,
    run::Run,
    run_keys::RunKeys,
    runs::{ListenerSetup, RecoveredState, RunStateDir, Runs, StaticRuns},
    server::{ConnectionBalancer, ConnectionLimits},
    tool_socket::ToolSocket,
    upstream::Upstream,
};

/// Reason that the proxy does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A directory cannot be created.
    #[error("cannot make directory {}", path.display())]
    Directory {
        /// Path of the directory.
        path: PathBuf,
        /// Failure of the system call.
        #[source]
        source: io::Error,
    },
    /// A socket or its directory cannot be created.
    #[error("cannot open a socket")]
    Socket(#[from] socket::Error),
    /// Another proxy answers on the control socket.
    #[error("a proxy already serves {}: stop it, or use another proxy.run_dir", path.display())]
    AlreadyRunning {
        /// Path of the control socket.
        path: PathBuf,
    },
    /// Stored decisions cannot be read: revocations, freezes, limits of accounts, accounts below their floor, closed
    /// runs or the aliases of keys.
    #[error("cannot read {}", path.display())]
    State {
        /// Path of the file.
        path: PathBuf,
        /// Failure of reading it.
        #[source]
        source: io::Error,
    },
    /// A TCP listener cannot be bound: the shared one, or that of the metrics.
    #[error("cannot listen on {setting} {address}")]
    Listen {
        /// Setting that names the address.
        setting: &'static str,
        /// The address.
        address: SocketAddr,
        /// Failure of the system call.
        #[source]
        source: io::Error,
    },
    /// The run for unattributed calls cannot be created, which its fixed ids make impossible.
    #[error("cannot make the run {}", run::UNATTRIBUTED)]
    UnattributedRun(#[source] http::Error),
    /// The journal cannot be opened.
    #[error("cannot open the journal")]
    Journal(#[from] journal::Error),
    /// A thread cannot be started.
    #[error("cannot start a data-plane thread")]
    Thread(#[source] io::Error),
}

/// A proxy that serves calls, with its control socket bound. Connections there are answered once [`App::run`] is
/// polled.
#[derive(Debug)]
pub struct App {
    socket: Socket,
    control: Control,
    stop: Shutdown,
    metrics: Option<TcpListener>,
    threads: Vec<thread::JoinHandle<()>>,
    maintenance: Maintenance,
}

impl App {
    /// Binds sockets, opens the journal, starts the threads and opens the runs: those of the configuration, and those
    /// that were open when an earlier proxy ended. Must be called in the runtime it will run in. The configuration
    /// was read from `config_sources`, and is read there again.
    ///
    /// # Errors
    /// If any step fails; nothing is left running then.
    pub async fn build(config: Config, config_sources: ConfigSources) -> Result<Self, Error> {
        let proxy = &config.settings.proxy;
        prepare_host(proxy)?;
        let journal = Arc::new(Journal::open(&proxy.state_dir, config.settings.journal.clone())?);
        let socket = Socket::bind(&config)?;
        let stored = StoredState::read(&config.settings, &journal)?;
        let shared_listener = shared::bind(proxy)?;
        let metrics_listener = proxy.metrics_listen.map(control::metrics::bind).transpose()?;
        let shared = shared_listener.as_ref().and_then(|listener| listener.local_addr().ok());
        let run_defaults = config.run_defaults();
        let shared_state = SharedState {
            upstream: Arc::clone(&config.upstream),
            tool_socket: Arc::new(ToolSocket::new(config.settings.tool_socket())),
            journal: Arc::clone(&journal),
            body_memory: Arc::new(BodyMemory::new(proxy.max_body_memory)),
            registry: Arc::clone(&stored.registry),
            freezes: stored.freezes,
            balances: stored.balances,
            output_rates: Arc::clone(journal.output_rates()),
            run_keys: Arc::clone(&stored.recovered.run_keys),
            unattributed_run: Arc::new(Run::unattributed(&run_defaults).map_err(Error::UnattributedRun)?),
            snapshot: Arc::new(ArcSwap::from_pointee(config.snapshot(None))),
            metrics: Arc::new(Metrics::new(config.models(), thread_count(&config))),
            connection_limits: ConnectionLimits::new(proxy.connections, thread_count(&config)),
        };
        let closed = Arc::clone(&stored.recovered.closed);
        let maintenance = Maintenance::start(Arc::clone(&journal), move |run, n| closed.contains(run, n))
            .map_err(Error::Thread)?;
        let (data_plane, threads) = start_threads(&config, &shared_state, shared_listener)?;
        let setup = ListenerSetup::of(proxy, stored.registry, shared);
        let runs = open_runs(Runs::new(setup, stored.recovered, run_defaults, data_plane), &config).await?;
        let stop = Shutdown::new();
        Ok(Self {
            socket,
            control: Control {
                reloads: AtomicU64::new(0),
                stop: stop.watch(),
                upstream: Upstream::new(Arc::clone(&config.upstream)),
                config_sources: Arc::new(config_sources),
                reloading: tokio::sync::Mutex::default(),
                reading_spend: tokio::sync::Mutex::default(),
                shown_prices: ShownPrices::default(),
                config: ArcSwap::from_pointee(config),
                runs,
                journal,
                body_memory: shared_state.body_memory,
                heads: shared_state.connection_limits.heads(),
                taps: Arc::default(),
                metrics: shared_state.metrics,
                freezes: shared_state.freezes,
                balances: shared_state.balances,
                snapshot: shared_state.snapshot,
                started: Instant::now(),
            },
            stop,
            metrics: metrics_listener,
            threads,
            maintenance,
        })
    }

    /// Returns the path of the control socket.
    #[must_use]
    pub fn control_socket(&self) -> PathBuf {
        self.control.config.load().settings.proxy.control_socket()
    }

    /// Serves until a signal requests a stop, then lets calls in flight end within the drain timeout. A second such
    /// signal cuts them at once.
    pub async fn run(self, mut signals: Signals, notifier: Notifier) {
        let control = Arc::new(self.control);
        let upkeep = start_upkeep(&control);
        let metrics = self
            .metrics
            .map(|listener| task::spawn("metrics", control::metrics::serve(listener, Arc::clone(&control))));
        let socket = task::spawn("control socket", self.socket.serve(Arc::clone(&control)));
        let notifier = Arc::new(notifier);
        notifier.ready();
        let watched = task::spawn("watchdog", feed_watchdog(Arc::clone(&control), Arc::clone(&notifier)));
        let hangups = Arc::new(Notify::new());
        let reloads = task::spawn(
            "reloads",
            reload_on_request(Arc::clone(&control), Arc::clone(&notifier), Arc::clone(&hangups)),
        );
        let retried = Arc::clone(&control);
        let retries = every(RETRY_INTERVAL, "runs that are not open", move || {
            let control = Arc::clone(&retried);
            async move { control::reload::retry(&control).await }
        });
        while signals.next().await == Signalled::Reload {
            hangups.notify_one();
        }
        reloads.abort();
        retries.abort();
        let config = control.config.load_full();
        let proxy = &config.settings.proxy;
        tracing::info!(drain = %proxy.drain_timeout, "stopping, calls in flight may end");
        notifier.stopping(proxy.longest_stop().duration());
        force_exit_after(proxy.longest_stop().duration());
        self.stop.begin();
        drop(socket.await);
        upkeep.iter().for_each(JoinHandle::abort);
        control
            .runs
            .shut_down(proxy.drain_timeout.duration(), proxy.drain_abort_timeout.duration(), signals.stop())
            .await;
        metrics.inspect(JoinHandle::abort);
        watched.abort();
        join(self.threads).await;
        self.maintenance.stop();
        control.store_changes();
    }
}

/// Starts the tasks that go on beside the calls, for as long as the control socket is served.
fn start_upkeep(control: &Arc<Control>) -> [JoinHandle<()>; 5] {
    let expiring = Arc::clone(control);
    let tapped = Arc::clone(control);
    let changed = Arc::clone(control);
    let keyed = Arc::clone(control);
    let priced = Arc::clone(control);
    [
        task::spawn("ends of runs", async move { expiring.runs.watch_clock().await }),
        every(TAP_CLEANUP_INTERVAL, "rings of taps", move || {
            tapped.taps.release_unwatched(Instant::now());
            ready(())
        }),
        every(STORE_RETRY_INTERVAL, "changes that are not stored", move || {
            changed.store_changes();
            ready(())
        }),
        task::spawn("keys of runs", async move { keyed.delete_run_keys().await }),
        task::spawn("prices of the upstream", async move { priced.read_shown_prices().await }),
    ]
}

/// State that earlier proxies have left, read before the first call can arrive.
struct StoredState {
    recovered: RecoveredState,
    registry: Arc<RunRegistry>,
    freezes: Arc<Freezes>,
    balances: Arc<BalanceGate>,
}

impl StoredState {
    fn read(settings: &Settings, journal: &Arc<Journal>) -> Result<Self, Error> {
        let state = |name: &str| settings.proxy.state_dir.join(name);
        let unreadable = |name| move |source| Error::State { path: state(name), source };
        let closed = Arc::new(ClosedRuns::open(&state("closed")).map_err(unreadable("closed"))?);
        let UsageTotals { by_account, by_run } =
            journal.usage_totals(|run, attempt| closed.contains(run, attempt))?;
        let limits = AccountLimits::open(&state("account-limits")).map_err(unreadable("account-limits"))?;
        let accounts = Arc::new(Accounts::new(settings.accounts.clone(), limits, by_account));
        let state_dir = RunStateDir::open(&settings.proxy.persisted_runs_dir())?;
        let run_keys = Arc::new(RunKeys::open(&state("run-keys")).map_err(unreadable("run-keys"))?);
        if settings.upstream.admin_key_file.is_none() && run_keys.count() > 0 {
            let count = run_keys.count();
            tracing::warn!(
                count,
                "keys of earlier runs stay at the upstream: upstream.key_per_run deletes them"
            );
        }
        Ok(Self {
            recovered: RecoveredState {
                accounts,
                spent: by_run,
                closed,
                journal: Arc::clone(journal),
                state_dir,
                run_keys,
            },
            registry: Arc::new(RunRegistry::open(&state("revoked")).map_err(unreadable("revoked"))?),
            freezes: Arc::new(Freezes::open(&state("frozen")).map_err(unreadable("frozen"))?),
            balances: Arc::new(BalanceGate::open(&state("exhausted")).map_err(unreadable("exhausted"))?),
        })
    }
}

/// Raises the limit of descriptors and creates the directories, unless another proxy uses them.
fn prepare_host(proxy: &settings::Proxy) -> Result<(), Error> {
    server::raise_descriptor_limit();
    // Below `run_dir`, members of the control group reach the control socket.
    for (dir, mode) in [(&proxy.run_dir, 0o755), (&proxy.state_dir, 0o700)] {
        if dir.is_dir() {
            continue;
        }
        if let Some(parent) = dir.parent() {
            let made = fs::DirBuilder::new().recursive(true).mode(0o755).create(parent);
            made.map_err(|source| Error::Directory { path: parent.to_owned(), source })?;
        }
        socket::private_dir(dir, mode)?;
    }
    if std::os::unix::net::UnixStream::connect(proxy.control_socket()).is_ok() {
        return Err(Error::AlreadyRunning { path: proxy.control_socket() });
    }
    Ok(socket::private_dir(&proxy.listeners_dir(), 0o700)?)
}

/// Opens the runs that were open before, then those of the configuration. A run that cannot be opened is tried again
/// later: it must not keep the others from being served. At last, calls on the shared listener are accepted.
async fn open_runs(runs: Runs, config: &Config) -> Result<Runs, Error> {
    let path = config.settings.proxy.persisted_runs_dir();
    let restored = runs.restore().await.map_err(|source| Error::State { path, source })?;
    let configured = &config.settings.runs;
    let not_open = runs.open_static(&StaticRuns::new(), configured, Duration::ZERO).await.len();
    tracing::info!(restored, configured = configured.len(), not_open, "runs are open");
    runs.listen().await;
    Ok(runs)
}

/// Notifies the service manager that every thread responds, as long as it is polled.
async fn feed_watchdog(control: Arc<Control>, notifier: Arc<Notifier>) {
    let Some(timeout) = notifier.watchdog() else { return };
    let mut tick = tokio::time::interval(timeout / 2);
    loop {
        tick.tick().await;
        control.runs.check_threads().await;
        notifier.alive();
    }
}

/// Repeats `step`, and waits for `interval` before each time.
fn every<F: Future<Output = ()> + Send + 'static>(
    interval: Duration,
    name: &'static str,
    step: impl Fn() -> F + Send + 'static,
) -> JoinHandle<()> {
    task::spawn(name, async move {
        loop {
            tokio::time::sleep(interval).await;
            let done = step();
            done.await;
        }
    })
}

/// Reads the configuration again on each request. Any number of requests during a reload lead to one more.
async fn reload_on_request(control: Arc<Control>, notifier: Arc<Notifier>, hangups: Arc<Notify>) {
    loop {
        hangups.notified().await;
        notifier.reloading();
        // The reload has logged its error.
        drop(control::reload::reload(&control).await);
        notifier.ready();
    }
}

/// Interval between two attempts to open runs and gateways that could not be opened.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Interval between two attempts to store changes that the disk has rejected.
const STORE_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Interval between two clean-ups of the rings of taps.
const TAP_CLEANUP_INTERVAL: Duration = Duration::from_secs(60);
/// Interval between two checks whether threads have ended.
const JOIN_POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Longest wait for threads after the command to stop.
const JOIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Waits for threads that end. One that is stuck ends with the process.
async fn join(threads: Vec<thread::JoinHandle<()>>) {
    let deadline = tokio::time::Instant::now() + JOIN_TIMEOUT;
    let all_finished = async || threads.iter().all(thread::JoinHandle::is_finished).then_some(());
    // After the deadline, each thread is checked by itself.
    let _finished = poll_until(deadline, JOIN_POLL_INTERVAL, all_finished).await;
    for thread in threads {
        if !thread.is_finished() {
            tracing::error!("data-plane thread did not end");
        } else if thread.join().is_err() {
            tracing::error!("data-plane thread panicked");
        }
    }
}

/// Ends the process after `after` and a short extra time for deadlines of that length, even if this thread hangs.
#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "the thread that would return is the one that hangs"
)]
fn force_exit_after(after: Duration) {
    let end = move || {
        thread::sleep(after + 2 * JOIN_TIMEOUT);
        tracing::error!("the shutdown timed out: exiting");
        std::process::exit(1);
    };
    if let Err(error) = thread::Builder::new().name("end".to_owned()).spawn(end) {
        tracing::warn!(
            error = report::chain(&error),
            "the stop has no deadline: its thread cannot be started"
        );
    }
}

type StartedThreads = (Vec<DataPlaneThread>, Vec<thread::JoinHandle<()>>);

fn start_threads(
    config: &Config,
    state: &SharedState,
    shared: Option<net::TcpListener>,
) -> Result<StartedThreads, Error> {
    let serves = config.settings.proxy.listen_serves;
    // The first thread accepts for all.
    let mut shared = shared.map(|listener| (listener, serves));
    ConnectionBalancer::for_threads(thread_count(config))
        .enumerate()
        .map(|(index, thread)| {
            DataPlaneThread::start(index, state.clone(), thread, shared.take()).map_err(Error::Thread)
        })
        .collect()
}

/// Returns the number of data-plane threads.
fn thread_count(config: &Config) -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    config.settings.proxy.threads.map_or(cores, usize::from).max(1)
}
