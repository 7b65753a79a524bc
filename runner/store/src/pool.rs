//! Keeps the warm containers, which wait for a run. A row exists before any part of its container is created. It stays
//! until the last part is removed or a run has claimed the container.
//!
//! A container belongs to one process, which keeps it by a lease. Any run may claim a ready one, in the step in which
//! it begins to prepare. The parts then become the run's resources, and the row here is removed.

use platform_core::{
    id::{AgentId, SocketDirName, WorkspaceId},
    limit::Millis,
};
use sqlx::any::AnyRow;

use super::{
    ResourceChange, ResourceKind, Store, Tx, UnixMillis, Worker,
    error::{Error, failed},
    row::{number, parsed, text},
};

/// Container that waits for a run, with its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmContainer {
    /// Name of the container.
    pub container: String,
    /// Template that the container was created from; it fits runs with the same template.
    pub template: String,
    /// Agent that the container was created for.
    pub agent: AgentId,
    /// Workspace of the container.
    pub workspace: WorkspaceId,
    /// Socket directory of the container.
    pub listener: SocketDirName,
}

/// Row of a warm container, present or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolEntry {
    /// The container and its parts.
    pub warm: WarmContainer,
    /// Process that created the container.
    pub owner: String,
    /// Stage that the container has reached.
    pub stage: PoolStage,
    /// True if the lease has expired: the process is gone, or hangs.
    pub lease_expired: bool,
    /// Time of the last change.
    pub changed: UnixMillis,
}

/// Stage of a warm container. A run may claim it only while it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolStage {
    /// The container is about to be created: parts of it may exist.
    Wanted,
    /// The container waits for a run.
    Ready,
    /// The container is being removed: no run can claim it.
    Leaving,
    /// The container was removed. A delayed process may have created a part of it since.
    Gone,
}

impl PoolStage {
    const ALL: [Self; 4] = [Self::Wanted, Self::Ready, Self::Leaving, Self::Gone];

    /// Returns the stage's name, as it is stored and shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wanted => "wanted",
            Self::Ready => "ready",
            Self::Leaving => "leaving",
            Self::Gone => "gone",
        }
    }
}

/// Columns of a [`PoolEntry`].
macro_rules! pool_columns {
    () => {
        "name, template, agent, workspace, listener, owner, state, lease_until, changed"
    };
}

const WANT: &str = "INSERT INTO pool (name, installation, template, agent, workspace, listener, owner, state, lease_until, changed) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, 'wanted', $8, $9) ON CONFLICT (name) DO NOTHING";
const READY: &str = "UPDATE pool SET state = 'ready', changed = $1 WHERE name = $2 AND owner = $3 \
     AND state IN ('wanted', 'ready')";
const KEEP: &str = "UPDATE pool SET lease_until = $1 WHERE owner = $2 AND state IN ('wanted', 'ready')";
const LEAVE: &str = "UPDATE pool SET state = 'leaving', changed = $1 WHERE name = $2 \
     AND (owner = $3 OR lease_until < $1 OR state = 'gone')";
const GONE: &str =
    "UPDATE pool SET state = 'gone', changed = $1 WHERE name = $2 AND state IN ('leaving', 'gone')";
const FORGET: &str = "DELETE FROM pool WHERE installation = $1 AND state = 'gone' AND changed < $2";
const ALL: &str =
    concat!("SELECT ", pool_columns!(), " FROM pool WHERE installation = $1 ORDER BY changed, name");
const FITS: &str = concat!(
    "SELECT ",
    pool_columns!(),
    " FROM pool WHERE installation = $1 AND template = $2 AND state = 'ready' \
     AND lease_until >= $3 ORDER BY changed, name LIMIT 32"
);
const TAKE: &str = "DELETE FROM pool WHERE name = $1 AND installation = $2 AND state = 'ready'";

/// Time for which the row of a removed container is kept. A process that is delayed for longer cannot reach Docker any
/// more.
const GONE_RETENTION: Millis = Millis::seconds(3600);

impl WarmContainer {
    /// Returns the changes that make the parts of this container resources of the run that claims it.
    #[must_use]
    pub fn resource_changes(&self) -> [ResourceChange; 3] {
        [
            ResourceChange::wanted(ResourceKind::Workspace, self.workspace.as_str()),
            ResourceChange::wanted(ResourceKind::Listener, self.listener.as_str()),
            ResourceChange::wanted(ResourceKind::Container, self.container.as_str()),
        ]
    }
}

impl PoolEntry {
    fn read(row: &AnyRow, now: i64) -> Result<Self, Error> {
        let warm = WarmContainer {
            container: text(row, "name")?,
            template: text(row, "template")?,
            agent: parsed(row, "agent", |text| AgentId::parse(text).ok())?,
            workspace: parsed(row, "workspace", |text| WorkspaceId::parse(text).ok())?,
            listener: parsed(row, "listener", |text| SocketDirName::parse(text).ok())?,
        };
        Ok(Self {
            warm,
            owner: text(row, "owner")?,
            stage: parsed(row, "state", |name| {
                PoolStage::ALL.into_iter().find(|stage| stage.name() == name)
            })?,
            lease_expired: number(row, "lease_until")? < now,
            changed: UnixMillis(number(row, "changed")?),
        })
    }
}

impl Store {
    /// Records that `worker` is about to create `warm`, with a lease of `span` from now. A second call changes nothing.
    pub async fn want_warm(&self, warm: &WarmContainer, worker: &Worker, span: Millis) -> Result<(), Error> {
        let action = "record a warm container";
        self.write(async |mut tx| {
            let query = sqlx::query(WANT).bind(&warm.container).bind(self.installation.as_str());
            let query = query.bind(&warm.template).bind(warm.agent.as_str()).bind(warm.workspace.as_str());
            let query = query.bind(warm.listener.as_str()).bind(worker.to_string());
            let query = query.bind(tx.after(span)).bind(tx.now);
            query.execute(tx.connection()).await.map_err(failed(action))?;
            self.check_host(&mut tx).await?;
            tx.commit(action).await
        })
        .await
    }

    /// Lets runs claim `warm`; returns whether `worker` still owns it.
    pub async fn mark_warm_ready(&self, warm: &WarmContainer, worker: &Worker) -> Result<bool, Error> {
        self.pool_change("record that a warm container is ready", async |tx| {
            let query = sqlx::query(READY).bind(tx.now).bind(&warm.container).bind(worker.to_string());
            query.execute(tx.connection()).await.map(|done| done.rows_affected())
        })
        .await
        .map(|rows| rows > 0)
    }

    /// Renews the leases of `worker` on its warm containers: they last `span` from now.
    pub async fn keep_warm_containers(&self, worker: &Worker, span: Millis) -> Result<(), Error> {
        self.pool_change("renew the leases on warm containers", async |tx| {
            let query = sqlx::query(KEEP).bind(tx.after(span)).bind(worker.to_string());
            query.execute(tx.connection()).await.map(|done| done.rows_affected())
        })
        .await
        .map(drop)
    }

    /// Prevents further claims of the container; returns whether `worker` may remove it. The owner may, and any worker
    /// may once the lease has expired. A removed container may be removed again, because a part of it may have been
    /// created late.
    pub async fn mark_warm_leaving(&self, container: &str, worker: &Worker) -> Result<bool, Error> {
        self.pool_change("retire a warm container", async |tx| {
            let query = sqlx::query(LEAVE).bind(tx.now).bind(container).bind(worker.to_string());
            query.execute(tx.connection()).await.map(|done| done.rows_affected())
        })
        .await
        .map(|rows| rows > 0)
    }

    /// Records that no part of the container is left. Has no effect unless the container was leaving.
    pub async fn mark_warm_gone(&self, container: &str) -> Result<(), Error> {
        self.pool_change("record a removed resource", async |tx| {
            let query = sqlx::query(GONE).bind(tx.now).bind(container);
            query.execute(tx.connection()).await.map(|done| done.rows_affected())
        })
        .await
        .map(drop)
    }

    /// Returns every warm container of this installation, including those removed in the last hour.
    pub async fn pool(&self) -> Result<Vec<PoolEntry>, Error> {
        let action = "list warm containers";
        self.read(async |mut tx| {
            let now = tx.now;
            let rows = sqlx::query(ALL).bind(self.installation.as_str()).fetch_all(tx.connection()).await;
            let rows = rows.map_err(failed(action))?;
            tx.commit(action).await?;
            rows.iter().map(|row| PoolEntry::read(row, now)).collect()
        })
        .await
    }

    /// Deletes the rows of containers that were removed more than an hour ago. The caller has searched since, and found
    /// no part of them.
    pub async fn forget_warm_containers(&self) -> Result<(), Error> {
        self.pool_change("forget removed warm containers", async |tx| {
            let before = tx.now.saturating_sub(i64::try_from(GONE_RETENTION.0).unwrap_or(i64::MAX));
            let query = sqlx::query(FORGET).bind(self.installation.as_str()).bind(before);
            query.execute(tx.connection()).await.map(|done| done.rows_affected())
        })
        .await
        .map(drop)
    }

    /// Returns the ready containers that were created from `template`: at most 32, the oldest first.
    pub async fn warm_containers(&self, template: &str) -> Result<Vec<WarmContainer>, Error> {
        let action = "look for warm containers";
        self.read(async |mut tx| {
            let now = tx.now;
            let query = sqlx::query(FITS).bind(self.installation.as_str());
            let rows =
                query.bind(template).bind(now).fetch_all(tx.connection()).await.map_err(failed(action))?;
            tx.commit(action).await?;
            rows.iter().map(|row| PoolEntry::read(row, now).map(|entry| entry.warm)).collect()
        })
        .await
    }

    /// Changes rows of the pool in one transaction; returns their number.
    async fn pool_change(
        &self,
        action: &'static str,
        change: impl AsyncFn(&mut Tx) -> Result<u64, sqlx::Error>,
    ) -> Result<u64, Error> {
        self.write(async |mut tx| {
            let rows = change(&mut tx).await.map_err(failed(action))?;
            tx.finish(action, rows).await
        })
        .await
    }
}

impl Tx {
    /// Removes `warm` from the pool, for a run that gets its parts as resources.
    ///
    /// # Errors
    /// [`Error::NotWarm`] if it is not ready any more.
    pub(super) async fn claim_warm(&mut self, installation: &str, warm: &WarmContainer) -> Result<(), Error> {
        let query = sqlx::query(TAKE).bind(&warm.container).bind(installation);
        let taken = query.execute(self.connection()).await.map_err(failed("claim a warm container"))?;
        if taken.rows_affected() == 0 {
            return Err(Error::NotWarm { container: warm.container.clone() });
        }
        Ok(())
    }
}
