//! Reads the queue of runs that wait for a worker. Not here: its bounds (`bounds`), and the order of claims (`claim`).

use std::time::Duration;

use platform_core::{id::AccountId, priority::Priority};
use runner_model::lifecycle::State;
use serde::Serialize;
use sqlx::Row;

use super::{
    Run, Store, Tx, UnixMillis,
    error::{Error, failed},
    queue_full::QueueBound,
    row::{count, rank},
};

/// Condition for a waiting run. All statements about such runs use it, because an index covers exactly these rows.
macro_rules! waiting {
    ($installation:literal) => {
        concat!("installation = ", $installation, " AND state = 'queued' AND lease_owner IS NULL")
    };
}
pub(super) use waiting;

/// State of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    /// Numbers of waiting runs.
    pub waiting: Waiting,
    /// Time for which the oldest run has waited.
    pub oldest: Option<Duration>,
}

/// Numbers of waiting runs, by priority.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Runs of low priority.
    pub low: u64,
    /// Runs of normal priority.
    pub normal: u64,
    /// Runs of high priority.
    pub high: u64,
}

impl Waiting {
    /// Returns the number of runs of `priority`.
    #[must_use]
    pub const fn of(&self, priority: Priority) -> u64 {
        match priority {
            Priority::Low => self.low,
            Priority::Normal => self.normal,
            Priority::High => self.high,
        }
    }

    /// Returns the number of all waiting runs.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.low + self.normal + self.high
    }
}

/// Position of a waiting run in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct QueuePosition {
    /// Number of runs of the same account and priority that are claimed earlier.
    pub ahead: u64,
    /// Number of all waiting runs.
    pub waiting: u64,
    /// Number of runs that a worker holds.
    pub held: u64,
    /// Number of runs that were claimed in the last five minutes.
    #[serde(rename = "taken_lately")]
    pub lately: u64,
}

const COUNT_WAITING: &str = concat!(
    "SELECT count(*) AS waiting, count(CASE WHEN account = $2 THEN 1 END) AS of_account FROM runs WHERE ",
    waiting!("$1")
);
const QUEUE: &str = concat!(
    "SELECT count(CASE WHEN priority = 0 THEN 1 END) AS low, count(CASE WHEN priority = 1 THEN 1 END) AS normal, \
     count(CASE WHEN priority = 2 THEN 1 END) AS high, min(queued) AS since FROM runs WHERE ",
    waiting!("$1")
);
const AHEAD: &str = concat!(
    "SELECT count(*) AS ahead FROM runs WHERE ",
    waiting!("$1"),
    " AND account = $2 AND priority = $3 AND queued <= $4 AND (queued < $4 OR run < $5)"
);
const HELD: &str =
    "SELECT count(*) AS held FROM runs WHERE installation = $1 AND ended IS NULL AND lease_owner IS NOT NULL";

impl Store {
    /// Returns the state of the queue.
    pub async fn queue(&self) -> Result<Queue, Error> {
        let action = "read the queue";
        self.read(async |mut tx| {
            let query = sqlx::query(QUEUE).bind(self.installation.as_str());
            let row = query.fetch_one(tx.connection()).await.map_err(failed(action))?;
            let oldest: Option<i64> = row.try_get("since").map_err(failed(action))?;
            let now = UnixMillis(tx.now);
            tx.commit(action).await?;
            let waiting = Waiting {
                low: count(&row, "low")?,
                normal: count(&row, "normal")?,
                high: count(&row, "high")?,
            };
            Ok(Queue { waiting, oldest: oldest.map(|oldest| UnixMillis(oldest).until(now)) })
        })
        .await
    }

    /// Returns the number of runs of the same account and priority that are claimed before `run`. Returns `None` if
    /// `run` does not wait.
    pub async fn ahead(&self, run: &Run) -> Result<Option<u64>, Error> {
        if run.state != State::Queued || run.lease.is_some() {
            return Ok(None);
        }
        self.retry(async || {
            let ahead = sqlx::query(AHEAD)
                .bind(self.installation.as_str())
                .bind(run.account.as_str())
                .bind(rank(run.priority))
                .bind(run.queued.0)
                .bind(run.run_id.as_str());
            let row = ahead.fetch_one(&self.pool).await.map_err(failed("count the runs before a run"))?;
            count(&row, "ahead").map(Some)
        })
        .await
    }

    /// Returns the position of `run` in the queue; `None` if it does not wait.
    pub async fn queue_position(&self, run: &Run) -> Result<Option<QueuePosition>, Error> {
        let Some(ahead) = self.ahead(run).await? else { return Ok(None) };
        let action = "read the queue position of a run";
        self.read(async |mut tx| {
            let held = sqlx::query(HELD).bind(self.installation.as_str());
            let held = held.fetch_one(tx.connection()).await.map_err(failed(action))?;
            let (waiting, _) = self.waiting(&mut tx, &run.account).await?;
            let lately = self.recent_claims(&mut tx, &QueueBound::All).await?.runs;
            tx.commit(action).await?;
            Ok(Some(QueuePosition { ahead, waiting, held: count(&held, "held")?, lately }))
        })
        .await
    }

    /// Returns the number of waiting runs, and the number of those of `account`.
    pub(super) async fn waiting(&self, tx: &mut Tx, account: &AccountId) -> Result<(u64, u64), Error> {
        let waiting = sqlx::query(COUNT_WAITING).bind(self.installation.as_str()).bind(account.as_str());
        let row = waiting.fetch_one(tx.connection()).await.map_err(failed("count waiting runs"))?;
        Ok((count(&row, "waiting")?, count(&row, "of_account")?))
    }
}
