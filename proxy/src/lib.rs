//! Sluicegate's data plane.
//!
//! Agents reach it through one unix socket per run, and the socket identifies the run. It writes the upstream's
//! credential and the billing identity itself. It watches what streams by, and records every call in a journal.
//!
//! The life of a call is `exchange`, in the order of its files; `control` serves requests about the proxy. Threads
//! and state: `worker` and `run`.

mod accounts;
mod bodies;
mod budget;
mod clock;
mod closed;
mod config;
mod control;
mod directory;
mod exchange;
mod freezes;
mod journal;
mod log;
mod mask;
mod metrics;
#[cfg(feature = "parts")]
pub mod parts;
mod pieces;
mod refusal;
mod run;
mod runs;
mod shared;
mod state;
mod sum;
mod tally;
mod tap;
mod trace;
mod upstream;
mod usage;
mod worker;

use std::{
    fs,
    future::ready,
    io,
    net::{self, SocketAddr},
    os::unix::fs::DirBuilderExt,
    path::PathBuf,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use platform_runtime::{
    notify::Notifier,
    settings::{self, Settings},
    shutdown::{Asked, Shutdown, Signals},
    socket, task,
};
use tokio::{net::TcpListener, sync::Notify, task::JoinHandle};

pub use self::config::{Config, Origins};
use self::{
    accounts::Accounts,
    bodies::Allowance,
    closed::ClosedRuns,
    control::{Control, Socket},
    directory::Directory,
    exchange::Rooms,
    freezes::Freezes,
    journal::{Journal, Keeper, SoFar},
    metrics::Metrics,
    run::Run,
    runs::{KeptRuns, Past, Place, Runs, Standing},
    upstream::Upstream,
    worker::{Parts, Worker},
};

/// Reason that the proxy does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A directory cannot be made.
    #[error("cannot make directory {}", path.display())]
    Directory {
        /// Path of the directory.
        path: PathBuf,
        /// Failure of the system call.
        #[source]
        source: io::Error,
    },
    /// A socket or its directory cannot be made.
    #[error("cannot open a socket")]
    Socket(#[from] socket::Error),
    /// Another proxy answers on the control socket.
    #[error("a proxy already serves {}: stop it, or use another proxy.run_dir", path.display())]
    AlreadyRunning {
        /// Path of the control socket.
        path: PathBuf,
    },
    /// Stored decisions cannot be read: revocations, freezes or closed runs.
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
    /// The run for unattributed calls cannot be made, which its fixed ids make impossible.
    #[error("cannot make the run {}", runs::NOBODY)]
    Nobody(#[source] http::Error),
    /// The journal cannot be opened.
    #[error("cannot open the journal")]
    Journal(#[from] journal::Error),
    /// A thread cannot be started.
    #[error("cannot start a data-plane thread")]
    Thread(#[source] io::Error),
}

/// A proxy that serves calls, and whose control socket is bound. Connections there are answered once [`App::run`] is
/// polled.
#[derive(Debug)]
pub struct App {
    socket: Socket,
    control: Control,
    stop: Shutdown,
    metrics: Option<TcpListener>,
    threads: Vec<thread::JoinHandle<()>>,
    keeper: Keeper,
}

impl App {
    /// Binds sockets, opens the journal, starts the threads and opens the runs: those of the configuration, and those
    /// that were open when an earlier proxy ended. Must be called in the runtime it will run in. The configuration
    /// was read from `origins`, and is read there again.
    ///
    /// # Errors
    /// If any of that fails; nothing is left running then.
    pub async fn build(config: Config, origins: Origins) -> Result<Self, Error> {
        exchange::raise_descriptor_limit();
        let proxy = &config.settings.proxy;
        claim(proxy)?;
        let journal = Arc::new(Journal::open(&proxy.state_dir, config.settings.journal.clone())?);
        socket::private_dir(&proxy.listeners_dir(), 0o700)?;
        let socket = Socket::bind(&config)?;
        let Left { past, directory, freezes } = Left::read(&config.settings, &journal)?;
        let snapshot = Arc::new(ArcSwap::from_pointee(config.snapshot(None)));
        let shared_listeners = shared::bind(proxy, thread_count(&config))?;
        let scraped = proxy.metrics_listen.map(control::metrics::bind).transpose()?;
        let shared = shared_listeners.first().and_then(|listener| listener.local_addr().ok());
        let terms = config.terms();
        let bodies = Arc::new(Allowance::new(proxy.all_bodies));
        let metrics = Arc::new(Metrics::new(config.models(), thread_count(&config)));
        let parts = Parts {
            upstream: Arc::clone(&config.upstream),
            journal: Arc::clone(&journal),
            bodies: Arc::clone(&bodies),
            directory: Arc::clone(&directory),
            freezes: Arc::clone(&freezes),
            nobody: Arc::new(Run::nobody(&terms).map_err(Error::Nobody)?),
            snapshot: Arc::clone(&snapshot),
            metrics: Arc::clone(&metrics),
            rooms: Rooms::new(config.settings.proxy.connections, thread_count(&config)),
        };
        let closed = Arc::clone(&past.closed);
        let keeper =
            Keeper::start(Arc::clone(&journal), move |run| closed.contains(run)).map_err(Error::Thread)?;
        let (workers, threads) = start_workers(&config, &parts, shared_listeners)?;
        let place = Place { dir: proxy.listeners_dir(), reserved: proxy.own_dirs(), directory, shared };
        let runs = Runs::new(place, past, terms, workers);
        open_runs(&runs, &config).await?;
        runs.listen().await;
        let upstream = Upstream::new(Arc::clone(&config.upstream));
        let stop = Shutdown::new();
        Ok(Self {
            socket,
            control: Control {
                stop: stop.watch(),
                origins: Arc::new(origins),
                reloading: tokio::sync::Mutex::default(),
                config: ArcSwap::from_pointee(config),
                runs,
                journal,
                bodies,
                heads: parts.rooms.heads(),
                taps: Arc::default(),
                metrics,
                freezes,
                snapshot,
                started: Instant::now(),
                upstream,
            },
            stop,
            metrics: scraped,
            threads,
            keeper,
        })
    }

    /// Returns the path of the control socket.
    #[must_use]
    pub fn control_socket(&self) -> PathBuf {
        self.control.config.load().settings.proxy.control_socket()
    }

    /// Serves until a signal asks for a stop, then lets calls in flight end within the drain's time. A second such
    /// signal cuts them at once.
    pub async fn run(self, mut signals: Signals, notifier: Notifier) {
        let control = Arc::new(self.control);
        let clocked = Arc::clone(&control);
        let clock = task::spawn("ends of runs", async move { clocked.runs.watch_clock().await });
        let tapped = Arc::clone(&control);
        let taps = every(TIDY, "rings of taps", move || {
            tapped.taps.tidy(Instant::now());
            ready(())
        });
        let changed = Arc::clone(&control);
        let changes = every(STORE_RETRY_INTERVAL, "changes that are not stored", move || {
            changed.store_changes();
            ready(())
        });
        let metrics = self
            .metrics
            .map(|listener| task::spawn("metrics", control::metrics::serve(listener, Arc::clone(&control))));
        let socket = task::spawn("control socket", self.socket.serve(Arc::clone(&control)));
        let notifier = Arc::new(notifier);
        notifier.ready();
        let watched = task::spawn("watchdog", watch_over(Arc::clone(&control), Arc::clone(&notifier)));
        let hangups = Arc::new(Notify::new());
        let reloads = task::spawn(
            "reloads",
            reload_when_asked(Arc::clone(&control), Arc::clone(&notifier), Arc::clone(&hangups)),
        );
        let retried = Arc::clone(&control);
        let retries = every(RETRY_INTERVAL, "runs that are not open", move || {
            let control = Arc::clone(&retried);
            async move { control::reload::retry(&control).await }
        });
        while signals.next().await == Asked::Reload {
            hangups.notify_one();
        }
        reloads.abort();
        retries.abort();
        let config = control.config.load_full();
        let proxy = &config.settings.proxy;
        tracing::info!(drain = %proxy.drain, "stopping, calls in flight may end");
        notifier.stopping(proxy.longest_stop().duration());
        end_whatever_hangs(proxy.longest_stop().duration());
        self.stop.begin();
        drop(socket.await);
        clock.abort();
        taps.abort();
        changes.abort();
        control.runs.shut_down(proxy.drain.duration(), proxy.drain_cut.duration(), signals.stop()).await;
        metrics.inspect(JoinHandle::abort);
        watched.abort();
        join(self.threads).await;
        self.keeper.stop();
        control.store_changes();
    }
}

/// State that earlier proxies have left, read before the first call can come.
struct Left {
    past: Past,
    directory: Arc<Directory>,
    freezes: Arc<Freezes>,
}

impl Left {
    fn read(settings: &Settings, journal: &Arc<Journal>) -> Result<Self, Error> {
        let state = |name: &str| settings.proxy.state_dir.join(name);
        let unreadable = |name| move |source| Error::State { path: state(name), source };
        let closed = Arc::new(ClosedRuns::open(&state("closed")).map_err(unreadable("closed"))?);
        let SoFar { by_account, by_run } = journal.spent(|run| closed.contains(run))?;
        let accounts = Arc::new(Accounts::new(settings.accounts.clone(), by_account));
        let kept = KeptRuns::open(&settings.proxy.kept_dir())?;
        Ok(Self {
            past: Past { accounts, spent: by_run, closed, journal: Arc::clone(journal), kept },
            directory: Arc::new(Directory::open(&state("revoked")).map_err(unreadable("revoked"))?),
            freezes: Arc::new(Freezes::open(&state("frozen")).map_err(unreadable("frozen"))?),
        })
    }
}

/// Makes the directories, unless another proxy uses them.
fn claim(proxy: &settings::Proxy) -> Result<(), Error> {
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
    Ok(())
}

/// Opens the runs that were open before, then those of the configuration. A run that cannot be opened is tried again
/// later: it must not keep the others from being served.
async fn open_runs(runs: &Runs, config: &Config) -> Result<(), Error> {
    let kept = config.settings.proxy.kept_dir();
    let restored = runs.restore().await.map_err(|source| Error::State { path: kept, source })?;
    let configured = &config.settings.runs;
    let not_open = runs.stand(&Standing::new(), configured, Duration::ZERO).await.len();
    tracing::info!(restored, configured = configured.len(), not_open, "runs are open");
    Ok(())
}

/// Notifies the service manager that every thread responds, as long as it is polled.
async fn watch_over(control: Arc<Control>, notifier: Arc<Notifier>) {
    let Some(patience) = notifier.watchdog() else { return };
    let mut tick = tokio::time::interval(patience / 2);
    loop {
        tick.tick().await;
        control.runs.are_alive().await;
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
async fn reload_when_asked(control: Arc<Control>, notifier: Arc<Notifier>, hangups: Arc<Notify>) {
    loop {
        hangups.notified().await;
        notifier.reloading();
        // The reload has logged its error.
        drop(control::reload::reload(&control).await);
        notifier.ready();
    }
}

/// Time between two attempts to open what could not be opened.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Interval between two attempts to store changes that the disk has rejected.
const STORE_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Interval between two checks of the rings of taps.
const TIDY: Duration = Duration::from_secs(60);
/// Longest wait for threads after the order to end.
const JOIN: Duration = Duration::from_secs(1);

/// Waits for threads that end. One that is stuck ends with the process.
async fn join(threads: Vec<thread::JoinHandle<()>>) {
    let deadline = Instant::now() + JOIN;
    while threads.iter().any(|thread| !thread.is_finished()) && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for thread in threads {
        if !thread.is_finished() {
            tracing::error!("a data-plane thread does not end");
        } else if thread.join().is_err() {
            tracing::error!("a data-plane thread panicked");
        }
    }
}

/// Ends the process after `after` and a short extra time for deadlines of that length, even if this thread hangs.
#[expect(clippy::exit, clippy::disallowed_methods, reason = "there is nobody left who could return")]
fn end_whatever_hangs(after: Duration) {
    let end = move || {
        thread::sleep(after + 2 * JOIN);
        tracing::error!("something hangs, ending without it");
        std::process::exit(1);
    };
    if let Err(error) = thread::Builder::new().name("end".to_owned()).spawn(end) {
        tracing::warn!(%error, "nobody watches over the end");
    }
}

type Started = (Vec<Worker>, Vec<thread::JoinHandle<()>>);

fn start_workers(config: &Config, parts: &Parts, shared: Vec<net::TcpListener>) -> Result<Started, Error> {
    let serves = config.settings.proxy.listen_serves;
    let mut shared = shared.into_iter();
    (0..thread_count(config))
        .map(|index| {
            let shared = shared.next().map(|listener| (listener, serves));
            Worker::start(index, parts.clone(), shared).map_err(Error::Thread)
        })
        .collect()
}

/// Returns the number of data-plane threads.
fn thread_count(config: &Config) -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    config.settings.proxy.threads.map_or(cores, usize::from).max(1)
}
