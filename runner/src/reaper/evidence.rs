//! What is there and what the store says of it. Only looks.
//!
//! First what is there, then the store: a row is written before its thing is made, so what has no row now had none when
//! it was seen. And a run that has ended by now made nothing since.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use platform_core::{
    control::RunState,
    id::{RunId, SocketDirName},
};
use platform_runtime::report;
use serde::Serialize;

use super::{
    Reaper,
    space::{self, Space},
};
use crate::{
    lifecycle::{Outcome, State},
    sandbox::docker::{Docker, Listed},
    store::{self, Filter, Kind, PoolStage, Pooled, Resource, Run, Spare, Stage, Store},
};

/// Runs that are read at once.
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
    /// The latest one the proxy was told.
    pub(super) epoch: u64,
    /// Directory of its socket, as long as that is there.
    pub(super) socket_dir: Option<SocketDirName>,
}

/// Something that is there; or was to be, by its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Thing {
    Container(Listed),
    Grant(Grant),
    Workspace(Space),
    /// What waits for a run, by its row.
    Spare(Pooled),
    /// A row of a run that has ended, of which nothing was found.
    Row(Resource),
}

impl Thing {
    pub(super) const fn kind(&self) -> Kind {
        match self {
            Self::Container(_) | Self::Spare(..) => Kind::Container,
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
            Self::Spare(pooled) => &pooled.spare.container,
            Self::Row(row) => &row.name,
        }
    }
}

/// What the store knows of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) state: State,
    pub(super) epoch: u64,
    /// Everything that was ever made for it.
    pub(super) rows: Vec<Resource>,
}

impl From<(Run, Vec<Resource>)> for Standing {
    fn from((run, rows): (Run, Vec<Resource>)) -> Self {
        Self { state: run.state, epoch: run.epoch, rows }
    }
}

impl Standing {
    /// The row of a thing.
    pub(super) fn row(&self, kind: Kind, name: &str) -> Option<&Resource> {
        self.rows.iter().find(|row| row.kind == kind && row.name == name)
    }
}

/// A part of the world that could not be looked at: nothing is decided about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Blind {
    /// Which.
    pub(crate) part: &'static str,
    /// Why not.
    pub(crate) error: String,
}

impl Blind {
    fn of(part: &'static str, error: &(dyn std::error::Error + 'static)) -> Self {
        Self { part, error: report::chain(error) }
    }
}

/// Everything that was seen.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Each with the run it belongs to by its own word, or by its row.
    pub(super) things: Vec<(Thing, Option<RunId>)>,
    /// Of the runs of these things those that the store knows.
    pub(super) runs: BTreeMap<RunId, Standing>,
    pub(super) blind: Vec<Blind>,
}

/// What was seen of each part; nothing of one that could not be looked at.
struct Seen {
    /// With our label.
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
        // Before the rows of runs: what a run takes meanwhile is seen here or there.
        let pool = store.pool().await?;
        let left = store.left().await?;
        let mut runs = going_on(store).await?;
        let mut things: Vec<_> = Vec::new();
        for found in seen.containers.iter().flatten() {
            if pool.iter().any(|pooled| pooled.spare.container == found.name) {
                continue;
            }
            let run = match found.run() {
                Some(run) => RunId::parse(run).ok(),
                None => owner(store, &left, (Kind::Container, &found.name)).await?,
            };
            things.push((Thing::Container(found.clone()), run));
        }
        for pooled in &pool {
            // What is gone is there only if it came late.
            if pooled.stage != PoolStage::Gone || seen.has_part_of(&pooled.spare) {
                things.push((Thing::Spare(pooled.clone()), None));
            }
        }
        for grant in seen.grants.iter().flatten() {
            things.push((Thing::Grant(grant.clone()), Some(grant.run.clone())));
        }
        for space in seen.spaces.iter().flatten() {
            if pool.iter().any(|pooled| pooled.spare.workspace == space.id) {
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
            // Without Docker nobody knows who uses one.
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

    /// Returns whether a part of what waits for a run was seen.
    fn has_part_of(&self, Spare { container, workspace, .. }: &Spare) -> bool {
        let mut containers = self.containers.iter().flatten();
        let mut spaces = self.spaces.iter().flatten();
        containers.any(|found| found.name == *container) || spaces.any(|space| space.id == *workspace)
    }

    /// Whether the place where a thing would be was looked at, and it is not there.
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
            // What is left of a turn at a gateway can call nobody: the grant has its own row.
            Kind::Session | Kind::Turn => true,
        }
    }
}

/// All containers there are.
pub(super) async fn containers(socket: &Path) -> Result<Vec<Listed>, crate::sandbox::docker::Error> {
    Docker::connect(socket).await?.containers().await
}

/// The same, with who has them mounted, or a part of them: their ids are in no other path.
pub(super) fn with_users(mut spaces: Vec<Space>, containers: &[Listed]) -> Vec<Space> {
    for space in &mut spaces {
        let is_it = |source: &PathBuf| source.iter().any(|part| part == space.id.as_str());
        let uses = |found: &&Listed| found.mounts.iter().any(|(source, _)| is_it(source));
        space.users = containers.iter().filter(uses).map(|found| found.name.clone()).collect();
    }
    spaces
}

/// All runs that go on, without what was made for them.
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

/// The run that has a thing of this kind and name among its rows.
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

/// Reads what was made for the runs of which that matters: those that have ended, and those of which a container of an
/// earlier epoch is there.
async fn read_rows(
    store: &Store,
    things: &[(Thing, Option<RunId>)],
    left: &[Resource],
    runs: &mut BTreeMap<RunId, Standing>,
) -> Result<(), store::Error> {
    let is_early = |thing: &Thing, standing: &Standing| match thing {
        Thing::Container(found) => found.epoch() < standing.epoch,
        Thing::Grant(_) | Thing::Workspace(_) | Thing::Spare(..) | Thing::Row(_) => false,
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
