//! Sluicegate's data plane.
//!
//! Agents reach it through one unix socket per run. It decides who is calling from the socket, writes the
//! upstream's credential and the billing identity itself, watches what streams by, and records every call in
//! a journal. The life of a call is `exchange`, in the order of its files; what may be asked of the proxy is
//! `control`. Threads and state: `worker` and `run`.

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
mod metrics;
#[cfg(feature = "parts")]
pub mod parts;
mod pieces;
mod refusal;
mod run;
mod runs;
mod shared;
mod state;
mod tap;
mod upstream;
mod usage;
mod worker;

use std::{
    fs, io,
    net::{self, SocketAddr},
    path::PathBuf,
    sync::Arc,
    thread,
    time::Instant,
};

use arc_swap::ArcSwap;
use platform_runtime::{settings::token_secrets, shutdown::Watch, socket, task};
use tokio::net::TcpListener;

pub use self::config::{Config, Error as ConfigError, FromEnvironment};
use self::{
    accounts::Accounts,
    bodies::Allowance,
    closed::ClosedRuns,
    control::{Control, Socket},
    directory::Directory,
    freezes::Freezes,
    journal::{Journal, Keeper, SoFar},
    metrics::Metrics,
    run::{Run, Terms},
    runs::{Past, Place, Runs},
    upstream::Upstream,
    worker::{Parts, Worker},
};

/// Why the proxy does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A directory cannot be made.
    #[error("cannot make directory {}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A socket or its directory is not to be had.
    #[error("cannot open a socket")]
    Socket(#[from] socket::Error),
    /// Another proxy answers on the control socket.
    #[error("a proxy already serves {}: stop it, or use another proxy.run_dir", path.display())]
    AlreadyRunning {
        /// The control socket.
        path: PathBuf,
    },
    /// What was decided before cannot be read: revocations, freezes.
    #[error("cannot read {}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A TCP listener cannot be had: the shared one, or that of the metrics.
    #[error("cannot listen on {setting} {address}")]
    Listen {
        /// Which.
        setting: &'static str,
        /// The address.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The secrets of run tokens are not to be had.
    #[error("cannot read the secrets of run tokens")]
    TokenSecrets(#[from] token_secrets::Error),
    /// The run for calls that are nobody's cannot be made, which its fixed ids make impossible.
    #[error("cannot make the run {}", runs::NOBODY)]
    Nobody(#[source] http::Error),
    /// The journal cannot be opened.
    #[error("cannot open the journal")]
    Journal(#[from] journal::Error),
    /// A thread cannot be started.
    #[error("cannot start a data-plane thread")]
    Thread(#[source] io::Error),
}

/// A proxy whose control socket is bound: whoever connects is answered once it runs.
#[derive(Debug)]
pub struct App {
    socket: Socket,
    control: Control,
    metrics: Option<TcpListener>,
    threads: Vec<thread::JoinHandle<()>>,
    keeper: Keeper,
}

impl App {
    /// Binds sockets, opens the journal and starts the threads. Must be called in the runtime it will run in.
    ///
    /// # Errors
    /// If any of that fails; nothing is left running then.
    pub fn build(config: Config) -> Result<Self, Error> {
        let proxy = &config.proxy;
        for dir in [&proxy.run_dir, &proxy.state_dir] {
            fs::create_dir_all(dir).map_err(|source| Error::Directory { path: dir.clone(), source })?;
        }
        if std::os::unix::net::UnixStream::connect(proxy.control_socket()).is_ok() {
            return Err(Error::AlreadyRunning { path: proxy.control_socket() });
        }
        let journal = Arc::new(Journal::open(&proxy.state_dir, config.journal.clone())?);
        let listeners = proxy.listeners_dir();
        socket::private_dir(&listeners, 0o700)?;
        let socket = Socket::bind(&config)?;
        let state = |name: &str| proxy.state_dir.join(name);
        let unreadable = |name| move |source| Error::State { path: state(name), source };
        let closed = Arc::new(ClosedRuns::open(&state("closed")).map_err(unreadable("closed"))?);
        let SoFar { by_account, by_run } = journal.spent(|run| closed.contains(run))?;
        let accounts = Arc::new(Accounts::new(config.accounts.clone(), by_account));
        let directory = Arc::new(Directory::open(&state("revoked")).map_err(unreadable("revoked"))?);
        let freezes = Arc::new(Freezes::open(&state("frozen")).map_err(unreadable("frozen"))?);
        let snapshot = Arc::new(ArcSwap::from_pointee(config.snapshot()?));
        let shared_listeners = shared::bind(proxy, thread_count(&config))?;
        let scraped = proxy.metrics_listen.map(control::metrics::bind).transpose()?;
        let shared = shared_listeners.first().and_then(|listener| listener.local_addr().ok());
        let terms = terms(&config);
        let bodies = Arc::new(Allowance::new(proxy.all_bodies));
        let metrics = Arc::new(Metrics::new(config.models(), thread_count(&config)));
        let parts = Parts {
            upstream: config.upstream.clone(),
            journal: Arc::clone(&journal),
            bodies: Arc::clone(&bodies),
            unspoken: config.unspoken().into(),
            directory: Arc::clone(&directory),
            freezes: Arc::clone(&freezes),
            nobody: Arc::new(Run::nobody(&terms).map_err(Error::Nobody)?),
            snapshot: Arc::clone(&snapshot),
            metrics: Arc::clone(&metrics),
        };
        let over = Arc::clone(&closed);
        let keeper =
            Keeper::start(Arc::clone(&journal), move |run| over.contains(run)).map_err(Error::Thread)?;
        let (workers, threads) = start_workers(&config, &parts, shared_listeners)?;
        let past = Past { accounts, spent: by_run, closed, journal: Arc::clone(&journal) };
        let runs = Runs::new(Place { dir: listeners, directory, shared }, past, terms, workers);
        let upstream = Upstream::new(config.upstream.clone());
        Ok(Self {
            socket,
            control: Control {
                runs,
                journal,
                bodies,
                metrics,
                freezes,
                snapshot,
                config,
                started: Instant::now(),
                upstream,
            },
            metrics: scraped,
            threads,
            keeper,
        })
    }

    /// Path of the control socket.
    #[must_use]
    pub fn control_socket(&self) -> PathBuf {
        self.control.config.proxy.control_socket()
    }

    /// Serves until a stop is asked for, then lets calls in flight end within the drain's time.
    pub async fn run(self, stop: Watch) {
        let control = Arc::new(self.control);
        let clocked = Arc::clone(&control);
        let clock = task::spawn("ends of runs", async move { clocked.runs.watch_clock().await });
        let metrics = self
            .metrics
            .map(|listener| task::spawn("metrics", control::metrics::serve(listener, Arc::clone(&control))));
        self.socket.serve(Arc::clone(&control), stop).await;
        clock.abort();
        metrics.inspect(tokio::task::JoinHandle::abort);
        let grace = control.config.proxy.drain.duration();
        control.runs.shut_down(grace).await;
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a data-plane thread panicked");
            }
        }
        self.keeper.stop();
    }
}

fn terms(config: &Config) -> Terms {
    Terms {
        authorization: config.authorization.clone(),
        extra_fields: config.proxy.extra_fields.clone(),
        bodies: config.proxy.run_bodies,
    }
}

type Started = (Vec<Worker>, Vec<thread::JoinHandle<()>>);

fn start_workers(config: &Config, parts: &Parts, shared: Vec<net::TcpListener>) -> Result<Started, Error> {
    let serves = config.proxy.listen_serves;
    let mut shared = shared.into_iter();
    (0..thread_count(config))
        .map(|index| {
            let shared = shared.next().map(|listener| (listener, serves));
            Worker::start(index, parts.clone(), shared).map_err(Error::Thread)
        })
        .collect()
}

/// How many data-plane threads there are.
fn thread_count(config: &Config) -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    config.proxy.threads.map_or(cores, usize::from).max(1)
}
