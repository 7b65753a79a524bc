//! Stores what the control plane must not forget: runs, their resources, their events, and the cursors of consumers.
//!
//! One interface covers SQLite (one file, the default) and Postgres. Either serves one host (`host`), on which several
//! programs may use it. The statements are the same for both. So there is one pool of sqlx's `Any` driver and one small
//! file, `backend`, with the differences.
//!
//! Every operation is one transaction. All times are the database's clock, read once per transaction. On Postgres that
//! is the server's, whatever the clocks of its clients say; on SQLite the host's. A change to a run is made in the name
//! of a [`FencingToken`] and refused once its epoch has passed. An expired lease does not by itself end a hold. It lets another
//! worker take the run over, and that ends it. Until then the holder may go on and renew the lease.
//!
//! Transient failures (a lock, a lost connection) are retried where a retry cannot do the operation twice. There are
//! four retries, with two seconds between them in all. A step of a run can wait longer: [`Store::insist`].
//!
//! Does not execute a run, and does not decide what may be removed. What a move means is in
//! [`runner_model::lifecycle`]; the engine makes the moves.
//!
//! Start reading at [`Store`], then `step` (a run's moves), `lease` (who may make them) and `queue`.
//!
//! Invariants: nothing acts before it is stored. An old epoch is fenced. A store serves one host.

mod address;
mod backend;
mod backup;
mod bounds;
mod cancel;
mod claim;
mod cursors;
mod error;
mod error_class;
mod events;
mod host;
mod host_file;
mod identity;
mod lease;
mod meter;
mod pool;
mod position;
mod present;
mod prune;
mod queue;
mod queue_full;
mod read;
mod resource;
mod retry;
mod row;
mod schema;
mod step;
mod time;

use std::{sync::Arc, time::Duration};

use platform_core::id::InstallationId;
use sqlx::{
    Any, AnyConnection, ConnectOptions, Connection, Transaction,
    any::{AnyPoolOptions, install_default_drivers},
    pool::Pool,
};

pub use self::{
    address::Address,
    backup::{Onto, Rows},
    bounds::Bounds,
    cursors::ConsumerCursor,
    error::{Committed, Error, HostIdFault},
    error_class::ErrorClass,
    events::Batch,
    host::Adopted,
    identity::{HostId, HostIdentity, Served},
    lease::{Claimant, Created, FencingToken, NewRun, Worker},
    meter::StoreMetrics,
    pool::{PoolEntry, PoolStage, WarmContainer},
    position::{EventCursor, OutputPosition},
    present::Present,
    prune::{Keep, Pruned},
    queue::{Queue, QueuePosition, Waiting},
    queue_full::{QueueBound, QueueFull},
    read::{Event, Filter, Page, Record},
    resource::{Resource, ResourceChange, ResourceKind, ResourceState},
    row::{Lease, Run},
    schema::SCHEMA,
    step::Step,
    time::UnixMillis,
};
use self::{
    backend::Backend,
    error::failed,
    meter::Meter,
    retry::{Retrier, RetryWhen},
};

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// An open store, as one installation sees it. It only reads until [`Store::serving`] sets the host. Clones share its
/// connections.
#[derive(Debug, Clone)]
pub struct Store {
    pool: Pool<Any>,
    backend: Backend,
    shown: Arc<str>,
    installation: InstallationId,
    meter: Arc<Meter>,
    bounds: Bounds,
    host: Option<HostIdentity>,
}

/// Transaction, with the time at which it began.
struct Tx {
    inner: Transaction<'static, Any>,
    backend: Backend,
    now: i64,
}

impl Store {
    /// Opens the store at `address`, makes it if there is none, and brings an older one up to date. Any number of
    /// orders may wait in it, unless it is [`bounded`](Self::bounded).
    ///
    /// # Errors
    /// If it cannot be reached, or was made by a later program.
    pub async fn open(address: &Address, installation: InstallationId) -> Result<Self, Error> {
        address.prepare()?;
        install_default_drivers();
        let backend = address.backend;
        let shown = address.to_string();
        let meter = Arc::<Meter>::default();
        let unreachable = |source| Error::Unreachable { store: shown.clone(), source };
        // Connects once without the pool, which would retry until its timeout and not say what failed.
        let first = async |_| {
            let mut first = address.options.connect().await.map_err(unreachable)?;
            sqlx::raw_sql(backend.on_connect()).execute(&mut first).await.map_err(unreachable)?;
            first.close().await.map_err(unreachable)
        };
        let retrier = Retrier { store: &shown, meter: &meter, max_wait: Duration::ZERO };
        retrier.run(RetryWhen::Always, first).await?;
        let pool = AnyPoolOptions::new()
            .max_connections(backend.connections())
            .acquire_timeout(CONNECT_TIMEOUT)
            .after_connect(move |connection, _meta| {
                Box::pin(
                    async move { sqlx::raw_sql(backend.on_connect()).execute(connection).await.map(drop) },
                )
            })
            .connect_with(address.options.clone())
            .await
            .map_err(unreachable)?;
        let bounds = Bounds::NONE;
        let store = Self { pool, backend, shown: shown.into(), installation, meter, bounds, host: None };
        store.retry(RetryWhen::Always, async |_| store.update().await).await?;
        Ok(store)
    }

    /// Closes its connections. Committed changes are kept without this call, too.
    pub async fn close(self) {
        self.pool.close().await;
    }

    /// Returns its address, without a password, and its schema.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("{}, schema {SCHEMA}", self.shown)
    }

    /// Brings the schema up to date; one program at a time.
    async fn update(&self) -> Result<(), Error> {
        let mut connection = self.pool.acquire().await.map_err(failed("reach the store"))?;
        if schema::version(&mut connection, self.backend, &self.shown).await? == SCHEMA {
            return Ok(());
        }
        drop(connection);
        let mut tx = self.begin().await?;
        schema::lock(&mut tx).await?;
        let found = schema::version(tx.connection(), self.backend, &self.shown).await?;
        schema::migrate(&mut tx, found, SCHEMA).await?;
        tx.commit("change the store's schema").await
    }

    async fn begin(&self) -> Result<Tx, Error> {
        self.begin_with(self.backend.begin()).await
    }

    async fn begin_with(&self, statement: &'static str) -> Result<Tx, Error> {
        let action = "begin a transaction";
        let mut inner = self.pool.begin_with(statement).await.map_err(failed(action))?;
        let now = sqlx::query_scalar(self.backend.now());
        let now = now.fetch_one(&mut *inner).await.map_err(failed(action))?;
        Ok(Tx { inner, backend: self.backend, now })
    }

    /// Returns the counters of its operations: their durations, retries and failures.
    #[must_use]
    pub fn metered(&self) -> StoreMetrics {
        self.meter.read()
    }

    /// Repeats `operation` a few times while its failures are transient.
    async fn retry<T>(
        &self,
        when: RetryWhen,
        operation: impl AsyncFn(Committed) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.retrier(Duration::ZERO).run(when, operation).await
    }

    /// Returns the retrier that waits for an unavailable store for `max_wait`.
    fn retrier(&self, max_wait: Duration) -> Retrier<'_> {
        Retrier { store: &self.shown, meter: &self.meter, max_wait }
    }
}

impl Tx {
    fn connection(&mut self) -> &mut AnyConnection {
        &mut self.inner
    }

    async fn commit(self, action: &'static str) -> Result<(), Error> {
        let perhaps = |source| Error::Failed { action, committed: Committed::Perhaps, source };
        self.inner.commit().await.map_err(perhaps)
    }
}
