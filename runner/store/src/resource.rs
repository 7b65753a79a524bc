//! Stores the resources of runs. A row exists before its resource is created, and counts the resource as present until
//! it is certainly gone.

use platform_core::id::RunId;
use serde::Serialize;
use sqlx::any::AnyRow;

use super::{
    Store, Tx,
    error::{Error, failed},
    row::{Run, count, number, optional, parsed, storable, text},
    time::UnixMillis,
};

/// Kind of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// A workspace on the host, by its id.
    Workspace,
    /// A run's registration at the data plane, by the run's id.
    Grant,
    /// A socket at the data plane for this run alone, by its directory's name.
    Listener,
    /// A container, by its name.
    Container,
    /// A volume, by its name.
    Volume,
    /// Files that the run begins with, staged on the host by the run's id.
    Files,
    /// A session of a gateway, by the gateway's id and the session's name there.
    Session,
    /// A turn of that session, by the start of the gateway that receives it. Its state becomes `Made` once the gateway
    /// has accepted it.
    Turn,
}

/// State of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceState {
    /// The resource is about to be created: it may exist.
    Wanted,
    /// The resource exists.
    Made,
    /// The resource exists, and its order requested that it stays after the run.
    Kept,
    /// The resource was removed, or never existed.
    Removed,
}

/// Resource of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resource {
    /// Id of the run.
    #[serde(skip)]
    pub run_id: String,
    /// Kind of the resource.
    pub kind: ResourceKind,
    /// Name of the resource.
    pub name: String,
    /// Epoch in which the resource was wanted last.
    pub epoch: u64,
    /// Process that wanted the resource, which is on the same host.
    pub owner: String,
    /// State of the resource.
    pub stage: ResourceState,
    /// Time of the last change.
    #[serde(rename = "changed_ms")]
    pub changed: UnixMillis,
}

/// Change of a resource, planned or done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceChange {
    /// Kind of the resource.
    pub kind: ResourceKind,
    /// Name of the resource.
    pub name: String,
    /// State that the resource reaches.
    pub stage: ResourceState,
}

impl ResourceKind {
    /// All kinds, in the order of their declaration.
    pub const ALL: [Self; 8] = [
        Self::Workspace,
        Self::Grant,
        Self::Listener,
        Self::Container,
        Self::Volume,
        Self::Files,
        Self::Session,
        Self::Turn,
    ];

    /// Returns the name, as it is stored and shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Grant => "grant",
            Self::Listener => "listener",
            Self::Container => "container",
            Self::Volume => "volume",
            Self::Files => "files",
            Self::Session => "session",
            Self::Turn => "turn",
        }
    }
}

impl ResourceState {
    const ALL: [Self; 4] = [Self::Wanted, Self::Made, Self::Kept, Self::Removed];

    /// Returns the name, as it is stored and shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wanted => "wanted",
            Self::Made => "made",
            Self::Kept => "kept",
            Self::Removed => "removed",
        }
    }
}

impl ResourceChange {
    /// Returns the change of a resource that is about to be created.
    #[must_use]
    pub fn wanted(kind: ResourceKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), stage: ResourceState::Wanted }
    }

    /// Returns a change of the same resource to the state `stage`.
    #[must_use]
    pub fn to(&self, stage: ResourceState) -> Self {
        Self { stage, ..self.clone() }
    }
}

/// Columns of a resource.
macro_rules! resource_columns {
    () => {
        "run, kind, name, epoch, owner, state, changed"
    };
}

/// Returns the state of a resource in a row that may have none.
pub(super) fn state_of(row: &AnyRow) -> Result<Option<ResourceState>, Error> {
    optional(row, "state", |text| ResourceState::ALL.into_iter().find(|stage| stage.name() == text))
}

const WANT: &str = "INSERT INTO resources (run, kind, name, epoch, owner, state, changed) \
     VALUES ($1, $2, $3, $4, $5, 'wanted', $6) ON CONFLICT (run, kind, name) \
     DO UPDATE SET state = 'wanted', epoch = $4, owner = $5, changed = $6";
const CHANGE: &str =
    "UPDATE resources SET state = $1, changed = $2 WHERE run = $3 AND kind = $4 AND name = $5";
const OF_RUN: &str =
    concat!("SELECT ", resource_columns!(), " FROM resources WHERE run = $1 ORDER BY changed, kind, name");
const LEFT: &str = concat!(
    "SELECT ",
    resource_columns!(),
    " FROM resources WHERE state <> 'removed' \
     AND run IN (SELECT run FROM runs WHERE installation = $1) ORDER BY changed, run, kind, name"
);
const NAMED: &str = concat!(
    "SELECT ",
    resource_columns!(),
    " FROM resources WHERE kind = $1 AND name = $2 \
     AND run IN (SELECT run FROM runs WHERE installation = $3) ORDER BY changed, run"
);
const REMOVED: &str = "UPDATE resources SET state = 'removed', changed = $1 \
     WHERE run = $2 AND kind = $3 AND name = $4 AND epoch = $5 \
     AND run IN (SELECT run FROM runs WHERE installation = $6 AND ended IS NOT NULL)";

impl Resource {
    fn read(row: &AnyRow) -> Result<Self, Error> {
        Ok(Self {
            run_id: text(row, "run")?,
            kind: parsed(row, "kind", |text| ResourceKind::ALL.into_iter().find(|kind| kind.name() == text))?,
            name: text(row, "name")?,
            epoch: count(row, "epoch")?,
            owner: text(row, "owner")?,
            stage: parsed(row, "state", |text| {
                ResourceState::ALL.into_iter().find(|stage| stage.name() == text)
            })?,
            changed: UnixMillis(number(row, "changed")?),
        })
    }
}

impl Store {
    /// Returns the resources of all runs that may still exist.
    pub async fn unremoved_resources(&self) -> Result<Vec<Resource>, Error> {
        self.retry(async || {
            let rows = sqlx::query(LEFT).bind(self.installation.as_str()).fetch_all(&self.pool).await;
            rows.map_err(failed("list resources"))?.iter().map(Resource::read).collect()
        })
        .await
    }

    /// Returns every resource of this kind and name, of any run; includes removed ones.
    pub async fn resources_named(&self, kind: ResourceKind, name: &str) -> Result<Vec<Resource>, Error> {
        self.retry(async || {
            let query = sqlx::query(NAMED).bind(kind.name()).bind(name).bind(self.installation.as_str());
            let rows = query.fetch_all(&self.pool).await;
            rows.map_err(failed("look for resources"))?.iter().map(Resource::read).collect()
        })
        .await
    }

    /// Returns one snapshot of the run `run_id` and all its resources; includes removed ones.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the run does not exist.
    pub async fn run_with_resources(&self, run_id: &RunId) -> Result<(Run, Vec<Resource>), Error> {
        self.read(async |mut tx| {
            let run = self.find(&mut tx, run_id).await?;
            let resources = tx.resources(run_id.as_str()).await?;
            tx.finish("list resources", (run, resources)).await
        })
        .await
    }

    /// Records that `resource` was removed. Needs no lease, because an ended run has no holder. After a restart the run
    /// has a holder again, and newly wanted resources have another epoch.
    ///
    /// # Errors
    /// [`Error::NotOver`] if the run has not ended, or has wanted the resource again.
    pub async fn mark_removed(&self, resource: &Resource) -> Result<(), Error> {
        self.write(async |mut tx| {
            let query = sqlx::query(REMOVED).bind(tx.now).bind(&resource.run_id).bind(resource.kind.name());
            let query = query.bind(&resource.name).bind(i64::try_from(resource.epoch).unwrap_or(i64::MAX));
            let changed = query.bind(self.installation.as_str()).execute(tx.connection()).await;
            if changed.map_err(failed("record a removed resource"))?.rows_affected() == 0 {
                return Err(Error::NotOver {
                    run_id: resource.run_id.clone(),
                    kind: resource.kind.name(),
                    name: resource.name.clone(),
                });
            }
            self.check_host(&mut tx).await?;
            tx.commit("record a removed resource").await
        })
        .await
    }
}

impl Tx {
    /// Returns all resources of the run `run_id`; includes removed ones.
    pub(super) async fn resources(&mut self, run_id: &str) -> Result<Vec<Resource>, Error> {
        let rows = sqlx::query(OF_RUN).bind(run_id).fetch_all(self.connection()).await;
        rows.map_err(failed("list resources"))?.iter().map(Resource::read).collect()
    }

    /// Stores `change` of a resource of `run`.
    pub(super) async fn store_change(&mut self, run: &Run, change: &ResourceChange) -> Result<(), Error> {
        let kind = change.kind.name();
        let name = storable(&change.name);
        let now = self.now;
        let query = match change.stage {
            ResourceState::Wanted if !run.state.can_allocate() => {
                return Err(Error::NotMaking { run_id: run.run_id.clone(), state: run.state });
            }
            ResourceState::Wanted => sqlx::query(WANT)
                .bind(run.run_id.as_str())
                .bind(kind)
                .bind(&name)
                .bind(i64::try_from(run.epoch).unwrap_or(i64::MAX))
                .bind(run.lease.as_ref().map(|lease| lease.owner.as_str()).unwrap_or_default())
                .bind(now),
            stage => sqlx::query(CHANGE)
                .bind(stage.name())
                .bind(now)
                .bind(run.run_id.as_str())
                .bind(kind)
                .bind(&name),
        };
        let changed = query.execute(self.connection()).await.map_err(failed("record a resource"))?;
        if changed.rows_affected() == 0 {
            return Err(Error::NotWanted { run_id: run.run_id.clone(), kind, name });
        }
        match (change.kind, change.stage) {
            (ResourceKind::Session, ResourceState::Wanted) => {
                self.name_gateway_agent(run.run_id.as_str(), &name).await
            }
            _ => Ok(()),
        }
    }
}
