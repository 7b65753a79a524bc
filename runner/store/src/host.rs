//! Keeps a store to one host: records which one it serves, refuses another, and moves it when asked to.
//!
//! A run's container, workspace and socket are on one host, and another host cannot tell whether the run goes on. So
//! another host may neither order runs nor take them over. Every transaction that takes a run checks this again at its
//! end. On Postgres the row is locked there until the commit, and a move of the store locks it first.

use platform_core::limit::Millis;
use sqlx::{AssertSqlSafe, any::AnyRow};

use super::{
    RetryWhen, Store, Tx, UnixMillis,
    backend::Backend,
    error::{Error, failed},
    identity::{HostId, HostIdentity, Served},
    row::{number, parsed, text},
};

/// Outcome of moving a store to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Adopted {
    /// The store served no host.
    First,
    /// The store served this host already.
    Already,
    /// The store served another host.
    From {
        /// The other host.
        before: Served,
        /// Number of runs that have not ended.
        unfinished: u64,
    },
}

/// Purpose of a lock on the row that names the host. A transaction that will change the row takes the stronger one at
/// once: two that first shared it would wait for each other.
#[derive(Debug, Clone, Copy)]
enum RowLock {
    Keep,
    Change,
}

const FIND: &str = "SELECT host, name, since, seen FROM hosts WHERE installation = $1";
/// Leaves a row that is there as it is, and returns it.
const FIRST: &str = "INSERT INTO hosts (installation, host, name, since, seen, lease_until) VALUES ($1, $2, $3, $4, $4, $4) \
     ON CONFLICT (installation) DO UPDATE SET installation = excluded.installation RETURNING host, name, since, seen";
const SEEN: &str = "UPDATE hosts SET name = $1, seen = $2, \
     lease_until = CASE WHEN lease_until < $3 THEN $3 ELSE lease_until END WHERE installation = $4";
const MOVE: &str =
    "UPDATE hosts SET host = $1, name = $2, since = $3, seen = $3, lease_until = $3 WHERE installation = $4";
/// The leases of hosts, of their runs and of their waiting containers.
macro_rules! leases {
    () => {
        "(SELECT installation, lease_until AS until FROM hosts UNION ALL \
         SELECT installation, lease_until FROM runs WHERE ended IS NULL AND lease_owner IS NOT NULL UNION ALL \
         SELECT installation, lease_until FROM pool WHERE state IN ('wanted', 'ready')) AS leases"
    };
}
/// Selects the end of an installation's last lease.
const LAST_LEASE: &str = concat!("SELECT max(until) AS until FROM ", leases!(), " WHERE installation = $1");
/// The last lease of all other installations.
const OTHERS: &str = concat!(
    "SELECT installation, until FROM ",
    leases!(),
    " WHERE installation <> $1 AND until >= $2 ORDER BY until DESC LIMIT 1"
);
const UNFINISHED: &str = "SELECT count(*) FROM runs WHERE installation = $1 AND ended IS NULL";
const FORGET_POOL: &str = "DELETE FROM pool WHERE installation = $1";

impl Served {
    fn read(row: &AnyRow) -> Result<Self, Error> {
        let id = parsed(row, "host", HostId::parse)?;
        Ok(Self {
            host: HostIdentity { id, name: text(row, "name")? },
            since: UnixMillis(number(row, "since")?),
            seen: UnixMillis(number(row, "seen")?),
        })
    }
}

impl Store {
    /// Returns the store as `host` may use it: to order runs, work on them and remove what they leave. A store that
    /// serves no host serves this one from now on.
    ///
    /// # Errors
    /// [`Error::ServesAnother`] if it serves another host.
    pub async fn serving(mut self, host: HostIdentity) -> Result<Self, Error> {
        self.host = Some(host);
        self.keep_serving(Millis(0)).await?;
        Ok(self)
    }

    /// Records that its host is at work, and will be heard of again within `span`: the store cannot be moved until
    /// then.
    ///
    /// # Errors
    /// [`Error::ServesAnother`] if it was moved to another host.
    pub async fn keep_serving(&self, span: Millis) -> Result<(), Error> {
        let action = "record that this host is active";
        self.retry(RetryWhen::Always, async |_| {
            let mut tx = self.begin().await?;
            let here = self.claim_host(&mut tx, RowLock::Change).await?;
            let query = sqlx::query(SEEN).bind(&here.name).bind(tx.now).bind(tx.after(span));
            let query = query.bind(self.installation.as_str());
            query.execute(tx.connection()).await.map_err(failed(action))?;
            tx.commit(action).await
        })
        .await
    }

    /// Returns the host that the store serves, if it serves one.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn served(&self) -> Result<Option<Served>, Error> {
        self.retry(RetryWhen::Always, async |_| {
            let row = sqlx::query(FIND).bind(self.installation.as_str()).fetch_optional(&self.pool).await;
            row.map_err(failed("read which host the store serves"))?.map(|row| Served::read(&row)).transpose()
        })
        .await
    }

    /// Moves the store to `host`. Its runs keep their rows: those whose agents ran on the other host end as lost once
    /// they are taken over here. Containers that waited there are forgotten.
    ///
    /// # Errors
    /// [`Error::HostAtWork`] while the other host, or anything it works on, has a lease.
    pub async fn adopt(&self, host: &HostIdentity) -> Result<Adopted, Error> {
        self.retry(RetryWhen::Always, async |_| self.adopt_once(host).await).await
    }

    async fn adopt_once(&self, host: &HostIdentity) -> Result<Adopted, Error> {
        let action = "move the store to this host";
        let mut tx = self.begin().await?;
        let installation = self.installation.as_str();
        let Some(before) = tx.find_host(installation, RowLock::Change).await? else {
            let now_served = tx.first_host(installation, host).await?;
            tx.commit(action).await?;
            return if now_served.host.id == host.id {
                Ok(Adopted::First)
            } else {
                Err(self.serves_another(now_served, host))
            };
        };
        if before.host.id == host.id {
            return Ok(Adopted::Already);
        }
        let until = tx.scalar(LAST_LEASE, installation).await?;
        if let Some(left) = until.map(|until| until - tx.now).filter(|left| *left >= 0) {
            let store = self.shown.to_string();
            return Err(Error::HostAtWork {
                store,
                served: Box::new(before),
                left: Millis(left.unsigned_abs()),
            });
        }
        let unfinished = tx.scalar(UNFINISHED, installation).await?.unwrap_or_default();
        let moved = sqlx::query(MOVE).bind(host.id.as_str()).bind(&host.name).bind(tx.now).bind(installation);
        moved.execute(tx.connection()).await.map_err(failed(action))?;
        let forgotten = sqlx::query(FORGET_POOL).bind(installation);
        forgotten.execute(tx.connection()).await.map_err(failed(action))?;
        tx.commit(action).await?;
        Ok(Adopted::From { before, unfinished: unfinished.unsigned_abs() })
    }

    /// Checks that the store serves this program's host, and keeps it so until `tx` ends.
    pub(super) async fn check_host(&self, tx: &mut Tx) -> Result<&HostIdentity, Error> {
        self.claim_host(tx, RowLock::Keep).await
    }

    async fn claim_host(&self, tx: &mut Tx, lock: RowLock) -> Result<&HostIdentity, Error> {
        let here = self.host.as_ref().ok_or(Error::OnlyReads)?;
        let installation = self.installation.as_str();
        let served = match tx.find_host(installation, lock).await? {
            Some(served) => served,
            None => tx.first_host(installation, here).await?,
        };
        if served.host.id == here.id { Ok(here) } else { Err(self.serves_another(served, here)) }
    }

    /// Claims the store whole, until `tx` ends: it serves this program's host, no other program does anything in it,
    /// and no other installation has anything at work there.
    pub(super) async fn claim_whole(&self, tx: &mut Tx) -> Result<(), Error> {
        if let Some(lock) = self.backend.lock_tables() {
            sqlx::raw_sql(lock).execute(tx.connection()).await.map_err(failed("lock the store"))?;
        }
        self.claim_host(tx, RowLock::Change).await?;
        let other = sqlx::query(OTHERS).bind(self.installation.as_str()).bind(tx.now);
        let other = other.fetch_optional(tx.connection()).await;
        let Some(lease) = other.map_err(failed("look for leases of other installations"))? else {
            return Ok(());
        };
        let installation = text(&lease, "installation")?;
        let host = tx.find_host(&installation, RowLock::Keep).await?;
        let left = Millis((number(&lease, "until")? - tx.now).unsigned_abs());
        let worker = match host {
            Some(host) => format!("installation `{installation}` of {host}"),
            None => format!("installation `{installation}`"),
        };
        Err(Error::OthersAtWork { store: self.shown.to_string(), worker, left })
    }

    fn serves_another(&self, served: Served, here: &HostIdentity) -> Error {
        let store = self.shown.to_string();
        Error::ServesAnother { store, served: Box::new(served), here: here.id.clone() }
    }
}

impl Tx {
    /// Returns the host that the store serves; `lock` keeps it so. SQLite has one writer and needs none.
    async fn find_host(&mut self, installation: &str, lock: RowLock) -> Result<Option<Served>, Error> {
        let lock = match (self.backend, lock) {
            (Backend::Sqlite, _) => "",
            (Backend::Postgres, RowLock::Keep) => " FOR SHARE",
            (Backend::Postgres, RowLock::Change) => " FOR UPDATE",
        };
        let row = sqlx::query(AssertSqlSafe(format!("{FIND}{lock}"))).bind(installation);
        let row = row.fetch_optional(self.connection()).await;
        let row = row.map_err(failed("read which host the store serves"))?;
        row.map(|row| Served::read(&row)).transpose()
    }

    /// Makes the store serve `host` if it serves none; returns the host that it serves then.
    async fn first_host(&mut self, installation: &str, host: &HostIdentity) -> Result<Served, Error> {
        let query =
            sqlx::query(FIRST).bind(installation).bind(host.id.as_str()).bind(&host.name).bind(self.now);
        let row = query.fetch_one(self.connection()).await;
        Served::read(&row.map_err(failed("record which host the store serves"))?)
    }

    async fn scalar(&mut self, statement: &'static str, installation: &str) -> Result<Option<i64>, Error> {
        let value = sqlx::query_scalar(statement).bind(installation).fetch_one(self.connection()).await;
        value.map_err(failed("look for leases of the store's host"))
    }
}
