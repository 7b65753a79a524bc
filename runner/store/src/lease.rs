//! Orders runs, and keeps the leases on them. Not here: how a worker gets a run that no worker holds (`claim`).

use std::fmt;

use platform_core::{
    grant::Correlation,
    id::{AccountId, AgentId, RunId},
    limit::Millis,
    priority::Priority,
};
use platform_runtime::random;
use sqlx::AnyConnection;

use super::{
    RetryWhen, Store, Tx,
    error::{Committed, Error, failed},
    row::{Run, columns, count, rank},
};

/// Longest text of an order: a question of 32 MiB with its quotes escaped would not get through the data plane either.
const MAX_ORDER: usize = 32 << 20;

/// A process that works on runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker(String);

impl Worker {
    /// Returns a worker with a name that the caller has made sure is unique.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// Returns this process: its host, its id, and random digits that distinguish it from another one with the same
    /// two.
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

/// The right to act for a run, until another worker takes it over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencingToken {
    /// The run.
    pub run_id: RunId,
    /// The epoch in whose name things are done.
    pub epoch: u64,
}

/// Run that is to be ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// Its id, by which it is ordered only once.
    pub run_id: RunId,
    /// Account that pays.
    pub account: AccountId,
    /// The agent to run.
    pub agent: AgentId,
    /// Ids of the application around.
    pub correlation: Correlation,
    /// Priority in the queue.
    pub priority: Priority,
    /// Session that it is a turn of, if other runs may be, too. Of one session one run is worked on at a time.
    pub session: Option<String>,
    /// Everything else that was asked for, as JSON: the same order has the same text.
    pub wanted: String,
}

/// Worker that a new run is for.
#[derive(Debug, Clone, Copy)]
pub enum Claimant<'w> {
    /// Any worker that claims it.
    AnyWorker,
    /// The worker that orders it, with a lease this long.
    Worker(&'w Worker, Millis),
}

/// Result of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// The run is new.
    New(Run),
    /// The run was ordered before, in just this way, and nothing was changed.
    Before(Run),
}

impl Run {
    /// Returns the hold of the worker that just got this run.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        FencingToken { run_id: self.run_id.clone(), epoch: self.epoch }
    }
}

const CREATE: &str = "INSERT INTO runs (run, installation, account, agent, correlation, wanted, priority, state, attempt, \
     epoch, lease_owner, lease_until, created, queued, changed, session, last_event) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, 'queued', 0, $8, $9, $10, $11, $11, $11, $12, 0) ON CONFLICT (run) DO NOTHING";
const AT_WORK: &str = "SELECT run FROM runs WHERE installation = $1 AND session = $2 AND ended IS NULL \
     AND lease_owner IS NOT NULL AND run <> $3 LIMIT 1";
const SAME: &str = "SELECT count(*) FROM runs WHERE run = $1 AND installation = $2 AND account = $3 AND agent = $4 \
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
    /// [`Error::ServesAnother`] on another host than the store's, [`Error::Conflict`] if the id stands for another
    /// order, [`Error::Full`] if enough wait and it is a new one for any worker.
    pub async fn create(&self, new: &NewRun, who: Claimant<'_>) -> Result<Created, Error> {
        if new.wanted.len() > MAX_ORDER {
            return Err(Error::TooLarge { what: "the order", bytes: new.wanted.len(), most: MAX_ORDER });
        }
        self.retry(RetryWhen::Always, async |before| self.create_once(new, who, before).await).await
    }

    async fn create_once(
        &self,
        new: &NewRun,
        who: Claimant<'_>,
        before: Committed,
    ) -> Result<Created, Error> {
        let action = "order a run";
        let mut tx = self.begin().await?;
        let (epoch, owner, until) = match who {
            Claimant::AnyWorker => {
                self.refuse_if_full(&mut tx, new).await?;
                (0, None, None)
            }
            Claimant::Worker(worker, span) => {
                self.refuse_if_busy(&mut tx, new).await?;
                (1, Some(worker.to_string()), Some(tx.after(span)))
            }
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
            .execute(tx.connection())
            .await
            .map_err(failed(action))?;
        let same: i64 = sqlx::query_scalar(SAME)
            .bind(new.run_id.as_str())
            .bind(self.installation.as_str())
            .bind(new.account.as_str())
            .bind(new.agent.as_str())
            .bind(&correlation)
            .bind(&new.wanted)
            .bind(rank(new.priority))
            .fetch_one(tx.connection())
            .await
            .map_err(failed(action))?;
        if same == 0 {
            return Err(Error::Conflict { run_id: new.run_id.clone() });
        }
        let run = self.find(&mut tx, &new.run_id).await?;
        self.check_host(&mut tx).await?;
        tx.commit(action).await?;
        // The answer to the commit before may have been lost: then the run is ours, and no other worker has touched it
        // since.
        let ours = before == Committed::Perhaps
            && epoch == 1
            && run.epoch == 1
            && run.lease.as_ref().map(|lease| &lease.owner) == owner.as_ref();
        Ok(if inserted.rows_affected() == 1 || ours { Created::New(run) } else { Created::Before(run) })
    }

    /// Refuses a run that would be worked on at once, while another run of its session is worked on.
    async fn refuse_if_busy(&self, tx: &mut Tx, new: &NewRun) -> Result<(), Error> {
        let Some(session) = &new.session else { return Ok(()) };
        self.lock_claims(tx).await?;
        let busy = sqlx::query_scalar(AT_WORK)
            .bind(self.installation.as_str())
            .bind(session)
            .bind(new.run_id.as_str())
            .fetch_optional(tx.connection())
            .await
            .map_err(failed("check whether a session is busy"))?;
        busy.map_or(Ok(()), |by: String| Err(Error::SessionBusy { by }))
    }

    /// Renews the lease: it lasts `span` from now.
    ///
    /// # Errors
    /// [`Error::Fenced`] if another worker has taken the run over.
    pub async fn renew(&self, hold: &FencingToken, span: Millis) -> Result<(), Error> {
        self.retry(RetryWhen::Always, async |_| self.renew_once(hold, span).await).await
    }

    async fn renew_once(&self, hold: &FencingToken, span: Millis) -> Result<(), Error> {
        let action = "renew a lease";
        let mut tx = self.begin().await?;
        self.fence(&mut tx, hold).await?;
        let until = tx.after(span);
        sqlx::query(RENEW)
            .bind(until)
            .bind(tx.now)
            .bind(hold.run_id.as_str())
            .execute(tx.connection())
            .await
            .map_err(failed(action))?;
        tx.commit(action).await
    }

    /// Returns the run, if `hold` still holds. No other process changes it until `tx` ends.
    pub(super) async fn fence(&self, tx: &mut Tx, hold: &FencingToken) -> Result<Run, Error> {
        let held = sqlx::query(FENCE)
            .bind(tx.now)
            .bind(hold.run_id.as_str())
            .bind(self.installation.as_str())
            .bind(i64::try_from(hold.epoch).unwrap_or(i64::MAX))
            .fetch_optional(tx.connection())
            .await
            .map_err(failed("check the lease on a run"))?;
        let now = tx.now;
        match held {
            Some(row) => Run::read(&row, now),
            None => Err(self.no_longer_held(tx.connection(), hold).await?),
        }
    }

    async fn no_longer_held(
        &self,
        connection: &mut AnyConnection,
        hold: &FencingToken,
    ) -> Result<Error, Error> {
        let row = sqlx::query(FIND)
            .bind(hold.run_id.as_str())
            .bind(self.installation.as_str())
            .fetch_optional(connection)
            .await
            .map_err(failed("look for a run"))?;
        let run = hold.run_id.clone();
        Ok(match row {
            None => Error::Unknown { run_id: run },
            Some(row) => Error::Fenced { run_id: run, held: hold.epoch, epoch: count(&row, "epoch")? },
        })
    }

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
    /// Returns the time at which `span` from now is over.
    pub(super) fn after(&self, span: Millis) -> i64 {
        self.now.saturating_add(i64::try_from(span.0).unwrap_or(i64::MAX))
    }
}
