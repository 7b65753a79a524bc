//! Stores what the control plane must not forget: runs, their resources, their events, and the cursors of consumers.
//!
//! One interface covers SQLite (one file, the default) and Postgres. Either serves one host (`host`), on which several
//! programs may use it. The statements are the same for both. So there is one pool of sqlx's `Any` driver and one small
//! file, `backend`, with the differences.
//!
//! Every operation is one transaction. All times are the database's clock, read once per transaction. On Postgres that
//! is the server's, whatever the clocks of its clients say; on SQLite the host's. A change to a run is made in the name
//! of a [`Hold`] and refused once its epoch has passed. An expired lease does not by itself end a hold. It lets another
//! worker take the run over, and that ends it. Until then the holder may go on and renew the lease.
//!
//! Transient failures (a lock, a lost connection) are retried where a retry cannot do the operation twice. There are
//! four retries, with two seconds between them in all. A step of a run can wait longer: [`Store::insist`].
//!
//! Does not execute a run, and does not decide what may be removed. What a move means is in [`runner_model::lifecycle`];
//! the engine makes the moves.
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
mod class;
mod cursors;
mod error;
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
mod row;
mod schema;
mod step;
mod tell;
mod time;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use platform_core::id::InstallationId;
use platform_runtime::report;
use sqlx::{
    Any, AnyConnection, ConnectOptions, Connection, Transaction,
    any::{AnyPoolOptions, install_default_drivers},
    pool::Pool,
};

pub use self::{
    address::Address,
    backup::{Onto, Rows},
    bounds::Bounds,
    class::Class,
    cursors::Acknowledged,
    error::{Done, Error, IdFault},
    host::Adopted,
    identity::{HostId, HostIdentity, Served},
    lease::{Created, For, Hold, NewRun, Worker},
    meter::Metered,
    pool::{PoolStage, Pooled, WarmContainer},
    position::{Printed, Told},
    present::Present,
    prune::{Keep, Pruned},
    queue::{Queue, Standing, Waiting},
    queue_full::{Bound, Full},
    read::{Event, Filter, Page, Record},
    resource::{Change, Kind, Resource, Stage},
    row::{Lease, Run},
    schema::SCHEMA,
    step::Step,
    tell::Batch,
    time::UnixMillis,
};
use self::{backend::Backend, error::failed, meter::Meter};

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Delays before the retries of a failed operation.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(50), Duration::from_millis(150), Duration::from_millis(500), LAST_PAUSE];
const LAST_PAUSE: Duration = Duration::from_secs(1);
/// Longest wait for an unavailable store where a run cannot go on without it.
const INSIST: Duration = Duration::from_secs(300);

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

/// Condition under which an operation is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// The operation is idempotent.
    Always,
    /// The operation is not idempotent: it is retried only if it was certainly not done.
    UnlessDone,
}

impl Store {
    /// Opens the store at `address`, makes it if there is none, and brings an older one up to date. Any number of orders may
    /// wait in it, unless it is [`bounded`](Self::bounded).
    ///
    /// # Errors
    /// If it cannot be reached, or was made by a later program.
    pub async fn open(address: &Address, installation: InstallationId) -> Result<Self, Error> {
        address.prepare()?;
        install_default_drivers();
        let backend = address.backend;
        let (shown, meter) = (address.to_string(), Arc::<Meter>::default());
        let unreachable = |source| Error::Unreachable { store: shown.clone(), source };
        // Connects once without the pool, which would retry until its timeout and not say what failed.
        let first = async |_| {
            let mut first = address.options.connect().await.map_err(unreachable)?;
            sqlx::raw_sql(backend.on_connect()).execute(&mut first).await.map_err(unreachable)?;
            first.close().await.map_err(unreachable)
        };
        retrying((&shown, &meter), (Again::Always, Duration::ZERO), first).await?;
        let pool = AnyPoolOptions::new()
            .max_connections(backend.connections())
            .acquire_timeout(CONNECT)
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
        store.retrying(Again::Always, async |_| store.update().await).await?;
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

    /// Returns its address, as shown in logs, and its meter.
    fn asked(&self) -> (&str, &Meter) {
        (&self.shown, &self.meter)
    }

    /// Returns the counters of its operations: their durations, retries and failures.
    #[must_use]
    pub fn metered(&self) -> Metered {
        self.meter.read()
    }

    /// Does `once` until it succeeds, fails for good, or its retries are used up.
    async fn retrying<T>(
        &self,
        again: Again,
        once: impl AsyncFn(Done) -> Result<T, Error>,
    ) -> Result<T, Error> {
        retrying(self.asked(), (again, Duration::ZERO), once).await
    }
}

/// Retries `once` on the store with the address `shown`, for at least `patience`. `once` receives whether it may have
/// been done before.
async fn retrying<T>(
    (shown, meter): (&str, &Meter),
    (again, patience): (Again, Duration),
    once: impl AsyncFn(Done) -> Result<T, Error>,
) -> Result<T, Error> {
    let began = Instant::now();
    let done = trying((shown, meter), (again, patience), once).await;
    meter.asked(began.elapsed(), done.as_ref().err());
    done
}

async fn trying<T>(
    (shown, meter): (&str, &Meter),
    (again, patience): (Again, Duration),
    once: impl AsyncFn(Done) -> Result<T, Error>,
) -> Result<T, Error> {
    let deadline = Instant::now() + patience;
    let mut before = Done::No;
    let mut pauses = PAUSES.into_iter();
    loop {
        let error = match once(before).await {
            Err(error) if again == Again::Always || !error.may_be_done() => error,
            result => return result,
        };
        let pause = match pauses.next() {
            Some(pause) if error.passes_soon() => pause,
            _ if error.is_transient() && Instant::now() < deadline => {
                tracing::warn!(store = %shown, error = report::chain(&error), "the store is waited for");
                LAST_PAUSE
            }
            _ => return Err(error),
        };
        if error.may_be_done() {
            before = Done::Perhaps;
        }
        tracing::debug!(store = %shown, %error, "the store is tried again");
        meter.again();
        tokio::time::sleep(pause).await;
    }
}

impl Tx {
    fn connection(&mut self) -> &mut AnyConnection {
        &mut self.inner
    }

    async fn commit(self, action: &'static str) -> Result<(), Error> {
        let perhaps = |source| Error::Failed { action, done: Done::Perhaps, source };
        self.inner.commit().await.map_err(perhaps)
    }
}
