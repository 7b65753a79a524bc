//! Orders runs, and renews and checks the leases on them. Not here: giving a worker a run that no worker holds
//! (`claim`).

use std::{fmt, time::Duration};

use platform_core::{
    grant::Correlation,
    id::{AccountId, AgentId, RunId},
    limit::Millis,
    priority::Priority,
};
use platform_runtime::random;
use sqlx::AnyConnection;

use super::{
    NewTurn, RetryWhen, Store, Tx, UnixMillis,
    error::{Committed, Error, failed},
    row::{Run, columns, count, rank, storable},
};

/// Longest text of an order: the data plane would refuse a call with a longer question anyway.
const MAX_ORDER: usize = 32 << 20;

/// Name of a process that claims and executes runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker(String);

impl Worker {
    /// Returns a worker called `name`. The caller ensures that the name is unique.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// Returns the name of this process: its host, its process id, and random digits. The digits distinguish it from
    /// another process with the same host and id.
    #[must_use]
    pub fn this_process() -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = if host.trim().is_empty() { "host" } else { host.trim() };
        Self(format!("{host}/{}/{:08x}", std::process::id(), random::bits() & 0xffff_ffff))
    }
}

impl fmt::Display for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Right to act for a run, until another worker takes the run over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencingToken {
    /// The run.
    pub run_id: RunId,
    /// Epoch of the lease: the store refuses the token once the run has a later one.
    pub epoch: u64,
}

/// Order of a new run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// Id of the run, by which it is ordered only once.
    pub run_id: RunId,
    /// Account that pays.
    pub account: AccountId,
    /// Agent to run.
    pub agent: AgentId,
    /// Ids by which the application knows the run.
    pub correlation: Correlation,
    /// Priority in the queue.
    pub priority: Priority,
    /// Session that the run is a turn of, if other runs may be turns of it, too. Runs of one session are executed one
    /// at a time.
    pub session: Option<String>,
    /// Turn of a thread that the run is; absent if it belongs to none.
    pub turn: Option<NewTurn>,
    /// Model that the order names, which lists show.
    pub model: Option<String>,
    /// Beginning of the question, which lists show. Part of the order below.
    pub question: Option<String>,
    /// Rest of the order, as JSON. The same order has the same text.
    pub wanted: String,
}

/// Worker that may execute a new run.
#[derive(Debug, Clone, Copy)]
pub enum Claimant<'w> {
    /// Any worker that claims the run from the queue.
    AnyWorker,
    /// Worker that orders the run, with a lease of this length.
    Worker(&'w Worker, Millis),
}

/// Result of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// The run is new.
    New(Run),
    /// The same run was ordered before, and nothing was changed.
    Existing(Run),
}

impl Run {
    /// Returns the fencing token of the worker that claimed this run last.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        FencingToken { run_id: self.run_id.clone(), epoch: self.epoch }
    }
}

const CREATE: &str = "INSERT INTO runs (run, installation, account, agent, correlation, wanted, priority, state, attempt, \
     epoch, lease_owner, lease_until, created, queued, changed, session, model, question_start, last_event) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, 'queued', 0, $8, $9, $10, $11, $11, $11, $12, $13, $14, 0) ON CONFLICT (run) DO NOTHING";
const ACTIVE_IN_SESSION: &str = "SELECT run FROM runs WHERE installation = $1 AND session = $2 AND ended IS NULL \
     AND lease_owner IS NOT NULL AND run <> $3 LIMIT 1";
const COUNT_SAME: &str = "SELECT count(*) FROM runs WHERE run = $1 AND installation = $2 AND account = $3 AND agent = $4 \
     AND correlation = $5 AND wanted = $6 AND priority = $7";
const FIND: &str = concat!("SELECT ", columns!(), " FROM runs WHERE run = $1 AND installation = $2");
const RENEW: &str = "UPDATE runs SET lease_until = $1, changed = $2 WHERE run = $3 AND ended IS NULL";
const FENCE: &str = concat!(
    "UPDATE runs SET changed = $1 WHERE run = $2 AND installation = $3 AND epoch = $4 RETURNING ",
    columns!()
);

impl Store {
    /// Orders a run. The same order again returns the same run.
    ///
    /// # Errors
    /// [`Error::ServesAnother`] if the store serves another host. [`Error::Conflict`] if the id belongs to another
    /// order. [`Error::Full`] if the queue is full and the run is a new one for any worker. [`Error::SessionBusy`] if a
    /// worker orders a run for itself while another run of its session is active. [`Error::ThreadBusy`] if the run's
    /// thread has gone on meanwhile.
    pub async fn create(&self, new: &NewRun, claimant: Claimant<'_>) -> Result<Created, Error> {
        if new.wanted.len() > MAX_ORDER {
            return Err(Error::TooLarge { what: "the order", bytes: new.wanted.len(), most: MAX_ORDER });
        }
        let once = async |earlier_try| self.create_once(new, claimant, earlier_try).await;
        self.retrier(Duration::ZERO).run(RetryWhen::Always, once).await
    }

    async fn create_once(
        &self,
        new: &NewRun,
        claimant: Claimant<'_>,
        earlier_try: Committed,
    ) -> Result<Created, Error> {
        let action = "order a run";
        let mut tx = self.begin().await?;
        let (epoch, owner, until) = match claimant {
            Claimant::AnyWorker => {
                self.refuse_if_full(&mut tx, new).await?;
                (0, None, None)
            }
            Claimant::Worker(worker, span) => (1, Some(worker.to_string()), Some(tx.after(span))),
        };
        let correlation = serde_json::to_string(&new.correlation).unwrap_or_default();
        let inserted = sqlx::query(CREATE)
            .bind(new.run_id.as_str())
            .bind(self.installation.as_str())
            .bind(new.account.as_str())
            .bind(new.agent.as_str())
            .bind(&correlation)
            .bind(&new.wanted)
            .bind(rank(new.priority))
            .bind(epoch)
            .bind(&owner)
            .bind(until)
            .bind(tx.now)
            .bind(&new.session)
            .bind(new.model.as_deref().map(storable))
            .bind(new.question.as_deref().map(storable))
            .execute(tx.connection())
            .await
            .map_err(failed(action))?;
        self.refuse_if_other(&mut tx, new, &correlation).await?;
        if let Some(turn) = &new.turn {
            self.add_turn(&mut tx, &new.run_id, &new.account, turn).await?;
        }
        if matches!(claimant, Claimant::Worker(..)) {
            self.refuse_if_busy(&mut tx, new).await?;
        }
        let run = self.find(&mut tx, &new.run_id).await?;
        self.check_host(&mut tx).await?;
        tx.changed.states.push(new.run_id.clone());
        tx.commit(action).await?;
        // An earlier try may have been committed without an answer. Then the run is new if the caller still has its
        // first lease.
        let committed_earlier = earlier_try == Committed::Perhaps
            && epoch == 1
            && run.epoch == 1
            && run.lease.as_ref().map(|lease| &lease.owner) == owner.as_ref();
        Ok(if inserted.rows_affected() == 1 || committed_earlier {
            Created::New(run)
        } else {
            Created::Existing(run)
        })
    }

    /// Refuses a run if its id belongs to another order.
    async fn refuse_if_other(&self, tx: &mut Tx, new: &NewRun, correlation: &str) -> Result<(), Error> {
        let same_orders: i64 = sqlx::query_scalar(COUNT_SAME)
            .bind(new.run_id.as_str())
            .bind(self.installation.as_str())
            .bind(new.account.as_str())
            .bind(new.agent.as_str())
            .bind(correlation)
            .bind(&new.wanted)
            .bind(rank(new.priority))
            .fetch_one(tx.connection())
            .await
            .map_err(failed("order a run"))?;
        if same_orders == 0 { Err(Error::Conflict { run_id: new.run_id.clone() }) } else { Ok(()) }
    }

    /// Refuses a run for the ordering worker while another run of its session is active.
    async fn refuse_if_busy(&self, tx: &mut Tx, new: &NewRun) -> Result<(), Error> {
        let Some(session) = &new.session else { return Ok(()) };
        self.lock_claims(tx).await?;
        let active = sqlx::query_scalar(ACTIVE_IN_SESSION)
            .bind(self.installation.as_str())
            .bind(session)
            .bind(new.run_id.as_str())
            .fetch_optional(tx.connection())
            .await
            .map_err(failed("check whether a session is busy"))?;
        active.map_or(Ok(()), |by: String| Err(Error::SessionBusy { by }))
    }

    /// Renews the lease: it lasts `span` from now.
    ///
    /// # Errors
    /// [`Error::Fenced`] if another worker has taken the run over.
    pub async fn renew(&self, token: &FencingToken, span: Millis) -> Result<(), Error> {
        self.retry(async || self.renew_once(token, span).await).await
    }

    async fn renew_once(&self, token: &FencingToken, span: Millis) -> Result<(), Error> {
        let action = "renew a lease";
        let mut tx = self.begin().await?;
        self.fence(&mut tx, token).await?;
        let until = tx.after(span);
        sqlx::query(RENEW)
            .bind(until)
            .bind(tx.now)
            .bind(token.run_id.as_str())
            .execute(tx.connection())
            .await
            .map_err(failed(action))?;
        tx.commit(action).await
    }

    /// Returns the run if `token` is still valid. No other process changes the run until `tx` ends.
    pub(super) async fn fence(&self, tx: &mut Tx, token: &FencingToken) -> Result<Run, Error> {
        let row = sqlx::query(FENCE)
            .bind(tx.now)
            .bind(token.run_id.as_str())
            .bind(self.installation.as_str())
            .bind(i64::try_from(token.epoch).unwrap_or(i64::MAX))
            .fetch_optional(tx.connection())
            .await
            .map_err(failed("check the lease on a run"))?;
        let now = tx.now;
        match row {
            Some(row) => Run::read(&row, now),
            None => Err(self.fencing_error(tx.connection(), token).await?),
        }
    }

    /// Returns the error for a token that is not valid.
    async fn fencing_error(
        &self,
        connection: &mut AnyConnection,
        token: &FencingToken,
    ) -> Result<Error, Error> {
        let row = sqlx::query(FIND)
            .bind(token.run_id.as_str())
            .bind(self.installation.as_str())
            .fetch_optional(connection)
            .await
            .map_err(failed("look for a run"))?;
        let run_id = token.run_id.clone();
        Ok(match row {
            None => Error::Unknown { run_id },
            Some(row) => Error::Fenced { run_id, held: token.epoch, epoch: count(&row, "epoch")? },
        })
    }

    /// Returns the run `run_id`.
    pub(super) async fn find(&self, tx: &mut Tx, run_id: &RunId) -> Result<Run, Error> {
        let now = tx.now;
        let row = sqlx::query(FIND)
            .bind(run_id.as_str())
            .bind(self.installation.as_str())
            .fetch_optional(tx.connection())
            .await
            .map_err(failed("look for a run"))?;
        row.map_or_else(|| Err(Error::Unknown { run_id: run_id.clone() }), |row| Run::read(&row, now))
    }
}

impl Tx {
    /// Returns the time that is `span` from now.
    pub(super) fn after(&self, span: Millis) -> i64 {
        UnixMillis(self.now).after(span).0
    }
}
