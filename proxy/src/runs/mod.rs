//! All runs this proxy knows, and their socket directories.
//!
//! A run's directory has a random name below a directory that only this user can enter, so nobody finds it
//! who was not told. It outlives the proxy: a container has it mounted, and finds the socket in it again, because the
//! next proxy opens the run by itself. Runs of the configuration have their socket where that says.

mod keeping;
mod kept;
mod standing;

use std::{
    collections::{BTreeSet, HashMap},
    fs, io,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use dashmap::{DashMap, Entry};
use futures_util::future::join_all;
use platform_core::{
    control::{NotReady, Register, Registered, RunView, SocketDir, Usage},
    grant::Listener,
    id::{RunId, SocketDirName},
    name::path::SOCKET_FILE,
};
use platform_runtime::{random, shutdown, socket, task};

use self::kept::Kept;
pub(crate) use self::{kept::KeptRuns, standing::Standing};
use crate::{
    accounts::Accounts,
    clock,
    closed::ClosedRuns,
    directory::Directory,
    journal::Journal,
    run::{Closing, Purse, Run, Spent, Terms},
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
    /// What has to outlive the proxy cannot be written down.
    #[error("run {run} cannot be written down, so nothing was changed")]
    Keep {
        /// The run.
        run: RunId,
        /// Why not.
        #[source]
        source: io::Error,
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
    pub(crate) kept: KeptRuns,
}

/// All runs.
#[derive(Debug)]
pub(crate) struct Runs {
    dir: PathBuf,
    directory: Arc<Directory>,
    shared: Option<SocketAddr>,
    terms: ArcSwap<Terms>,
    workers: Vec<Worker>,
    next_worker: AtomicUsize,
    live: DashMap<RunId, Arc<Live>>,
    accounts: Arc<Accounts>,
    /// What runs spent with a proxy before, until they are opened again.
    spent: DashMap<RunId, Purse>,
    closed: Arc<ClosedRuns>,
    journal: Arc<Journal>,
    kept: KeptRuns,
    /// Runs of the configuration that could not be opened.
    not_open: ArcSwap<Vec<NotReady>>,
    /// Runs that are closing and have left their place to others.
    retired: Mutex<Vec<Weak<Run>>>,
}

#[derive(Debug)]
struct Live {
    run: Arc<Run>,
    door: Door,
    /// What is on disk of it; nothing of a run of the configuration.
    kept: Option<Mutex<Kept>>,
}

/// Where a run's calls come in.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Door {
    /// At a socket in a directory of its own.
    Directory(SocketDir),
    /// At a socket where the configuration says.
    Path(PathBuf),
    /// At the shared listener.
    Shared,
}

impl Live {
    fn new(run: Run, door: Door) -> Self {
        Self { run: Arc::new(run), door, kept: None }
    }

    /// Whether it is a run of the configuration.
    const fn is_standing(&self) -> bool {
        self.kept.is_none()
    }

    fn kept(&self) -> Option<MutexGuard<'_, Kept>> {
        self.kept.as_ref().map(|kept| kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Runs {
    pub(crate) fn new(place: Place, past: Past, terms: Terms, workers: Vec<Worker>) -> Self {
        let Place { dir, directory, shared } = place;
        let Past { accounts, spent, closed, journal, kept } = past;
        Self {
            dir,
            directory,
            shared,
            terms: ArcSwap::from_pointee(terms),
            workers,
            next_worker: AtomicUsize::new(0),
            live: DashMap::new(),
            accounts,
            spent: spent.into_iter().map(|(run, usage)| (run, usage.into())).collect(),
            closed,
            journal,
            kept,
            not_open: ArcSwap::default(),
            retired: Mutex::default(),
        }
    }

    /// Opens a run, or confirms that it is open with this very grant.
    pub(crate) async fn register(&self, register: Register) -> Result<Registered, Error> {
        let run_id = register.grant.run_id.clone();
        if self.closed.contains(&run_id) {
            return Err(Error::Closed { run: run_id });
        }
        let Register { grant, socket_dir } = register;
        if let Some(live) = self.find(&run_id) {
            let same = live.run.grant == grant && live.run.closing().is_none();
            return if same { Ok(self.registered(&live)) } else { Err(Error::Conflict { run: run_id }) };
        }
        let socket_dir = matches!(grant.listener, Listener::Unix { .. })
            .then(|| socket_dir.unwrap_or_else(|| SocketDirName::from_random(random::bits())));
        let kept = Kept { grant, socket_dir, budget: None, correlations: BTreeSet::new() };
        self.kept.write(&kept).map_err(|source| Error::Keep { run: run_id.clone(), source })?;
        let door = self.door(&kept);
        let entered = self.enter(kept).await.inspect_err(|_error| {
            self.kept.remove(&run_id);
            door.remove();
        });
        Ok(self.registered(&*entered?))
    }

    /// Opens a run that is on disk.
    async fn enter(&self, kept: Kept) -> Result<Arc<Live>, Error> {
        let run = kept.grant.run_id.clone();
        let live = self.prepare(kept)?;
        let (known, is_new) = match self.live.entry(run.clone()) {
            Entry::Occupied(there) => (Arc::clone(there.get()), false),
            Entry::Vacant(place) => (Arc::clone(&place.insert(live)), true),
        };
        if is_new {
            self.open(&known).await.inspect_err(|_error| {
                self.live.remove(&run);
                self.directory.forget(&run);
            })?;
        }
        Ok(known)
    }

    fn prepare(&self, kept: Kept) -> Result<Arc<Live>, Error> {
        let grant = kept.grant.clone();
        let run = grant.run_id.clone();
        if run.as_str() == NOBODY || (grant.listener == Listener::Shared && self.shared.is_none()) {
            return Err(Error::NoSuchListener { run });
        }
        let spent = Spent { by_run: self.purse(&run), by_account: self.accounts.of(&grant.account) };
        let run =
            Run::new(grant, &self.terms.load(), spent).map_err(|source| Error::Unwritable { run, source })?;
        if let Some(budget) = &kept.budget {
            run.spending.allow(budget);
        }
        let door = self.door(&kept);
        Ok(Arc::new(Live { kept: Some(Mutex::new(kept)), ..Live::new(run, door) }))
    }

    fn door(&self, kept: &Kept) -> Door {
        let dir = |name: &SocketDirName| SocketDir { path: self.dir.join(name.as_str()), name: name.clone() };
        kept.socket_dir.as_ref().map_or(Door::Shared, |name| Door::Directory(dir(name)))
    }

    fn registered(&self, live: &Live) -> Registered {
        let socket = if let Door::Directory(dir) = &live.door { Some(dir.clone()) } else { None };
        Registered { socket, shared: self.shared }
    }

    /// What a run of this id has spent, with a proxy before or before the configuration named it again.
    fn purse(&self, run: &RunId) -> Purse {
        self.spent.get(run).map(|purse| purse.clone()).unwrap_or_else(|| Usage::default().into())
    }

    async fn open(&self, live: &Live) -> Result<(), Error> {
        let socket = match &live.door {
            Door::Directory(dir) => {
                // The agent's uid must be able to pass through, and to do nothing else.
                socket::private_dir(&dir.path, 0o711)?;
                dir.path.join(SOCKET_FILE)
            }
            Door::Path(path) => path.clone(),
            Door::Shared => {
                self.directory.add(&live.run);
                return Ok(());
            }
        };
        let turn = self.next_worker.fetch_add(1, Ordering::Relaxed) % self.workers.len();
        self.workers[turn].open(Arc::clone(&live.run), socket).await?;
        self.directory.add(&live.run);
        Ok(())
    }

    /// Has other terms hold for calls to come.
    pub(crate) fn reconcile(&self, terms: Terms) {
        self.live.iter().for_each(|live| live.run.reconcile(&terms));
        self.terms.store(Arc::new(terms));
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
            live.door.remove();
            self.kept.remove(run);
            self.directory.withdraw_all(run);
            if let Some(oldest) = self.closed.keep(view.clone()) {
                self.directory.forget(&oldest);
            }
        }
        Some(view)
    }

    /// Has whoever carries a call look again whether it may go on.
    pub(crate) fn stir(&self) {
        self.everyone().iter().for_each(|run| run.stir());
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

    /// Stops everything: calls in flight may end, and what was answered may be read, within `grace` or until `hurry` is
    /// ready. Then they are cut, and have the time `cut` to be recorded. Directories stay.
    pub(crate) async fn shut_down(&self, grace: Duration, cut: Duration, hurry: impl Future<Output = ()>) {
        let runs = self.everyone();
        runs.iter().for_each(|run| run.leave(grace));
        let ended = async {
            join_all(runs.iter().map(|run| run.until_idle())).await;
            join_all(self.workers.iter().map(Worker::until_written)).await;
        };
        tokio::select! {
            drained = shutdown::drain(ended, grace) => tracing::info!(?drained, "calls in flight"),
            () = hurry => tracing::info!("asked to stop again: calls in flight are cut"),
        }
        let recorded = shutdown::drain(
            async {
                join_all(runs.iter().map(|run| run.cut_now())).await;
                join_all(self.workers.iter().map(Worker::stop)).await;
            },
            cut,
        );
        if recorded.await == shutdown::Drain::DeadlinePassed {
            tracing::error!("some calls did not end when they were cut; the journal has them as interrupted");
        }
    }

    /// Closes a run that has left its place. A stop waits for its calls as well.
    fn retire(&self, run: &Arc<Run>, reason: Closing, grace: Duration) {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        retired.retain(|run| run.strong_count() > 0);
        retired.push(Arc::downgrade(run));
        let run = Arc::clone(run);
        task::spawn("closing a run", async move { run.close(reason, grace).await });
    }

    /// Whoever may have calls in flight.
    fn everyone(&self) -> Vec<Arc<Run>> {
        let retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        let live = self.live.iter().map(|live| Arc::clone(&live.run));
        live.chain(retired.iter().filter_map(Weak::upgrade)).collect()
    }

    /// Takes calls on the listener that runs share: before the runs are there they would all be nobody's.
    pub(crate) async fn listen(&self) {
        join_all(self.workers.iter().map(Worker::listen)).await;
    }

    /// Returns once each data-plane thread has shown that it is not stuck.
    pub(crate) async fn are_alive(&self) {
        join_all(self.workers.iter().map(Worker::answer)).await;
    }

    fn find(&self, run: &RunId) -> Option<Arc<Live>> {
        self.live.get(run).map(|live| Arc::clone(&live))
    }
}

impl Door {
    /// Whether it has a directory of its own, and that is there.
    fn is_there(&self) -> bool {
        matches!(self, Self::Directory(dir) if dir.path.exists())
    }

    /// Removes a directory that is the run's own. The socket in it is gone, or goes with its listener right now.
    fn remove(&self) {
        let Self::Directory(SocketDir { path, .. }) = self else { return };
        for removed in [fs::remove_file(path.join(SOCKET_FILE)), fs::remove_dir(path)] {
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(path = %path.display(), %error, "socket directory stays behind");
                }
                _ => {}
            }
        }
    }
}
