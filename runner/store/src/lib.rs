//! Stores what the control plane must not forget: runs, their resources, their events, and the cursors of consumers.
//!
//! SQLite (one file, the default) and Postgres have the same interface. Either serves one host (`host`), on which
//! several programs may use it. Both run the same statements through one pool of sqlx's `Any` driver. The few
//! differences are in `backend`.
//!
//! Every operation is one transaction. All times come from the database's clock, read once per transaction. On Postgres
//! that is the server's clock, on SQLite the host's. A change to a run needs a [`FencingToken`], and is refused once
//! the run has a later epoch. An expired lease alone does not invalidate the token. It lets another worker take the run
//! over, and that raises the epoch. Until then the holder may continue and renew the lease.
//!
//! Transient failures (a lock, a lost connection) are retried where a retry cannot do the operation twice. There are
//! four retries, with delays of about two seconds in total. A step of a run can wait longer: [`Store::insist`]. Every
//! operation fails if the store does. Sections on errors name only other reasons, and what a failure leaves behind.
//!
//! Does not execute a run, and does not decide what may be removed. The meaning of each transition is in
//! [`runner_model::lifecycle`]; the engine makes the transitions.
//!
//! Start reading at [`Store`], then `step` (a run's transitions), `lease` (the right to make them) and `queue`.
//!
//! Invariants: a step is stored before anything acts on it. An old epoch is fenced. A store serves one host.

mod accepted_tools;
mod address;
mod adjustments;
mod answer_events;
mod backend;
mod backup;
mod balances;
mod bounds;
mod browser_sessions;
mod calls;
mod cancel;
mod changes;
mod claim;
mod connection_place;
mod connection_refresh;
mod connections;
mod csp_reports;
mod cursors;
mod error;
mod error_class;
mod error_code;
mod events;
mod find;
mod forget;
mod gateway_agent_files;
mod gateway_agents;
mod gateway_sessions;
mod host;
mod host_file;
mod identity;
mod lease;
mod ledger;
mod ledger_report;
mod list_facts;
mod listener;
mod meter;
mod month;
mod notification;
mod overview;
#[cfg(test)]
mod plan_tests;
mod pool;
mod position;
mod present;
mod principals;
mod proposals;
mod prune;
mod queue;
mod queue_full;
mod read;
mod receipt_sums;
mod receipts;
mod reconciliation;
mod relays;
mod resource;
mod retry;
mod row;
mod run_sums;
mod schema;
mod session_turns;
mod sign_in_links;
mod statement;
mod step;
mod stored_tool_calls;
mod thread_list;
mod thread_workspaces;
mod threads;
mod time;
mod time_grid;
mod tool_approvals;
mod tool_call_state;
mod tool_calls;
mod top_ups;
mod usage_sums;

use std::{sync::Arc, time::Duration};

use platform_core::id::InstallationId;
use platform_runtime::task;
use sqlx::{
    Any, AnyConnection, ConnectOptions, Connection, Transaction,
    any::{AnyPoolOptions, install_default_drivers},
    pool::Pool,
};

pub use platform_core::host_tools::ToolCallState;

pub use self::{
    accepted_tools::{AcceptedTool, NewAcceptance},
    address::Address,
    adjustments::Adjusted,
    backup::{Onto, Rows},
    balances::Balance,
    bounds::Bounds,
    browser_sessions::{BROWSER_SESSION_IDLE_TIMEOUT, MAX_BROWSER_SESSION_AGE},
    calls::{CALLS_CONSUMER, CallPlace, JournalCall, RecordedCall},
    changes::{ChangesLost, RunChanges, RunWatcher, StateChanges, StateWatcher},
    connection_place::{ConnectionPlace, MAX_CONNECTIONS},
    connection_refresh::{RefreshClaim, RefreshEnd, RefreshLease},
    connections::{AtSamePlace, NewConnection, SealedText, StoredConnection},
    csp_reports::{CspReport, KEPT_CSP_REPORTS, StoredCspReport},
    cursors::ConsumerCursor,
    error::{Committed, Error, HostIdFault},
    error_class::ErrorClass,
    events::Batch,
    find::AccountScope,
    gateway_agent_files::{BehaviourFileStored, StoredBehaviourFile},
    gateway_agents::{
        GatewayAgent, GatewayAgentAdded, GatewayAgentChanged, GatewayAgentKey, GatewayAgentSettings,
        MAX_GATEWAY_AGENTS, NewGatewayAgent,
    },
    gateway_sessions::GatewaySession,
    host::Adopted,
    identity::{HostId, HostIdentity, Served},
    lease::{Claimant, Created, FencingToken, NewRun, Worker},
    ledger::{Comparison, ComparisonTerms, EarlierPass},
    ledger_report::{LedgerDifference, LedgerReport, LedgerSpan},
    list_facts::ListFacts,
    meter::StoreMetrics,
    month::{InvalidMonth, Month},
    overview::{RunWaits, RunsEnded, UsageSums, WAIT_BOUNDS},
    pool::{PoolEntry, PoolStage, WarmContainer},
    position::{EventCursor, OutputPosition, ReportedEvents},
    present::Present,
    principals::{NewPrincipal, Principal},
    proposals::{
        MAX_OPEN_PROPOSALS, NewProposal, ProposalAdded, ProposalPlace, ProposalProgress, StoredProposal,
    },
    prune::{Keep, Pruned},
    queue::{Queue, QueuePosition, Waiting},
    queue_full::{QueueBound, QueueFull},
    read::{Event, Filter, Page, RunHistory, RunRecord},
    receipt_sums::ReceiptSums,
    receipts::{ReceiptFilter, ReceiptPlace, StoredReceipt},
    reconciliation::{LastLedgerPass, LedgerAdvance, LedgerLease, LedgerProgress, UnfinishedPass},
    relays::{NewRelay, RelayProgress, StoredRelay},
    resource::{Resource, ResourceChange, ResourceKind, ResourceState},
    row::{Lease, Run},
    schema::SCHEMA,
    session_turns::SessionThread,
    sign_in_links::MAX_SIGN_IN_LINK_AGE,
    statement::{Statement, StatementLine},
    step::Step,
    stored_tool_calls::{StoredToolCall, ToolCallPlace},
    thread_list::Thread,
    thread_workspaces::{ThreadClaim, ThreadWorkspace, ThreadWorkspaceKey},
    threads::{NewTurn, ThreadTurn, TurnPlace},
    time::UnixMillis,
    time_grid::{SumSpan, TimeGrid},
    tool_approvals::{DecideError, ToolDecision, ToolVerdict, Withdrawal},
    tool_calls::{ApprovalWait, NewToolCall, ToolCallBegun, ToolCallEnd},
    top_ups::{NewTopUp, TopUp, TopUpAdded},
};
use self::{
    backend::Backend,
    changes::ChangedRuns,
    error::failed,
    listener::StoreListener,
    meter::Meter,
    retry::{Retrier, RetryWhen},
};

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Open store, as one installation sees it. Allows only reads until [`Store::serving`] sets the host. Clones share the
/// connections.
#[derive(Debug, Clone)]
pub struct Store {
    pool: Pool<Any>,
    backend: Backend,
    /// Address without a password, for messages.
    address: Arc<str>,
    installation: InstallationId,
    meter: Arc<Meter>,
    bounds: Bounds,
    changes: RunChanges,
    listener: Arc<StoreListener>,
    /// Host of this process; absent while only reads are allowed.
    host: Option<HostIdentity>,
}

/// Transaction, with the time at which it began.
struct Tx {
    inner: Transaction<'static, Any>,
    backend: Backend,
    now: i64,
    changed: ChangedRuns,
    changes: RunChanges,
    /// Channel on which other processes hear of the changes; absent if the database has none.
    channel: Option<Arc<str>>,
}

impl Store {
    /// Opens the store at `address`, creates it if it does not exist, and migrates an older one. Any number of runs may
    /// wait in it, unless it is [`bounded`](Self::bounded).
    ///
    /// # Errors
    /// If it cannot be reached, or a later program has changed its schema.
    pub async fn open(address: &Address, installation: InstallationId) -> Result<Self, Error> {
        address.prepare()?;
        install_default_drivers();
        let backend = address.backend;
        let shown_address = address.to_string();
        let meter = Arc::<Meter>::default();
        let unreachable = |source| Error::Unreachable { store: shown_address.clone(), source };
        // Connects once without the pool: the pool would retry until its timeout and hide the cause.
        let connect_once = async |_| {
            let mut connection = address.options.connect().await.map_err(unreachable)?;
            sqlx::raw_sql(backend.on_connect()).execute(&mut connection).await.map_err(unreachable)?;
            connection.close().await.map_err(unreachable)
        };
        let retrier = Retrier { store: &shown_address, meter: &meter, max_wait: Duration::ZERO };
        retrier.run(RetryWhen::Always, connect_once).await?;
        let pool = AnyPoolOptions::new()
            .max_connections(address.connections)
            .acquire_timeout(CONNECT_TIMEOUT)
            .after_connect(move |connection, _meta| {
                Box::pin(
                    async move { sqlx::raw_sql(backend.on_connect()).execute(connection).await.map(drop) },
                )
            })
            .connect_with(address.options.clone())
            .await
            .map_err(unreachable)?;
        let store = Self {
            pool,
            backend,
            listener: Arc::new(StoreListener::of(address, &installation)),
            address: shown_address.into(),
            installation,
            meter,
            bounds: Bounds::NONE,
            changes: RunChanges::default(),
            host: None,
        };
        store.retry(async || store.migrate_to_newest().await).await?;
        Ok(store)
    }

    /// Closes the connections. Committed changes are durable even without this call.
    pub async fn close(self) {
        self.pool.close().await;
    }

    /// Returns the store's address, without a password, and its schema.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("{}, schema {SCHEMA}", self.address)
    }

    /// Migrates the schema to the newest version; one program at a time.
    async fn migrate_to_newest(&self) -> Result<(), Error> {
        let mut connection = self.pool.acquire().await.map_err(failed("reach the store"))?;
        if schema::version(&mut connection, self.backend, &self.address).await? == SCHEMA {
            return Ok(());
        }
        drop(connection);
        let mut tx = self.begin().await?;
        schema::lock(&mut tx).await?;
        let found = schema::version(tx.connection(), self.backend, &self.address).await?;
        schema::migrate(&mut tx, found, SCHEMA).await?;
        tx.commit("change the store's schema").await
    }

    /// Begins a transaction that may write.
    async fn begin(&self) -> Result<Tx, Error> {
        self.begin_with(self.backend.begin()).await
    }

    async fn begin_with(&self, statement: &'static str) -> Result<Tx, Error> {
        let action = "begin a transaction";
        // Its own task ends even if the caller is cancelled, and then drops the transaction, which rolls it back.
        // sqlx itself returns a connection to the pool within a transaction if its `BEGIN` is cancelled under way.
        let pool = self.pool.clone();
        let begun = task::spawn("begin", async move { pool.begin_with(statement).await });
        let begun = begun.await.unwrap_or(Err(sqlx::Error::WorkerCrashed));
        let mut inner = begun.map_err(failed(action))?;
        let now = sqlx::query_scalar(self.backend.now());
        let now = now.fetch_one(&mut *inner).await.map_err(failed(action))?;
        Ok(Tx {
            inner,
            backend: self.backend,
            now,
            changed: ChangedRuns::default(),
            changes: self.changes.clone(),
            channel: self.listener.channel(),
        })
    }

    /// Returns the counters of the store's operations: their durations, retries and failures.
    #[must_use]
    pub fn metered(&self) -> StoreMetrics {
        self.meter.read()
    }
}

impl Tx {
    fn connection(&mut self) -> &mut AnyConnection {
        &mut self.inner
    }

    /// Commits the transaction, and returns `value`.
    async fn finish<T>(self, action: &'static str, value: T) -> Result<T, Error> {
        self.commit(action).await.map(|()| value)
    }

    async fn commit(mut self, action: &'static str) -> Result<(), Error> {
        self.notify_others().await?;
        let unconfirmed = |source| Error::Failed { action, committed: Committed::Perhaps, source };
        let committed = self.inner.commit().await.map_err(unconfirmed);
        // Also reported if the commit is unconfirmed: it may have happened, and a report only makes readers look.
        self.changes.report(self.changed);
        committed
    }
}
