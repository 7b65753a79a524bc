//! Containers that wait for a run: a row before the first thing of one is made, until the last is gone or a run has taken them.
//!
//! They are one process's, which keeps them by a lease. Any run may take one that is ready, in the
//! step in which it begins to prepare: then they are the run's things, and nothing is left here.

use platform_core::{
    id::{AgentId, SocketDirName, WorkspaceId},
    limit::Millis,
};
use sqlx::any::AnyRow;

use super::{
    Again, Change, Kind, Store, Tx, UnixMillis, Worker,
    error::{Error, failed},
    row::{number, parsed, text},
};

/// What is to wait for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spare {
    /// The container, by its name.
    pub container: String,
    /// What it was made from: it fits runs that would be made from the same.
    pub mould: String,
    /// The agent it was made for.
    pub agent: AgentId,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Its socket directory.
    pub listener: SocketDirName,
}

/// What waits for a run, or did, by its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pooled {
    /// What it is.
    pub spare: Spare,
    /// The process that made it.
    pub owner: String,
    /// How far it has come.
    pub stage: PoolStage,
    /// Whether the process is gone, or hangs.
    pub over: bool,
    /// Since when.
    pub changed: UnixMillis,
}

/// How far what waits for a run has come. A run may take it while it is ready; never again once it leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolStage {
    /// It is about to be made: parts of it may be there.
    Wanted,
    /// It waits.
    Ready,
    /// No run gets it any more: it is being removed.
    Leaving,
    /// It was removed. Somebody who was held up may have made a part of it since.
    Gone,
}

impl PoolStage {
    const ALL: [Self; 4] = [Self::Wanted, Self::Ready, Self::Leaving, Self::Gone];

    /// Its name, as it is stored and shown.
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

/// Columns of a row.
macro_rules! pool_columns {
    () => {
        "name, mould, agent, workspace, listener, owner, state, lease_until, changed"
    };
}

const WANT: &str = "INSERT INTO pool (name, installation, mould, agent, workspace, listener, owner, state, lease_until, changed) \
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
    " FROM pool WHERE installation = $1 AND mould = $2 AND state = 'ready' \
     AND lease_until >= $3 ORDER BY changed, name LIMIT 32"
);
const TAKE: &str = "DELETE FROM pool WHERE name = $1 AND installation = $2 AND state = 'ready'";

/// How long is known of what is gone: whoever was held up for longer has lost its Docker as well.
const MEMORY: Millis = Millis::seconds(3600);

impl Spare {
    /// What a run that takes it has from then on.
    #[must_use]
    pub fn things(&self) -> [Change; 3] {
        [
            Change::wanted(Kind::Workspace, self.workspace.as_str()),
            Change::wanted(Kind::Listener, self.listener.as_str()),
            Change::wanted(Kind::Container, self.container.as_str()),
        ]
    }
}

impl Pooled {
    fn read(row: &AnyRow, now: i64) -> Result<Self, Error> {
        let spare = Spare {
            container: text(row, "name")?,
            mould: text(row, "mould")?,
            agent: parsed(row, "agent", |text| AgentId::parse(text).ok())?,
            workspace: parsed(row, "workspace", |text| WorkspaceId::parse(text).ok())?,
            listener: parsed(row, "listener", |text| SocketDirName::parse(text).ok())?,
        };
        Ok(Self {
            spare,
            owner: text(row, "owner")?,
            stage: parsed(row, "state", |name| {
                PoolStage::ALL.into_iter().find(|stage| stage.name() == name)
            })?,
            over: number(row, "lease_until")? < now,
            changed: UnixMillis(number(row, "changed")?),
        })
    }
}

impl Store {
    /// Keeps that `spare` is about to be made by `worker`, and is its own for `span` from now. The same again changes nothing.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn want_spare(&self, spare: &Spare, worker: &Worker, span: Millis) -> Result<(), Error> {
        let action = "keep what is to wait for a run";
        self.retrying(Again::Always, async |_| {
            let mut tx = self.begin().await?;
            let query = sqlx::query(WANT).bind(&spare.container).bind(self.installation.as_str());
            let query = query.bind(&spare.mould).bind(spare.agent.as_str()).bind(spare.workspace.as_str());
            let query = query.bind(spare.listener.as_str()).bind(worker.to_string());
            let query = query.bind(tx.after(span)).bind(tx.now);
            query.execute(tx.connection()).await.map_err(failed(action))?;
            self.check_host(&mut tx).await?;
            tx.commit(action).await
        })
        .await
    }

    /// Lets runs take `spare`; tells whether `worker` still has it.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn spare_is_ready(&self, spare: &Spare, worker: &Worker) -> Result<bool, Error> {
        self.pool_change("keep what waits for a run", async |tx| {
            let query = sqlx::query(READY).bind(tx.now).bind(&spare.container).bind(worker.to_string());
            query.execute(tx.connection()).await.map(|done| done.rows_affected())
        })
        .await
        .map(|rows| rows > 0)
    }

    /// Has what `worker` keeps waiting be its own for `span` from now.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn keep_spares(&self, worker: &Worker, span: Millis) -> Result<(), Error> {
        self.pool_change("keep what waits for runs", async |tx| {
            let query = sqlx::query(KEEP).bind(tx.after(span)).bind(worker.to_string());
            query.execute(tx.connection()).await.map(|done| done.rows_affected())
        })
        .await
        .map(drop)
    }

    /// Lets no run take it any more; tells whether `worker` may remove it: it is its own, or its owner is gone, or it was removed
    /// before and a part of it came late.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn spare_leaves(&self, container: &str, worker: &Worker) -> Result<bool, Error> {
        self.pool_change("keep that nothing waits any more", async |tx| {
            let query = sqlx::query(LEAVE).bind(tx.now).bind(container).bind(worker.to_string());
            query.execute(tx.connection()).await.map(|done| done.rows_affected())
        })
        .await
        .map(|rows| rows > 0)
    }

    /// Keeps that nothing of it is there any more. Without effect unless it was leaving.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn spare_is_gone(&self, container: &str) -> Result<(), Error> {
        self.pool_change("keep what is gone", async |tx| {
            let query = sqlx::query(GONE).bind(tx.now).bind(container);
            query.execute(tx.connection()).await.map(|done| done.rows_affected())
        })
        .await
        .map(drop)
    }

    /// Everything that waits for runs of this installation, or did until lately.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn pool(&self) -> Result<Vec<Pooled>, Error> {
        let action = "list what waits for runs";
        self.retrying(Again::Always, async |_| {
            let mut tx = self.begin_with(self.backend.begin_snapshot()).await?;
            let now = tx.now;
            let rows = sqlx::query(ALL).bind(self.installation.as_str()).fetch_all(tx.connection()).await;
            let rows = rows.map_err(failed(action))?;
            tx.commit(action).await?;
            rows.iter().map(|row| Pooled::read(row, now)).collect()
        })
        .await
    }

    /// Forgets what was gone for an hour. For whoever has looked since, and found nothing of it.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn forget_spares(&self) -> Result<(), Error> {
        self.pool_change("forget what is gone", async |tx| {
            let before = tx.now.saturating_sub(i64::try_from(MEMORY.0).unwrap_or(i64::MAX));
            let query = sqlx::query(FORGET).bind(self.installation.as_str()).bind(before);
            query.execute(tx.connection()).await.map(|done| done.rows_affected())
        })
        .await
        .map(drop)
    }

    /// What waits and was made from `mould`: at most 32, those first that have waited longest.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn spares(&self, mould: &str) -> Result<Vec<Spare>, Error> {
        let action = "look what waits for a run";
        self.retrying(Again::Always, async |_| {
            let mut tx = self.begin_with(self.backend.begin_snapshot()).await?;
            let now = tx.now;
            let query = sqlx::query(FITS).bind(self.installation.as_str());
            let rows =
                query.bind(mould).bind(now).fetch_all(tx.connection()).await.map_err(failed(action))?;
            tx.commit(action).await?;
            rows.iter().map(|row| Pooled::read(row, now).map(|pooled| pooled.spare)).collect()
        })
        .await
    }

    async fn pool_change(
        &self,
        action: &'static str,
        change: impl AsyncFn(&mut Tx) -> Result<u64, sqlx::Error>,
    ) -> Result<u64, Error> {
        self.retrying(Again::Always, async |_| {
            let mut tx = self.begin().await?;
            let rows = change(&mut tx).await.map_err(failed(action))?;
            tx.commit(action).await?;
            Ok(rows)
        })
        .await
    }
}

impl Tx {
    /// Takes `spare` out of the pool, for a run whose things its parts become.
    ///
    /// # Errors
    /// [`Error::NotSpare`] if it waits no more.
    pub(super) async fn take_spare(&mut self, installation: &str, spare: &Spare) -> Result<(), Error> {
        let query = sqlx::query(TAKE).bind(&spare.container).bind(installation);
        let taken = query.execute(self.connection()).await.map_err(failed("take what waits for a run"))?;
        if taken.rows_affected() == 0 {
            return Err(Error::NotSpare { container: spare.container.clone() });
        }
        Ok(())
    }
}
