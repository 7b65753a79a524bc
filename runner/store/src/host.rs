//! Binds a store to one host: records the host that it serves, refuses others, and moves the store on request.
//!
//! A run's container, workspace and socket are on one host, and another host cannot tell whether the run continues. So
//! another host may neither order runs nor take them over. Every transaction that claims a run checks the host again at
//! its end. On Postgres this check locks the host's row until the commit, and moving the store locks it first.

use platform_core::limit::Millis;
use sqlx::{AssertSqlSafe, any::AnyRow};

use super::{
    Store, Tx, UnixMillis,
    backend::RowLock,
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
const FIND: &str = "SELECT host, name, since, seen FROM hosts WHERE installation = $1";
/// Inserts the row of an installation, or keeps an existing one; returns the row.
const SET_IF_NONE: &str = "INSERT INTO hosts (installation, host, name, since, seen, lease_until) VALUES ($1, $2, $3, $4, $4, $4) \
     ON CONFLICT (installation) DO UPDATE SET installation = excluded.installation RETURNING host, name, since, seen";
const RECORD_USE: &str = "UPDATE hosts SET name = $1, seen = $2, \
     lease_until = CASE WHEN lease_until < $3 THEN $3 ELSE lease_until END WHERE installation = $4";
const MOVE_STORE: &str =
    "UPDATE hosts SET host = $1, name = $2, since = $3, seen = $3, lease_until = $3 WHERE installation = $4";
/// Leases of hosts, of their runs and of their warm containers.
macro_rules! leases {
    () => {
        "(SELECT installation, lease_until AS until FROM hosts UNION ALL \
         SELECT installation, lease_until FROM runs WHERE ended IS NULL AND lease_owner IS NOT NULL UNION ALL \
         SELECT installation, lease_until FROM pool WHERE state IN ('wanted', 'ready')) AS leases"
    };
}
/// Selects the latest end of an installation's leases.
const LAST_LEASE: &str = concat!("SELECT max(until) AS until FROM ", leases!(), " WHERE installation = $1");
/// Selects the lease of the other installations that ends last.
const LEASE_OF_OTHERS: &str = concat!(
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
    /// Returns the store for full use by `host`: to order and execute runs, and to remove their resources. A store that
    /// serves no host serves this one from now on.
    ///
    /// # Errors
    /// [`Error::ServesAnother`] if the store serves another host.
    pub async fn serving(mut self, host: HostIdentity) -> Result<Self, Error> {
        self.host = Some(host);
        self.keep_serving(Millis(0)).await?;
        Ok(self)
    }

    /// Records that this host is active, and renews its lease: the store cannot be moved within `span` from now.
    ///
    /// # Errors
    /// [`Error::ServesAnother`] if the store was moved to another host.
    pub async fn keep_serving(&self, span: Millis) -> Result<(), Error> {
        let action = "record that this host is active";
        self.write(async |mut tx| {
            let this_host = self.claim_host(&mut tx, RowLock::Change).await?;
            let query = sqlx::query(RECORD_USE).bind(&this_host.name).bind(tx.now).bind(tx.after(span));
            let query = query.bind(self.installation.as_str());
            query.execute(tx.connection()).await.map_err(failed(action))?;
            tx.commit(action).await
        })
        .await
    }

    /// Returns the host that the store serves, if there is one.
    pub async fn served(&self) -> Result<Option<Served>, Error> {
        self.retry(async || {
            let row = sqlx::query(FIND).bind(self.installation.as_str()).fetch_optional(&self.pool).await;
            row.map_err(failed("read which host the store serves"))?.map(|row| Served::read(&row)).transpose()
        })
        .await
    }

    /// Moves the store to `host`. Runs keep their rows. A run ends as lost once a worker takes it over here, if its
    /// agent ran on the other host. The rows of warm containers are deleted.
    ///
    /// # Errors
    /// [`Error::HostAtWork`] while the other host, one of its runs or one of its warm containers has a lease.
    pub async fn adopt(&self, host: &HostIdentity) -> Result<Adopted, Error> {
        self.retry(async || self.adopt_once(host).await).await
    }

    async fn adopt_once(&self, host: &HostIdentity) -> Result<Adopted, Error> {
        let action = "move the store to this host";
        let mut tx = self.begin().await?;
        let installation = self.installation.as_str();
        let Some(before) = tx.find_host(installation, RowLock::Change).await? else {
            let now_served = tx.set_host_if_none(installation, host).await?;
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
            let store = self.address.to_string();
            return Err(Error::HostAtWork {
                store,
                served: Box::new(before),
                left: Millis(left.unsigned_abs()),
            });
        }
        let unfinished = tx.scalar(UNFINISHED, installation).await?.unwrap_or_default();
        let moved =
            sqlx::query(MOVE_STORE).bind(host.id.as_str()).bind(&host.name).bind(tx.now).bind(installation);
        moved.execute(tx.connection()).await.map_err(failed(action))?;
        let forgotten = sqlx::query(FORGET_POOL).bind(installation);
        forgotten.execute(tx.connection()).await.map_err(failed(action))?;
        tx.finish(action, Adopted::From { before, unfinished: unfinished.unsigned_abs() }).await
    }

    /// Checks that the store serves this program's host, and lets no other program change that until `tx` ends.
    pub(super) async fn check_host(&self, tx: &mut Tx) -> Result<&HostIdentity, Error> {
        self.claim_host(tx, RowLock::Keep).await
    }

    /// Locks the row of the host, and checks that the store serves this program's host; sets it if it is missing.
    async fn claim_host(&self, tx: &mut Tx, lock: RowLock) -> Result<&HostIdentity, Error> {
        let this_host = self.host.as_ref().ok_or(Error::OnlyReads)?;
        let installation = self.installation.as_str();
        let served = match tx.find_host(installation, lock).await? {
            Some(served) => served,
            None => tx.set_host_if_none(installation, this_host).await?,
        };
        if served.host.id == this_host.id {
            Ok(this_host)
        } else {
            Err(self.serves_another(served, this_host))
        }
    }

    /// Claims the whole store until `tx` ends: no other program reads or writes it. Checks that it serves this
    /// program's host, and that no other installation has a lease in it.
    pub(super) async fn claim_whole(&self, tx: &mut Tx) -> Result<(), Error> {
        if let Some(lock) = self.backend.lock_tables() {
            sqlx::raw_sql(lock).execute(tx.connection()).await.map_err(failed("lock the store"))?;
        }
        self.claim_host(tx, RowLock::Change).await?;
        let lease = sqlx::query(LEASE_OF_OTHERS).bind(self.installation.as_str()).bind(tx.now);
        let lease = lease.fetch_optional(tx.connection()).await;
        let Some(lease) = lease.map_err(failed("look for leases of other installations"))? else {
            return Ok(());
        };
        let installation = text(&lease, "installation")?;
        let host = tx.find_host(&installation, RowLock::Keep).await?;
        let left = Millis((number(&lease, "until")? - tx.now).unsigned_abs());
        let worker = match host {
            Some(host) => format!("installation `{installation}` of {host}"),
            None => format!("installation `{installation}`"),
        };
        Err(Error::OthersAtWork { store: self.address.to_string(), worker, left })
    }

    fn serves_another(&self, served: Served, this_host: &HostIdentity) -> Error {
        let store = self.address.to_string();
        Error::ServesAnother { store, served: Box::new(served), here: this_host.id.clone() }
    }
}

impl Tx {
    /// Returns the host that the store serves, and locks its row.
    async fn find_host(&mut self, installation: &str, lock: RowLock) -> Result<Option<Served>, Error> {
        let lock = self.backend.lock_row(lock);
        let row = sqlx::query(AssertSqlSafe(format!("{FIND}{lock}"))).bind(installation);
        let row = row.fetch_optional(self.connection()).await;
        let row = row.map_err(failed("read which host the store serves"))?;
        row.map(|row| Served::read(&row)).transpose()
    }

    /// Lets the store serve `host` if it serves none; returns the host that it serves afterwards.
    async fn set_host_if_none(&mut self, installation: &str, host: &HostIdentity) -> Result<Served, Error> {
        let query = sqlx::query(SET_IF_NONE)
            .bind(installation)
            .bind(host.id.as_str())
            .bind(&host.name)
            .bind(self.now);
        let row = query.fetch_one(self.connection()).await;
        Served::read(&row.map_err(failed("record which host the store serves"))?)
    }

    async fn scalar(&mut self, statement: &'static str, installation: &str) -> Result<Option<i64>, Error> {
        let value = sqlx::query_scalar(statement).bind(installation).fetch_one(self.connection()).await;
        value.map_err(failed("look for leases of the store's host"))
    }
}
