//! Holds all runs this proxy knows, and their socket directories.
//!
//! A run's directory has a random name below a directory that only this user can enter, so no other process can guess
//! it. It outlives the proxy: a container has it mounted, and finds the socket in it again. The next proxy opens the
//! run by itself. Runs of the configuration have their socket at a configured path.

mod claims;
mod closing;
mod error;
mod gateways;
mod not_open;
mod opening;
mod persist;
mod persisted_run;
mod quarantine;
mod reserving;
mod run_listener;
mod static_runs;

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, MutexGuard, Weak},
};

use arc_swap::ArcSwap;
use dashmap::DashMap;
use futures_util::future::join_all;
use platform_core::{
    control::RunView,
    id::{ModelName, RunId},
    record::ExchangeRecord,
};
use platform_runtime::{settings, sync::Mutex};
use tokio::sync::SetOnce;

use self::{
    claims::{Claim, Claims},
    gateways::Gateways,
    not_open::NotOpen,
    persisted_run::PersistedRun,
    run_listener::RunListener,
};
pub(crate) use self::{closing::Holder, error::Error, persisted_run::RunStateDir, static_runs::StaticRuns};
use crate::{
    accounts::Accounts,
    closed::ClosedRuns,
    data_plane_thread::{self, DataPlaneThread},
    journal::Journal,
    registry::RunRegistry,
    run::{Run, RunBudget, RunDefaults},
    run_keys::RunKeys,
    run_usage::RunUsage,
};

/// Directories and addresses at which runs are reached.
#[derive(Debug)]
pub(crate) struct ListenerSetup {
    /// Directory of the socket directories.
    pub(crate) dir: PathBuf,
    /// Directories in which no run of the configuration may have its socket.
    pub(crate) reserved: [PathBuf; 4],
    /// Run registry for calls on listeners that runs share.
    pub(crate) registry: Arc<RunRegistry>,
    /// Address of the shared listener.
    pub(crate) shared: Option<SocketAddr>,
}

impl ListenerSetup {
    /// Returns what `proxy` sets.
    pub(crate) fn of(
        proxy: &settings::Proxy,
        registry: Arc<RunRegistry>,
        shared: Option<SocketAddr>,
    ) -> Self {
        Self { dir: proxy.listeners_dir(), reserved: proxy.own_dirs(), registry, shared }
    }
}

/// State that earlier proxies have left.
#[derive(Debug)]
pub(crate) struct RecoveredState {
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) spent: HashMap<RunId, RunUsage>,
    pub(crate) closed: Arc<ClosedRuns>,
    /// Journal; a run's aggregated refusals are written to it when the run closes.
    pub(crate) journal: Arc<Journal>,
    pub(crate) state_dir: RunStateDir,
    pub(crate) run_keys: Arc<RunKeys>,
}

/// All runs of this proxy.
#[derive(Debug)]
pub(crate) struct Runs {
    dir: PathBuf,
    reserved: [PathBuf; 4],
    /// Claims on the directories in `dir`.
    claims: Claims,
    registry: Arc<RunRegistry>,
    shared: Option<SocketAddr>,
    run_defaults: ArcSwap<RunDefaults>,
    threads: Vec<DataPlaneThread>,
    live: DashMap<RunId, Arc<LiveRun>>,
    accounts: Arc<Accounts>,
    /// Spending of runs with an earlier proxy, until they are opened again.
    spent: DashMap<RunId, RunBudget>,
    closed: Arc<ClosedRuns>,
    journal: Arc<Journal>,
    state_dir: RunStateDir,
    gateways: Gateways,
    /// Keys of runs at the upstream.
    run_keys: Arc<RunKeys>,
    /// Runs of the configuration that could not be opened.
    not_open: NotOpen,
    /// Runs and gateways of the proxy before that could not be opened again.
    not_restored: NotOpen,
    /// Claims on socket directories of those in `not_restored`.
    claims_of_not_restored: Mutex<Vec<Claim>>,
    /// Runs that are closing and were replaced by others.
    retired: Mutex<Vec<Weak<Run>>>,
}

#[derive(Debug)]
struct LiveRun {
    run: Arc<Run>,
    listener: RunListener,
    /// Result of opening the run, once it is known.
    opened: SetOnce<OpenOutcome>,
    /// Stored state of the run; `None` for a run of the configuration.
    persisted: Option<Mutex<PersistedRun>>,
    /// Held as long as the directory belongs to the run.
    #[expect(dead_code, reason = "dropping it gives the directory up")]
    claim: Option<Claim>,
}

/// Result of opening a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenOutcome {
    /// Agents can connect.
    Open,
    /// The run could not be opened, and is gone.
    Failed,
}

impl LiveRun {
    /// Returns a run of the configuration, which is listed only once it is open.
    fn new_static(run: Run, listener: RunListener) -> Self {
        let opened = SetOnce::new_with(Some(OpenOutcome::Open));
        Self { run: Arc::new(run), listener, opened, persisted: None, claim: None }
    }

    /// Returns a registered run that is being opened.
    fn new_registered(
        run: Run,
        listener: RunListener,
        claim: Option<Claim>,
        persisted: PersistedRun,
    ) -> Self {
        let persisted = Some(Mutex::new(persisted));
        Self { run: Arc::new(run), listener, opened: SetOnce::new(), persisted, claim }
    }

    /// Returns whether it is a run of the configuration.
    const fn is_static(&self) -> bool {
        self.persisted.is_none()
    }

    fn persisted(&self) -> Option<MutexGuard<'_, PersistedRun>> {
        self.persisted.as_ref().map(Mutex::lock)
    }

    /// Returns the run's state for control.
    fn view(&self) -> RunView {
        let epoch = self.persisted().map_or(0, |persisted| persisted.epoch);
        RunView { epoch, socket: self.listener.dir().cloned(), ..self.run.view() }
    }
}

impl Runs {
    pub(crate) fn new(
        setup: ListenerSetup,
        recovered: RecoveredState,
        run_defaults: RunDefaults,
        threads: Vec<DataPlaneThread>,
    ) -> Self {
        let ListenerSetup { dir, reserved, registry, shared } = setup;
        let RecoveredState { accounts, spent, closed, journal, state_dir, run_keys } = recovered;
        Self {
            dir,
            reserved,
            claims: Claims::default(),
            registry,
            shared,
            run_defaults: ArcSwap::from_pointee(run_defaults),
            threads,
            live: DashMap::new(),
            accounts,
            spent: spent.into_iter().map(|(run_id, run_usage)| (run_id, run_usage.into())).collect(),
            closed,
            journal,
            gateways: Gateways::new(state_dir.dir()),
            state_dir,
            run_keys,
            not_open: NotOpen::default(),
            not_restored: NotOpen::default(),
            claims_of_not_restored: Mutex::default(),
            retired: Mutex::default(),
        }
    }

    /// Applies other defaults to later calls.
    pub(crate) fn set_defaults(&self, run_defaults: RunDefaults) {
        self.live.iter().for_each(|live| live.run.set_defaults(&run_defaults));
        self.run_defaults.store(Arc::new(run_defaults));
    }

    /// Returns the registry of correlations and revocations.
    pub(crate) fn registry(&self) -> &Arc<RunRegistry> {
        &self.registry
    }

    /// Returns the run, if it is open or closing.
    pub(crate) fn get(&self, run_id: &RunId) -> Option<Arc<Run>> {
        self.find(run_id).map(|live| Arc::clone(&live.run))
    }

    /// Returns the run's state for control, also for a while after it was closed.
    pub(crate) fn view(&self, run_id: &RunId) -> Option<RunView> {
        self.find(run_id).map(|live| live.view()).or_else(|| self.closed.view(run_id))
    }

    /// Returns whether the run `run_id` is open, or was closed.
    pub(crate) fn knows(&self, run_id: &RunId) -> bool {
        self.find(run_id).is_some() || self.closed.contains(run_id, 0)
    }

    /// Returns whether an open run was granted `model` by name.
    pub(crate) fn grants_model(&self, model: &ModelName) -> bool {
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

    /// Returns the bytes of request bodies that calls hold.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.threads.iter().map(DataPlaneThread::body_bytes).sum()
    }

    /// Returns the number of idle connections to the upstream.
    pub(crate) fn idle_connections(&self) -> usize {
        self.threads.iter().map(DataPlaneThread::idle_connections).sum()
    }

    /// Returns the spending of accounts.
    pub(crate) fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Wakes the tasks that carry calls, so that each checks again whether its call may go on.
    pub(crate) fn notify_cuts(&self) {
        self.all_runs().iter().for_each(|run| run.notify_cuts());
    }

    /// Revokes the tokens of the run `run_id`, also if several runs had that id one after the other. Calls that came by
    /// token are cut, others go on.
    ///
    /// # Errors
    /// If the revocation is in effect but not stored.
    pub(crate) fn revoke(&self, run_id: &RunId) -> io::Result<()> {
        let stored = self.registry.revoke(run_id);
        self.all_runs().iter().filter(|run| run.grant.run_id == *run_id).for_each(|run| run.revoke_tokens());
        stored
    }

    /// Moves the counters of limits by the `record` of a correction: those of the account, and of the run if that attempt
    /// is open.
    pub(crate) fn correct(&self, record: &ExchangeRecord) {
        let Some(correction) = &record.correction else { return };
        self.accounts.of(&record.account).correct(correction);
        let run = self.get(&record.run_id).filter(|run| run.grant.attempt == record.attempt);
        if let Some(run) = run {
            run.correct(correction);
        }
    }

    /// Returns the keys of runs at the upstream.
    pub(crate) fn run_keys(&self) -> &Arc<RunKeys> {
        &self.run_keys
    }

    /// Returns the runs that were closed.
    pub(crate) fn closed(&self) -> &Arc<ClosedRuns> {
        &self.closed
    }

    /// Returns all runs that may have calls in flight.
    fn all_runs(&self) -> Vec<Arc<Run>> {
        let retired = self.retired.lock();
        let live = self.live.iter().map(|live| Arc::clone(&live.run));
        live.chain(retired.iter().filter_map(Weak::upgrade)).collect()
    }

    /// Accepts calls on the shared listener. Before the runs are opened all its calls would be unattributed.
    pub(crate) async fn listen(&self) {
        join_all(self.threads.iter().map(DataPlaneThread::listen)).await;
    }

    /// Returns once each data-plane thread has shown that it is not stuck.
    pub(crate) async fn check_threads(&self) {
        join_all(self.threads.iter().map(DataPlaneThread::ping)).await;
    }

    /// Returns the thread that gets the next listener: the one with the least to do.
    fn least_loaded_thread(&self) -> Result<&DataPlaneThread, data_plane_thread::Error> {
        self.threads.iter().min_by_key(|thread| thread.load()).ok_or(data_plane_thread::Error::Stopped)
    }

    /// Returns the spending of a run of this id, with an earlier proxy or under an earlier configuration.
    fn budget(&self, run_id: &RunId) -> RunBudget {
        self.spent.get(run_id).map(|budget| budget.clone()).unwrap_or_else(|| RunUsage::default().into())
    }

    fn find(&self, run_id: &RunId) -> Option<Arc<LiveRun>> {
        self.live.get(run_id).map(|live| Arc::clone(&live))
    }
}
