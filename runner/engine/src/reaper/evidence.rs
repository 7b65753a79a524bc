//! Gathers the evidence: the existing resources, and the store's knowledge of them. Changes nothing.
//!
//! Resources are listed first, then the store is read. A row is written before its resource is made, so one without a
//! row now had none when it was seen. A run that has ended by now has made nothing since.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use platform_core::{
    control::RunState,
    id::{RunId, SocketDirName},
};
use platform_runtime::report;
use runner_docker::{Docker, Listed};
use runner_model::lifecycle::{Outcome, State};
use runner_store::{
    self as store, Filter, Kind, PoolStage, Pooled, Resource, Run, Stage, Store, WarmContainer,
};
use serde::Serialize;

use super::{
    Reaper,
    space::{self, Space},
};

/// Number of runs in a page of the store's list.
const PAGE: u32 = 1000;
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
    pub(super) run: RunId,
    pub(super) state: RunState,
    /// Latest epoch the proxy has received.
    pub(super) epoch: u64,
    /// Directory of its socket, as long as that exists.
    pub(super) socket_dir: Option<SocketDirName>,
}

/// A resource that exists, or should exist by its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Thing {
    Container(Listed),
    Grant(Grant),
    Workspace(Space),
    /// Warm container, by its row.
    WarmContainer(Pooled),
    /// A row of a run that has ended, whose resource was not found.
    Row(Resource),
}

impl Thing {
    pub(super) const fn kind(&self) -> Kind {
        match self {
            Self::Container(_) | Self::WarmContainer(..) => Kind::Container,
            Self::Grant(_) => Kind::Grant,
            Self::Workspace(_) => Kind::Workspace,
            Self::Row(row) => row.kind,
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Container(found) => &found.name,
            Self::Grant(grant) => grant.run.as_str(),
            Self::Workspace(space) => space.id.as_str(),
            Self::WarmContainer(pooled) => &pooled.warm.container,
            Self::Row(row) => &row.name,
        }
    }
}

/// The store's knowledge of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) state: State,
    pub(super) epoch: u64,
    /// Rows of all resources that were ever made for it.
    pub(super) rows: Vec<Resource>,
}

impl From<(Run, Vec<Resource>)> for Standing {
    fn from((run, rows): (Run, Vec<Resource>)) -> Self {
        Self { state: run.state, epoch: run.epoch, rows }
    }
}

impl Standing {
    /// Returns the row of a resource.
    pub(super) fn row(&self, kind: Kind, name: &str) -> Option<&Resource> {
        self.rows.iter().find(|row| row.kind == kind && row.name == name)
    }
}

/// A source of evidence that could not be read: nothing is decided about its resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Blind {
    /// Name of the source.
    pub part: &'static str,
    /// Error that prevented it.
    pub error: String,
}

impl Blind {
    fn of(part: &'static str, error: &(dyn std::error::Error + 'static)) -> Self {
        Self { part, error: report::chain(error) }
    }
}

/// All evidence of a pass.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Resources, each with its run by its own label, or by its row.
    pub(super) things: Vec<(Thing, Option<RunId>)>,
    /// Those of these runs that the store knows.
    pub(super) runs: BTreeMap<RunId, Standing>,
    pub(super) blind: Vec<Blind>,
}

/// Resources seen in each source; `None` for a source that could not be read.
struct Seen {
    /// Containers with our label.
    containers: Option<Vec<Listed>>,
    grants: Option<Vec<Grant>>,
    spaces: Option<Vec<Space>>,
}

impl Evidence {
    pub(super) async fn look(reaper: &Reaper) -> Self {
        let mut blind = Vec::new();
        let seen = Seen::look(reaper, &mut blind).await;
        match Self::compare(reaper, seen).await {
            Ok((things, runs)) => Self { things, runs, blind },
            Err(error) => {
                blind.push(Blind::of("store", &error));
                Self { blind, ..Self::default() }
            }
        }
    }

    async fn compare(
        reaper: &Reaper,
        seen: Seen,
    ) -> Result<(Vec<(Thing, Option<RunId>)>, BTreeMap<RunId, Standing>), store::Error> {
        let store = &reaper.store;
        // Read before the rows of runs: a warm container that a run takes meanwhile is seen here or there.
        let pool = store.pool().await?;
        let left = store.left().await?;
        let mut runs = going_on(store).await?;
        let mut things: Vec<_> = Vec::new();
        for found in seen.containers.iter().flatten() {
            if pool.iter().any(|pooled| pooled.warm.container == found.name) {
                continue;
            }
            let run = match found.run() {
                Some(run) => RunId::parse(run).ok(),
                None => owner(store, &left, (Kind::Container, &found.name)).await?,
            };
            things.push((Thing::Container(found.clone()), run));
        }
        for pooled in &pool {
            // A container whose row says that it is gone exists only if it came late.
            if pooled.stage != PoolStage::Gone || seen.has_part_of(&pooled.warm) {
                things.push((Thing::WarmContainer(pooled.clone()), None));
            }
        }
        for grant in seen.grants.iter().flatten() {
            things.push((Thing::Grant(grant.clone()), Some(grant.run.clone())));
        }
        for space in seen.spaces.iter().flatten() {
            if pool.iter().any(|pooled| pooled.warm.workspace == space.id) {
                continue;
            }
            let run = owner(store, &left, (Kind::Workspace, space.id.as_str())).await?;
            things.push((Thing::Workspace(space.clone()), run));
        }
        read_rows(store, &things, &left, &mut runs).await?;
        for row in left {
            let Ok(run) = RunId::parse(&row.run) else { continue };
            let over = runs.get(&run).is_some_and(|standing| standing.state.is_final());
            if over && seen.is_missing(&row) {
                things.push((Thing::Row(row), Some(run)));
            }
        }
        Ok((things, runs))
    }
}

impl Seen {
    async fn look(reaper: &Reaper, blind: &mut Vec<Blind>) -> Self {
        let containers = containers(&reaper.sandbox.docker_socket).await;
        let grants = reaper.data_plane.runs().await;
        let spaces = match &containers {
            Ok(containers) => {
                space::list(&reaper.sandbox.workspace_dir).map(|spaces| with_users(spaces, containers))
            }
            // Without Docker the users of a workspace are unknown.
            Err(_) => Ok(Vec::new()),
        };
        let docker_is_there = containers.is_ok();
        let ours = |found: &Listed| found.installation() == Some(reaper.sandbox.installation.as_str());
        let containers = containers.map(|all| all.into_iter().filter(ours).collect());
        let containers = containers.map_err(|error| blind.push(Blind::of("docker", &error))).ok();
        let grants = grants.map_err(|error| blind.push(Blind::of("proxy", &error))).ok();
        let spaces = spaces.map_err(|error| blind.push(Blind::of("workspaces", &error))).ok();
        Self {
            containers,
            grants: grants.map(|views| {
                let of = |view: platform_core::control::RunView| Grant {
                    run: view.grant.run_id,
                    state: view.state,
                    epoch: view.epoch,
                    socket_dir: view.socket.map(|socket| socket.name),
                };
                views.into_iter().map(of).collect()
            }),
            spaces: spaces.filter(|_| docker_is_there),
        }
    }

    /// Returns whether the container or the workspace of a warm container was seen.
    fn has_part_of(&self, WarmContainer { container, workspace, .. }: &WarmContainer) -> bool {
        let mut containers = self.containers.iter().flatten();
        let mut spaces = self.spaces.iter().flatten();
        containers.any(|found| found.name == *container) || spaces.any(|space| space.id == *workspace)
    }

    /// Returns whether the resource is missing in a source that could be read.
    fn is_missing(&self, row: &Resource) -> bool {
        match row.kind {
            Kind::Container => {
                let containers = self.containers.as_ref();
                containers.is_some_and(|all| all.iter().all(|found| found.name != row.name))
            }
            // A listener comes and goes with its grant.
            Kind::Grant | Kind::Listener => {
                let grants = self.grants.as_ref();
                grants.is_some_and(|all| all.iter().all(|grant| grant.run.as_str() != row.run))
            }
            Kind::Workspace => {
                let spaces = self.spaces.as_ref();
                spaces.is_some_and(|all| all.iter().all(|space| space.id.as_str() != row.name))
            }
            // None is ever made.
            Kind::Volume => false,
            // The rest of a turn at a gateway can make no call: the grant has its own row.
            Kind::Session | Kind::Turn => true,
        }
    }
}

/// Returns all containers.
pub(super) async fn containers(socket: &Path) -> Result<Vec<Listed>, runner_docker::Error> {
    Docker::connect(socket).await?.containers().await
}

/// Returns `spaces` with the containers that mount them, or a part of them: a workspace's id is in no other path.
pub(super) fn with_users(mut spaces: Vec<Space>, containers: &[Listed]) -> Vec<Space> {
    for space in &mut spaces {
        let is_it = |source: &PathBuf| source.iter().any(|part| part == space.id.as_str());
        let uses = |found: &&Listed| found.mounts.iter().any(|(source, _)| is_it(source));
        space.users = containers.iter().filter(uses).map(|found| found.name.clone()).collect();
    }
    spaces
}

/// Returns all runs that go on, without the rows of their resources.
async fn going_on(store: &Store) -> Result<BTreeMap<RunId, Standing>, store::Error> {
    let mut filter = Filter { states: GOING_ON.to_vec(), ..Filter::default() };
    let mut runs = BTreeMap::new();
    loop {
        let page = store.list(&filter, PAGE).await?;
        runs.extend(page.runs.into_iter().map(|run| (run.run.clone(), Standing::from((run, Vec::new())))));
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
    (kind, name): (Kind, &str),
) -> Result<Option<RunId>, store::Error> {
    if let Some(row) = left.iter().find(|row| row.kind == kind && row.name == name) {
        return Ok(RunId::parse(&row.run).ok());
    }
    let named = store.named(kind, name).await?;
    Ok(named.first().and_then(|row| RunId::parse(&row.run).ok()))
}

/// Reads the rows of the runs that need them: runs that have ended, and runs with a container of an earlier epoch.
async fn read_rows(
    store: &Store,
    things: &[(Thing, Option<RunId>)],
    left: &[Resource],
    runs: &mut BTreeMap<RunId, Standing>,
) -> Result<(), store::Error> {
    let is_early = |thing: &Thing, standing: &Standing| match thing {
        Thing::Container(found) => found.epoch() < standing.epoch,
        Thing::Grant(_) | Thing::Workspace(_) | Thing::WarmContainer(..) | Thing::Row(_) => false,
    };
    let of_things = things.iter().filter_map(|(thing, run)| {
        let run = run.as_ref()?;
        runs.get(run).is_none_or(|standing| is_early(thing, standing)).then(|| run.clone())
    });
    let of_rows = left.iter().filter(|row| row.stage != Stage::Removed);
    let of_rows = of_rows.filter_map(|row| RunId::parse(&row.run).ok()).filter(|run| !runs.contains_key(run));
    let matter: BTreeSet<RunId> = of_things.chain(of_rows).collect();
    for run in matter {
        match store.made_for(&run).await {
            Ok(found) => drop(runs.insert(run, found.into())),
            Err(store::Error::Unknown { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
