//! Gathers the evidence: the existing resources, and their rows in the store. Changes nothing.
//!
//! Resources are listed first, then the store is read. A row is written before its resource is created, so a listed
//! resource without a row had none when it was listed. A run that has ended by then has created nothing since.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime},
};

use platform_core::id::{AgentId, RunId, WorkspaceId};
use runner_docker::Listed;
use runner_files::ListedStage;
use runner_model::lifecycle::{Outcome, State};
use runner_store::{
    self as store, Filter, PoolEntry, PoolStage, Resource, ResourceKind, ResourceState, Run, Store,
};

use super::{
    Reaper,
    inventory::{Grant, Inventory, UnreadableSource},
    workspace_dir::WorkspaceDir,
};

/// Number of runs in a page of the store's list.
const PAGE_SIZE: u32 = 1000;
/// Names of the states of live runs.
const LIVE_STATES: [&str; 6] = [
    State::Queued.name(),
    State::Preparing.name(),
    State::Starting.name(),
    State::Running.name(),
    State::Collecting(Outcome::Failed).name(),
    State::Settling(Outcome::Failed).name(),
];

/// A resource that exists, or should exist by its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FoundResource {
    Container(Listed),
    Grant(Grant),
    Workspace(WorkspaceDir),
    /// Files that a run begins with.
    Files(ListedStage),
    /// A warm container, according to its row.
    WarmContainer(PoolEntry),
    /// A row of an ended run; its resource was not found.
    Row(Resource),
}

impl FoundResource {
    pub(super) const fn kind(&self) -> ResourceKind {
        match self {
            Self::Container(_) | Self::WarmContainer(..) => ResourceKind::Container,
            Self::Grant(_) => ResourceKind::Grant,
            Self::Workspace(_) => ResourceKind::Workspace,
            Self::Files(_) => ResourceKind::Files,
            Self::Row(row) => row.kind,
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Container(found) => &found.name,
            Self::Grant(grant) => grant.run_id.as_str(),
            Self::Workspace(dir) => dir.id.as_str(),
            Self::Files(dir) => dir.run_id.as_str(),
            Self::WarmContainer(entry) => &entry.warm.container,
            Self::Row(row) => &row.name,
        }
    }
}

/// A run as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredRun {
    pub(super) state: State,
    pub(super) epoch: u64,
    pub(super) agent: AgentId,
    /// Rows of all resources that were ever recorded for the run.
    pub(super) rows: Vec<Resource>,
}

/// A resource to judge.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) resource: FoundResource,
    /// Run of the resource, according to its label or its row.
    pub(super) run_id: Option<RunId>,
}

impl Candidate {
    const fn new(resource: FoundResource, run_id: Option<RunId>) -> Self {
        Self { resource, run_id }
    }
}

impl StoredRun {
    pub(super) fn new(run: &Run, rows: Vec<Resource>) -> Self {
        Self { state: run.state, epoch: run.epoch, agent: run.agent.clone(), rows }
    }

    /// Treats the row of workspace `id` as that of a removed one.
    pub(super) fn forget_workspace(&mut self, id: &WorkspaceId) {
        let is_its = |row: &&mut Resource| row.kind == ResourceKind::Workspace && row.name == id.as_str();
        self.rows.iter_mut().filter(is_its).for_each(|row| row.stage = ResourceState::Removed);
    }

    /// Returns the time since which the resource of `row` is kept.
    pub(super) fn kept_since(&self, row: &Resource) -> SystemTime {
        let since = Duration::from_millis(u64::try_from(row.changed.0).unwrap_or_default());
        SystemTime::UNIX_EPOCH + since
    }

    /// Returns the row of a resource.
    pub(super) fn row(&self, kind: ResourceKind, name: &str) -> Option<&Resource> {
        self.rows.iter().find(|row| row.kind == kind && row.name == name)
    }
}

/// All evidence of a pass.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub(super) candidates: Vec<Candidate>,
    /// Runs of the candidates, as far as the store has them.
    pub(super) runs: BTreeMap<RunId, StoredRun>,
    pub(super) unreadable: Vec<UnreadableSource>,
}

impl Evidence {
    pub(super) async fn gather(reaper: &Reaper) -> Self {
        let mut unreadable = Vec::new();
        let inventory = Inventory::list(reaper, &mut unreadable).await;
        match Self::assign(&reaper.store, &inventory).await {
            Ok(evidence) => Self { unreadable, ..evidence },
            Err(error) => {
                unreadable.push(UnreadableSource::of("store", &error));
                Self { unreadable, ..Self::default() }
            }
        }
    }

    /// Assigns the existing resources to the rows of the store.
    async fn assign(store: &Store, inventory: &Inventory) -> Result<Self, store::Error> {
        // Read before the rows of runs, so that a warm container that a run claims meanwhile appears in at least one of
        // them.
        let pool = store.pool().await?;
        let open_rows = store.unremoved_resources().await?;
        let mut runs = live_runs(store).await?;
        let mut candidates = Vec::new();
        for found in inventory.containers.iter().flatten() {
            if pool.iter().any(|entry| entry.warm.container == found.name) {
                continue;
            }
            let run = match found.run() {
                Some(run) => RunId::parse(run).ok(),
                None => find_owner(store, &open_rows, ResourceKind::Container, &found.name).await?,
            };
            candidates.push(Candidate::new(FoundResource::Container(found.clone()), run));
        }
        for entry in &pool {
            // A container that is removed according to its row can exist only if it was created late.
            if entry.stage != PoolStage::Gone || inventory.has_part_of(&entry.warm) {
                candidates.push(Candidate::new(FoundResource::WarmContainer(entry.clone()), None));
            }
        }
        for grant in inventory.grants.iter().flatten() {
            let run_id = Some(grant.run_id.clone());
            candidates.push(Candidate::new(FoundResource::Grant(grant.clone()), run_id));
        }
        for dir in inventory.dirs.iter().flatten() {
            if pool.iter().any(|entry| entry.warm.workspace == dir.id) {
                continue;
            }
            let run = find_owner(store, &open_rows, ResourceKind::Workspace, dir.id.as_str()).await?;
            candidates.push(Candidate::new(FoundResource::Workspace(dir.clone()), run));
        }
        for dir in inventory.stages.iter().flatten() {
            let run_id = Some(dir.run_id.clone());
            candidates.push(Candidate::new(FoundResource::Files(dir.clone()), run_id));
        }
        read_rows(store, &candidates, &open_rows, &mut runs).await?;
        for row in open_rows {
            let Ok(run) = RunId::parse(&row.run_id) else { continue };
            let has_ended = runs.get(&run).is_some_and(|stored_run| stored_run.state.is_final());
            if has_ended && inventory.is_missing(&row) {
                candidates.push(Candidate::new(FoundResource::Row(row), Some(run)));
            }
        }
        Ok(Self { candidates, runs, unreadable: Vec::new() })
    }
}

/// Returns all live runs, without the rows of their resources.
async fn live_runs(store: &Store) -> Result<BTreeMap<RunId, StoredRun>, store::Error> {
    let mut filter = Filter { states: LIVE_STATES.to_vec(), ..Filter::default() };
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
async fn find_owner(
    store: &Store,
    open_rows: &[Resource],
    kind: ResourceKind,
    name: &str,
) -> Result<Option<RunId>, store::Error> {
    if let Some(row) = open_rows.iter().find(|row| row.kind == kind && row.name == name) {
        return Ok(RunId::parse(&row.run_id).ok());
    }
    let rows = store.resources_named(kind, name).await?;
    Ok(rows.first().and_then(|row| RunId::parse(&row.run_id).ok()))
}

/// Reads the rows of the runs that need them: runs that have ended, and runs with a container of an earlier epoch.
async fn read_rows(
    store: &Store,
    candidates: &[Candidate],
    open_rows: &[Resource],
    runs: &mut BTreeMap<RunId, StoredRun>,
) -> Result<(), store::Error> {
    let is_early = |resource: &FoundResource, stored_run: &StoredRun| match resource {
        FoundResource::Container(found) => found.epoch() < stored_run.epoch,
        FoundResource::Grant(_)
        | FoundResource::Workspace(_)
        | FoundResource::Files(_)
        | FoundResource::WarmContainer(..)
        | FoundResource::Row(_) => false,
    };
    let of_candidates = candidates.iter().filter_map(|Candidate { resource, run_id }| {
        let run_id = run_id.as_ref()?;
        runs.get(run_id).is_none_or(|stored_run| is_early(resource, stored_run)).then(|| run_id.clone())
    });
    let of_rows = open_rows.iter().filter(|row| row.stage != ResourceState::Removed);
    let of_rows =
        of_rows.filter_map(|row| RunId::parse(&row.run_id).ok()).filter(|run| !runs.contains_key(run));
    let needed: BTreeSet<RunId> = of_candidates.chain(of_rows).collect();
    for run_id in needed {
        match store.run_with_resources(&run_id).await {
            Ok((run, rows)) => drop(runs.insert(run_id, StoredRun::new(&run, rows))),
            Err(store::Error::Unknown { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
