//! Gathers the evidence: the existing resources, and the store's knowledge of them. Changes nothing.
//!
//! Resources are listed first, then the store is read. A row is written before its resource is made, so one without a
//! row now had none when it was seen. A run that has ended by now has made nothing since.

use std::collections::{BTreeMap, BTreeSet};

use platform_core::{
    control::{RunState, RunView},
    id::{RunId, SocketDirName},
};
use platform_runtime::report;
use runner_docker::Listed;
use runner_model::lifecycle::{Outcome, State};
use runner_store::{
    self as store, Filter, PoolEntry, PoolStage, Resource, ResourceKind, ResourceState, Run, Store,
};
use serde::Serialize;

use super::{Reaper, inventory::Inventory, workspace_dir::WorkspaceDir};

/// Number of runs in a page of the store's list.
const PAGE_SIZE: u32 = 1000;
/// Names of the states of runs that go on.
const GOING_ON: [&str; 5] = [
    State::Queued.name(),
    State::Preparing.name(),
    State::Starting.name(),
    State::Running.name(),
    State::Settling(Outcome::Failed).name(),
];

/// A run's registration that is open at the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) run_id: RunId,
    pub(super) state: RunState,
    /// Latest epoch the proxy has received.
    pub(super) epoch: u64,
    /// Directory of its socket, as long as that exists.
    pub(super) socket_dir: Option<SocketDirName>,
}

impl From<RunView> for Grant {
    fn from(view: RunView) -> Self {
        Self {
            run_id: view.grant.run_id,
            state: view.state,
            epoch: view.epoch,
            socket_dir: view.socket.map(|socket| socket.name),
        }
    }
}

/// A resource that exists, or should exist by its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FoundResource {
    Container(Listed),
    Grant(Grant),
    Workspace(WorkspaceDir),
    /// Warm container, by its row.
    WarmContainer(PoolEntry),
    /// A row of a run that has ended, whose resource was not found.
    Row(Resource),
}

impl FoundResource {
    pub(super) const fn kind(&self) -> ResourceKind {
        match self {
            Self::Container(_) | Self::WarmContainer(..) => ResourceKind::Container,
            Self::Grant(_) => ResourceKind::Grant,
            Self::Workspace(_) => ResourceKind::Workspace,
            Self::Row(row) => row.kind,
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Container(found) => &found.name,
            Self::Grant(grant) => grant.run_id.as_str(),
            Self::Workspace(dir) => dir.id.as_str(),
            Self::WarmContainer(pooled) => &pooled.warm.container,
            Self::Row(row) => &row.name,
        }
    }
}

/// The store's knowledge of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredRun {
    pub(super) state: State,
    pub(super) epoch: u64,
    /// Rows of all resources that were ever made for it.
    pub(super) rows: Vec<Resource>,
}

/// A resource to judge.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) resource: FoundResource,
    /// Its run, by its own label or by its row.
    pub(super) run_id: Option<RunId>,
}

impl Candidate {
    const fn new(resource: FoundResource, run_id: Option<RunId>) -> Self {
        Self { resource, run_id }
    }
}

impl StoredRun {
    pub(super) const fn new(run: &Run, rows: Vec<Resource>) -> Self {
        Self { state: run.state, epoch: run.epoch, rows }
    }

    /// Returns the row of a resource.
    pub(super) fn row(&self, kind: ResourceKind, name: &str) -> Option<&Resource> {
        self.rows.iter().find(|row| row.kind == kind && row.name == name)
    }
}

/// A source of evidence that could not be read: nothing is decided about its resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadableSource {
    /// Name of the source.
    pub part: &'static str,
    /// Error that prevented it.
    pub error: String,
}

impl UnreadableSource {
    pub(super) fn of(part: &'static str, error: &(dyn std::error::Error + 'static)) -> Self {
        Self { part, error: report::chain(error) }
    }
}

/// All evidence of a pass.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub(super) candidates: Vec<Candidate>,
    /// Those of these runs that the store knows.
    pub(super) runs: BTreeMap<RunId, StoredRun>,
    pub(super) unreadable: Vec<UnreadableSource>,
}

impl Evidence {
    pub(super) async fn gather(reaper: &Reaper) -> Self {
        let mut unreadable = Vec::new();
        let inventory = Inventory::list(reaper, &mut unreadable).await;
        match Self::compare(&reaper.store, &inventory).await {
            Ok(evidence) => Self { unreadable, ..evidence },
            Err(error) => {
                unreadable.push(UnreadableSource::of("store", &error));
                Self { unreadable, ..Self::default() }
            }
        }
    }

    /// Compares the existing resources with the rows of the store.
    async fn compare(store: &Store, inventory: &Inventory) -> Result<Self, store::Error> {
        // Read before the rows of runs: a warm container that a run takes meanwhile is seen here or there.
        let pool = store.pool().await?;
        let left = store.left().await?;
        let mut runs = going_on(store).await?;
        let mut candidates = Vec::new();
        for found in inventory.containers.iter().flatten() {
            if pool.iter().any(|pooled| pooled.warm.container == found.name) {
                continue;
            }
            let run = match found.run() {
                Some(run) => RunId::parse(run).ok(),
                None => owner(store, &left, ResourceKind::Container, &found.name).await?,
            };
            candidates.push(Candidate::new(FoundResource::Container(found.clone()), run));
        }
        for pooled in &pool {
            // A container whose row says that it is gone exists only if it came late.
            if pooled.stage != PoolStage::Gone || inventory.has_part_of(&pooled.warm) {
                candidates.push(Candidate::new(FoundResource::WarmContainer(pooled.clone()), None));
            }
        }
        for grant in inventory.grants.iter().flatten() {
            let run_id = Some(grant.run_id.clone());
            candidates.push(Candidate::new(FoundResource::Grant(grant.clone()), run_id));
        }
        for dir in inventory.dirs.iter().flatten() {
            if pool.iter().any(|pooled| pooled.warm.workspace == dir.id) {
                continue;
            }
            let run = owner(store, &left, ResourceKind::Workspace, dir.id.as_str()).await?;
            candidates.push(Candidate::new(FoundResource::Workspace(dir.clone()), run));
        }
        read_rows(store, &candidates, &left, &mut runs).await?;
        for row in left {
            let Ok(run) = RunId::parse(&row.run_id) else { continue };
            let over = runs.get(&run).is_some_and(|stored_run| stored_run.state.is_final());
            if over && inventory.is_missing(&row) {
                candidates.push(Candidate::new(FoundResource::Row(row), Some(run)));
            }
        }
        Ok(Self { candidates, runs, unreadable: Vec::new() })
    }
}

/// Returns all runs that go on, without the rows of their resources.
async fn going_on(store: &Store) -> Result<BTreeMap<RunId, StoredRun>, store::Error> {
    let mut filter = Filter { states: GOING_ON.to_vec(), ..Filter::default() };
    let mut runs = BTreeMap::new();
    loop {
        let page = store.list(&filter, PAGE_SIZE).await?;
        runs.extend(page.runs.into_iter().map(|run| (run.run_id.clone(), StoredRun::new(&run, Vec::new()))));
        match page.next {
            Some(next) => filter.before = Some(next),
            None => return Ok(runs),
        }
    }
}

/// Returns the run that has a resource of this kind and name among its rows.
async fn owner(
    store: &Store,
    left: &[Resource],
    kind: ResourceKind,
    name: &str,
) -> Result<Option<RunId>, store::Error> {
    if let Some(row) = left.iter().find(|row| row.kind == kind && row.name == name) {
        return Ok(RunId::parse(&row.run_id).ok());
    }
    let named = store.named(kind, name).await?;
    Ok(named.first().and_then(|row| RunId::parse(&row.run_id).ok()))
}

/// Reads the rows of the runs that need them: runs that have ended, and runs with a container of an earlier epoch.
async fn read_rows(
    store: &Store,
    candidates: &[Candidate],
    left: &[Resource],
    runs: &mut BTreeMap<RunId, StoredRun>,
) -> Result<(), store::Error> {
    let is_early = |resource: &FoundResource, stored_run: &StoredRun| match resource {
        FoundResource::Container(found) => found.epoch() < stored_run.epoch,
        FoundResource::Grant(_)
        | FoundResource::Workspace(_)
        | FoundResource::WarmContainer(..)
        | FoundResource::Row(_) => false,
    };
    let of_candidates = candidates.iter().filter_map(|Candidate { resource, run_id }| {
        let run_id = run_id.as_ref()?;
        runs.get(run_id).is_none_or(|stored_run| is_early(resource, stored_run)).then(|| run_id.clone())
    });
    let of_rows = left.iter().filter(|row| row.stage != ResourceState::Removed);
    let of_rows =
        of_rows.filter_map(|row| RunId::parse(&row.run_id).ok()).filter(|run| !runs.contains_key(run));
    let needed: BTreeSet<RunId> = of_candidates.chain(of_rows).collect();
    for run_id in needed {
        match store.made_for(&run_id).await {
            Ok((run, rows)) => drop(runs.insert(run_id, StoredRun::new(&run, rows))),
            Err(store::Error::Unknown { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
