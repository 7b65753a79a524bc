//! Holds all runs this proxy knows, and their socket directories.
//!
//! A run's directory has a random name below a directory that only this user can enter, so no other process can guess
//! it. It outlives the proxy: a container has it mounted, and finds the socket in it again. The next proxy opens the
//! run by itself. Runs of the configuration have their socket at a configured path.

mod claims;
mod closing;
mod door;
mod error;
mod gateways;
mod keeping;
mod kept;
mod not_open;
mod opening;
mod reserving;
mod resting;
mod standing;

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use arc_swap::ArcSwap;
use dashmap::DashMap;
use futures_util::future::join_all;
use platform_core::{
    control::RunView,
    id::{ModelName, RunId},
};
use tokio::sync::SetOnce;

use self::{
    claims::{Claim, Claims},
    door::Door,
    gateways::Gateways,
    kept::Kept,
    not_open::NotOpen,
};
pub(crate) use self::{error::Error, kept::KeptRuns, standing::Standing};
use crate::{
    accounts::Accounts,
    closed::ClosedRuns,
    directory::Directory,
    journal::Journal,
    run::{Purse, Run, Terms},
    tally::Tally,
    worker::Worker,
};

/// Id and account under which unattributed calls are recorded.
pub(crate) const NOBODY: &str = "unattributed";

/// Places at which runs and their sockets are found.
#[derive(Debug)]
pub(crate) struct Place {
    /// Directory of the socket directories.
    pub(crate) dir: PathBuf,
    /// Directories in which no run of the configuration may have its socket.
    pub(crate) reserved: [PathBuf; 3],
    /// Run registry for calls on listeners that runs share.
    pub(crate) directory: Arc<Directory>,
    /// Address of the shared listener.
    pub(crate) shared: Option<SocketAddr>,
}

/// State that earlier proxies have left.
#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) spent: HashMap<RunId, Tally>,
    pub(crate) closed: Arc<ClosedRuns>,
    /// Journal; a run's aggregated refusals are written to it when the run closes.
    pub(crate) journal: Arc<Journal>,
    pub(crate) kept: KeptRuns,
}

/// All runs of this proxy.
#[derive(Debug)]
pub(crate) struct Runs {
    dir: PathBuf,
    reserved: [PathBuf; 3],
    /// Claims on the directories in `dir`.
    claims: Claims,
    directory: Arc<Directory>,
    shared: Option<SocketAddr>,
    terms: ArcSwap<Terms>,
    workers: Vec<Worker>,
    next_worker: AtomicUsize,
    live: DashMap<RunId, Arc<Live>>,
    accounts: Arc<Accounts>,
    /// Spending of runs with an earlier proxy, until they are opened again.
    spent: DashMap<RunId, Purse>,
    closed: Arc<ClosedRuns>,
    journal: Arc<Journal>,
    kept: KeptRuns,
    gateways: Gateways,
    /// Runs of the configuration that could not be opened.
    not_open: NotOpen,
    /// Runs and gateways of the proxy before that could not be opened again.
    not_restored: NotOpen,
    /// Claims of these on socket directories.
    claims_of_not_restored: Mutex<Vec<Claim>>,
    /// Runs that are closing and were replaced by others.
    retired: Mutex<Vec<Weak<Run>>>,
}

#[derive(Debug)]
struct Live {
    run: Arc<Run>,
    door: Door,
    /// Result of opening it, once that is known.
    opened: SetOnce<Opened>,
    /// Stored state of the run; `None` for a run of the configuration.
    kept: Option<Mutex<Kept>>,
    /// Held as long as the directory belongs to the run.
    #[expect(dead_code, reason = "dropping it gives the directory up")]
    claim: Option<Claim>,
}

/// Result of opening a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opened {
    /// Agents can connect.
    Open,
    /// The run could not be opened, and is gone.
    Failed,
}

impl Live {
    /// Returns a run of the configuration, which is listed only once it is open.
    fn standing(run: Run, door: Door) -> Self {
        let opened = SetOnce::new_with(Some(Opened::Open));
        Self { run: Arc::new(run), door, opened, kept: None, claim: None }
    }

    /// Returns a registered run that is being opened.
    fn registered(run: Run, door: Door, claim: Option<Claim>, kept: Kept) -> Self {
        let kept = Some(Mutex::new(kept));
        Self { run: Arc::new(run), door, opened: SetOnce::new(), kept, claim }
    }

    /// Returns whether it is a run of the configuration.
    const fn is_standing(&self) -> bool {
        self.kept.is_none()
    }

    fn kept(&self) -> Option<MutexGuard<'_, Kept>> {
        self.kept.as_ref().map(|kept| kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the run's state for control.
    fn view(&self) -> RunView {
        let epoch = self.kept().map_or(0, |kept| kept.epoch);
        RunView { epoch, socket: self.door.dir().cloned(), ..self.run.view() }
    }
}

impl Runs {
    pub(crate) fn new(place: Place, past: Past, terms: Terms, workers: Vec<Worker>) -> Self {
        let Place { dir, reserved, directory, shared } = place;
        let Past { accounts, spent, closed, journal, kept } = past;
        Self {
            dir,
            reserved,
            claims: Claims::default(),
            directory,
            shared,
            terms: ArcSwap::from_pointee(terms),
            workers,
            next_worker: AtomicUsize::new(0),
            live: DashMap::new(),
            accounts,
            spent: spent.into_iter().map(|(run, tally)| (run, tally.into())).collect(),
            closed,
            journal,
            gateways: Gateways::new(kept.dir()),
            kept,
            not_open: NotOpen::default(),
            not_restored: NotOpen::default(),
            claims_of_not_restored: Mutex::default(),
            retired: Mutex::default(),
        }
    }

    /// Applies other defaults to calls to come.
    pub(crate) fn reconcile(&self, terms: Terms) {
        self.live.iter().for_each(|live| live.run.reconcile(&terms));
        self.terms.store(Arc::new(terms));
    }

    /// Returns the registry of correlations and revocations.
    pub(crate) fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// Returns the run, if it is open or closing.
    pub(crate) fn get(&self, run: &RunId) -> Option<Arc<Run>> {
        self.find(run).map(|live| Arc::clone(&live.run))
    }

    /// Returns the run's state for control, also for a while after it was closed.
    pub(crate) fn view(&self, run: &RunId) -> Option<RunView> {
        self.find(run).map(|live| live.view()).or_else(|| self.closed.view(run))
    }

    /// Returns whether `run` is open, or was closed.
    pub(crate) fn knows(&self, run: &RunId) -> bool {
        self.find(run).is_some() || self.closed.contains(run)
    }

    /// Returns whether an open run was granted `model` by name.
    pub(crate) fn grant_model(&self, model: &ModelName) -> bool {
        let granted = |run: &Run| run.grant.models.as_ref().is_some_and(|models| models.contains(model));
        self.live.iter().any(|live| granted(&live.run))
    }

    /// Returns the states of all runs that are open or closing.
    pub(crate) fn views(&self) -> Vec<RunView> {
        self.live.iter().map(|live| live.view()).collect()
    }

    /// Returns the numbers of runs that are open or closing, and of their calls in flight.
    pub(crate) fn load(&self) -> (u64, u64) {
        self.live.iter().fold((0, 0), |(runs, calls), live| (runs + 1, calls + live.run.in_flight()))
    }

    /// Returns the number of watchers of taps.
    pub(crate) fn watchers(&self) -> usize {
        self.live.iter().map(|live| live.run.watchers()).sum()
    }

    /// Returns the number of idle connections to the upstream.
    pub(crate) fn idle_connections(&self) -> usize {
        self.workers.iter().map(Worker::idle_connections).sum()
    }

    /// Returns the spending of accounts.
    pub(crate) fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Wakes the tasks that carry calls, so that each checks again whether its call may go on.
    pub(crate) fn stir(&self) {
        self.everyone().iter().for_each(|run| run.stir());
    }

    /// Revokes the tokens of `run`, also if several runs had that id one after the other. Calls that came by token
    /// are cut, others go on.
    ///
    /// # Errors
    /// If the revocation holds and is not stored.
    pub(crate) fn revoke(&self, run: &RunId) -> io::Result<()> {
        let stored = self.directory.revoke(run);
        self.everyone().iter().filter(|live| live.grant.run_id == *run).for_each(|live| live.revoke_tokens());
        stored
    }

    /// Returns the runs that were closed.
    pub(crate) fn closed(&self) -> &Arc<ClosedRuns> {
        &self.closed
    }

    /// Returns all runs that may have calls in flight.
    fn everyone(&self) -> Vec<Arc<Run>> {
        let retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        let live = self.live.iter().map(|live| Arc::clone(&live.run));
        live.chain(retired.iter().filter_map(Weak::upgrade)).collect()
    }

    /// Accepts calls on the shared listener. Before the runs are opened all its calls would be unattributed.
    pub(crate) async fn listen(&self) {
        join_all(self.workers.iter().map(Worker::listen)).await;
    }

    /// Returns once each data-plane thread has shown that it is not stuck.
    pub(crate) async fn are_alive(&self) {
        join_all(self.workers.iter().map(Worker::answer)).await;
    }

    /// Returns the thread that gets the next listener.
    fn next_worker(&self) -> &Worker {
        &self.workers[self.next_worker.fetch_add(1, Ordering::Relaxed) % self.workers.len()]
    }

    /// Returns the spending of a run of this id, with an earlier proxy or under an earlier configuration.
    fn purse(&self, run: &RunId) -> Purse {
        self.spent.get(run).map(|purse| purse.clone()).unwrap_or_else(|| Tally::default().into())
    }

    fn find(&self, run: &RunId) -> Option<Arc<Live>> {
        self.live.get(run).map(|live| Arc::clone(&live))
    }
}
