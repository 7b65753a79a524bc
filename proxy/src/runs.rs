//! All runs this proxy knows, and their socket directories.
//!
//! A run's directory has a random name below a directory that only this user can enter, so nobody finds it
//! who was not told. It outlives the proxy: a container has it mounted, and finds the socket in it again.

use std::{
    collections::HashMap,
    fs, io,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use dashmap::{DashMap, Entry};
use futures_util::future::join_all;
use platform_core::{
    control::{Register, Registered, RunView, SocketDir, Usage},
    grant::Listener,
    id::{RunId, SocketDirName},
    name::path::SOCKET_FILE,
};
use platform_runtime::{random, socket};

use crate::{
    accounts::Accounts,
    clock,
    closed::ClosedRuns,
    directory::Directory,
    journal::Journal,
    run::{Closing, Run, Spent, Terms},
    worker::{self, Worker},
};

/// How often it is looked whose time is over. No call begins after it, whenever that is.
const TICK: Duration = Duration::from_millis(250);

/// Id and account under which calls are recorded that are nobody's.
pub(crate) const NOBODY: &str = "unattributed";

/// Why a run was not opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The run is there already, with another grant.
    #[error("run {run} is open with another grant; close it first")]
    Conflict {
        /// The run.
        run: RunId,
    },
    /// The run was closed. A new attempt is a new run here.
    #[error("run {run} was closed; a closed run is not opened again")]
    Closed {
        /// The run.
        run: RunId,
    },
    /// It cannot be called in the way it was granted.
    #[error(
        "run {run} cannot be opened: its grant wants the shared listener and proxy.listen is not set, or its id is reserved"
    )]
    NoSuchListener {
        /// The run.
        run: RunId,
    },
    /// Its identity does not fit into headers.
    #[error("the grant of run {run} cannot be written as headers")]
    Unwritable {
        /// The run.
        run: RunId,
        /// Why not.
        #[source]
        source: http::Error,
    },
    /// Its directory could not be made.
    #[error(transparent)]
    Directory(#[from] socket::Error),
    /// Its thread could not open it.
    #[error(transparent)]
    Worker(#[from] worker::Error),
}

/// Where runs are found.
#[derive(Debug)]
pub(crate) struct Place {
    /// Directory of the socket directories.
    pub(crate) dir: PathBuf,
    /// Where calls on the shared listener look.
    pub(crate) directory: Arc<Directory>,
    /// The shared listener.
    pub(crate) shared: Option<SocketAddr>,
}

/// What proxies before this one have left.
#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) spent: HashMap<RunId, Usage>,
    pub(crate) closed: Arc<ClosedRuns>,
    /// What was counted of a run's refused calls is written when it closes.
    pub(crate) journal: Arc<Journal>,
}

/// All runs.
#[derive(Debug)]
pub(crate) struct Runs {
    dir: PathBuf,
    directory: Arc<Directory>,
    shared: Option<SocketAddr>,
    terms: Terms,
    workers: Vec<Worker>,
    next_worker: AtomicUsize,
    live: DashMap<RunId, Arc<Live>>,
    accounts: Arc<Accounts>,
    /// What runs spent with a proxy before, until they are opened again.
    spent: DashMap<RunId, Usage>,
    closed: Arc<ClosedRuns>,
    journal: Arc<Journal>,
}

#[derive(Debug)]
struct Live {
    run: Arc<Run>,
    registered: Registered,
}

impl Runs {
    pub(crate) fn new(place: Place, past: Past, terms: Terms, workers: Vec<Worker>) -> Self {
        let Place { dir, directory, shared } = place;
        let Past { accounts, spent, closed, journal } = past;
        Self {
            dir,
            directory,
            shared,
            terms,
            workers,
            next_worker: AtomicUsize::new(0),
            live: DashMap::new(),
            accounts,
            spent: spent.into_iter().collect(),
            closed,
            journal,
        }
    }

    /// Opens a run, or confirms that it is open with this very grant.
    pub(crate) async fn register(&self, register: Register) -> Result<Registered, Error> {
        let run_id = register.grant.run_id.clone();
        if self.closed.contains(&run_id) {
            return Err(Error::Closed { run: run_id });
        }
        let live = self.prepare(register)?;
        let (known, is_new) = match self.live.entry(run_id.clone()) {
            Entry::Occupied(there) => (Arc::clone(there.get()), false),
            Entry::Vacant(place) => (Arc::clone(&place.insert(live)), true),
        };
        if !is_new {
            return Ok(known.registered.clone());
        }
        self.open(&known).await.inspect_err(|_error| {
            self.live.remove(&run_id);
            self.directory.forget(&run_id);
            remove_dir(&known.registered);
        })?;
        Ok(known.registered.clone())
    }

    fn prepare(&self, register: Register) -> Result<Arc<Live>, Error> {
        let Register { grant, socket_dir } = register;
        let run = grant.run_id.clone();
        if let Some(live) = self.find(&run) {
            let same = live.run.grant == grant && live.run.closing().is_none();
            return if same { Ok(live) } else { Err(Error::Conflict { run }) };
        }
        if run.as_str() == NOBODY || (grant.listener == Listener::Shared && self.shared.is_none()) {
            return Err(Error::NoSuchListener { run });
        }
        let socket = matches!(grant.listener, Listener::Unix { .. }).then(|| {
            let name = socket_dir.unwrap_or_else(|| SocketDirName::from_random(random::bits()));
            SocketDir { path: self.dir.join(name.as_str()), name }
        });
        let registered = Registered { socket, shared: self.shared };
        let by_run = self.spent.get(&run).map(|usage| *usage).unwrap_or_default();
        let spent = Spent { by_run, by_account: self.accounts.of(&grant.account) };
        let run = Run::new(grant, &self.terms, spent).map_err(|source| Error::Unwritable { run, source })?;
        Ok(Arc::new(Live { run: Arc::new(run), registered }))
    }

    async fn open(&self, live: &Live) -> Result<(), Error> {
        self.directory.add(&live.run);
        let Some(socket) = &live.registered.socket else { return Ok(()) };
        // The agent's uid must be able to pass through, and to do nothing else.
        socket::private_dir(&socket.path, 0o711)?;
        let turn = self.next_worker.fetch_add(1, Ordering::Relaxed) % self.workers.len();
        Ok(self.workers[turn].open(Arc::clone(&live.run), socket.path.join(SOCKET_FILE)).await?)
    }

    /// What is known of correlations and revocations.
    pub(crate) fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// The run, if it is open or closing.
    pub(crate) fn get(&self, run: &RunId) -> Option<Arc<Run>> {
        self.find(run).map(|live| Arc::clone(&live.run))
    }

    /// The run as control shows it, also for a while after it was closed.
    pub(crate) fn view(&self, run: &RunId) -> Option<RunView> {
        self.get(run).map(|run| run.view()).or_else(|| self.closed.view(run))
    }

    /// All that are open or closing.
    pub(crate) fn views(&self) -> Vec<RunView> {
        self.live.iter().map(|live| live.run.view()).collect()
    }

    /// How many are open or closing, and how many calls they have in flight.
    pub(crate) fn load(&self) -> (u64, u64) {
        self.live.iter().fold((0, 0), |(runs, calls), live| (runs + 1, calls + live.run.in_flight()))
    }

    /// How many watch what streams by.
    pub(crate) fn watchers(&self) -> usize {
        self.live.iter().map(|live| live.run.watchers()).sum()
    }

    /// How many connections to the upstream wait for calls.
    pub(crate) fn idle_connections(&self) -> usize {
        self.workers.iter().map(Worker::idle_connections).sum()
    }

    /// What accounts have spent.
    pub(crate) fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Closes a run and tells what it used. `None`: this proxy does not know it.
    pub(crate) async fn close(&self, run: &RunId, reason: Closing, grace: Duration) -> Option<RunView> {
        // First, and also of a run that is not open: it may have been with a proxy before.
        if let Err(error) = self.closed.add(run) {
            tracing::error!(%run, %error, "that the run is closed cannot be written down");
        }
        self.spent.remove(run);
        let Some(live) = self.find(run) else { return self.closed.view(run) };
        live.run.close(reason, grace).await;
        self.journal.sum_up(Some(run));
        let view = live.run.view();
        if self.live.remove(run).is_some() {
            remove_dir(&live.registered);
            self.directory.withdraw_all(run);
            if let Some(oldest) = self.closed.keep(view.clone()) {
                self.directory.forget(&oldest);
            }
        }
        Some(view)
    }

    /// Has whoever carries a call look again whether it may go on.
    pub(crate) fn stir(&self) {
        self.live.iter().for_each(|live| live.run.stir());
    }

    /// Closes runs when their time is over, as long as it is polled.
    pub(crate) async fn watch_clock(&self) {
        let mut tick = tokio::time::interval(TICK);
        loop {
            tick.tick().await;
            self.close_over(clock::now()).await;
        }
    }

    /// Closes the runs whose time is over at `now`, since the epoch. What they have in flight is cut.
    pub(crate) async fn close_over(&self, now: Duration) {
        let is_over = |live: &Live| live.run.is_over(now) && live.run.cut().is_none();
        let over: Vec<_> =
            self.live.iter().filter(|live| is_over(live)).map(|live| live.key().clone()).collect();
        join_all(over.iter().map(|run| self.close(run, Closing::Over, Duration::ZERO))).await;
    }

    /// Stops everything: calls in flight may end within `grace`, then they are cut. Directories stay.
    pub(crate) async fn shut_down(&self, grace: Duration) {
        let runs: Vec<_> = self.live.iter().map(|live| Arc::clone(&live.run)).collect();
        join_all(runs.iter().map(|run| run.close(Closing::Shutdown, grace))).await;
        join_all(self.workers.iter().map(Worker::stop)).await;
    }

    fn find(&self, run: &RunId) -> Option<Arc<Live>> {
        self.live.get(run).map(|live| Arc::clone(&live))
    }
}

/// Removes a run's directory. The socket in it is gone, or goes with its listener right now.
fn remove_dir(registered: &Registered) {
    let Some(SocketDir { path, .. }) = &registered.socket else { return };
    for removed in [fs::remove_file(path.join(SOCKET_FILE)), fs::remove_dir(path)] {
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(path = %path.display(), %error, "socket directory stays behind");
            }
            _ => {}
        }
    }
}
