//! Bounds the number of waiting runs, and refuses an order beyond it.
//!
//! An order that is stored already is never refused, whatever the number of waiting runs: a client that repeats it gets
//! its run. The transaction that stores an order counts the waiting runs. A lock serializes these transactions.

use std::time::Duration;

use platform_core::id::{AccountId, RunId};
use sqlx::Row;

use super::{
    NewRun, Store, Tx, UnixMillis,
    error::{Error, failed},
    queue_full::{QueueBound, QueueFull},
    row::count,
};

/// Interval before now in which claims count as recent.
const RECENT_INTERVAL: Duration = Duration::from_secs(300);
/// Shortest delay before a refused client is to try again.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Longest delay before a refused client is to try again.
const MAX_RETRY_DELAY: Duration = RECENT_INTERVAL;

/// Bounds on the number of waiting runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bound of the whole installation.
    pub all: u32,
    /// Bound of one account.
    pub of_account: u32,
}

impl Bounds {
    /// Bounds that refuse no order.
    pub const NONE: Self = Self { all: u32::MAX, of_account: u32::MAX };
}

const COUNT_RUN: &str = "SELECT count(*) FROM runs WHERE run = $1";
const RECENT_CLAIMS: &str = "SELECT count(*) AS taken, min(claimed) AS first_taken, max(claimed) AS last_taken FROM runs \
     WHERE installation = $1 AND claimed > $2";
const RECENT_CLAIMS_OF_ACCOUNT: &str = "SELECT count(*) AS taken, min(claimed) AS first_taken, max(claimed) AS last_taken \
     FROM runs WHERE installation = $1 AND account = $3 AND priority IN (0, 1, 2) AND claimed > $2";

/// Runs that were claimed within [`RECENT_INTERVAL`].
pub(super) struct RecentClaims {
    pub(super) runs: u64,
    first: Option<i64>,
    last: Option<i64>,
}

impl RecentClaims {
    /// Returns the delay until the queue may have room again, if claims continue at their recent rate. If the last
    /// claim was some time ago, the delay is at least that time.
    fn retry_after(&self, now: i64) -> Duration {
        let elapsed_since = |at: i64| UnixMillis(at).until(UnixMillis(now));
        let Some((first, last)) = self.first.zip(self.last) else { return MAX_RETRY_DELAY };
        let Ok(runs) = u32::try_from(self.runs.max(1)) else { return MAX_RETRY_DELAY };
        let seconds = (elapsed_since(first) / runs).max(elapsed_since(last)).as_millis().div_ceil(1000);
        Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX))
            .clamp(MIN_RETRY_DELAY, MAX_RETRY_DELAY)
    }
}

impl Store {
    /// Returns the same store, which refuses orders beyond `bounds`.
    #[must_use]
    pub const fn bounded(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// Refuses a new order if enough runs wait. No other process stores an order until `tx` ends.
    pub(super) async fn refuse_if_full(&self, tx: &mut Tx, new: &NewRun) -> Result<(), Error> {
        self.lock_orders(tx).await?;
        if self.is_stored(tx, &new.run_id).await? {
            Ok(())
        } else {
            self.refuse_beyond(tx, &new.account).await
        }
    }

    /// Locks orders: no other process stores one until `tx` ends.
    pub(super) async fn lock_orders(&self, tx: &mut Tx) -> Result<(), Error> {
        if let Some(lock) = self.backend.lock_orders() {
            let lock = sqlx::query(lock).bind(self.installation.as_str());
            lock.execute(tx.connection()).await.map_err(failed("wait for the lock on orders"))?;
        }
        Ok(())
    }

    /// Refuses another waiting run of `account` if enough wait. Orders are locked.
    pub(super) async fn refuse_beyond(&self, tx: &mut Tx, account: &AccountId) -> Result<(), Error> {
        let Bounds { all, of_account } = self.bounds;
        let (waiting, waiting_of_account) = self.waiting(tx, account).await?;
        let (bound, waiting, most) = if waiting_of_account >= u64::from(of_account) {
            (QueueBound::Account(account.clone()), waiting_of_account, of_account)
        } else if waiting >= u64::from(all) {
            (QueueBound::All, waiting, all)
        } else {
            return Ok(());
        };
        let claims = self.recent_claims(tx, &bound).await?;
        let lately = claims.runs;
        let retry_after = claims.retry_after(tx.now);
        Err(Error::Full(Box::new(QueueFull { bound, waiting, most, lately, retry_after })))
    }

    async fn is_stored(&self, tx: &mut Tx, run_id: &RunId) -> Result<bool, Error> {
        let stored = sqlx::query_scalar(COUNT_RUN).bind(run_id.as_str());
        let stored: i64 = stored.fetch_one(tx.connection()).await.map_err(failed("look for a run"))?;
        Ok(stored > 0)
    }

    /// Returns the runs under `bound` that were claimed within [`RECENT_INTERVAL`].
    pub(super) async fn recent_claims(&self, tx: &mut Tx, bound: &QueueBound) -> Result<RecentClaims, Error> {
        let action = "count recent claims";
        let since = tx.now - i64::try_from(RECENT_INTERVAL.as_millis()).unwrap_or(i64::MAX);
        let query = match bound {
            QueueBound::All => sqlx::query(RECENT_CLAIMS).bind(self.installation.as_str()).bind(since),
            QueueBound::Account(account) => sqlx::query(RECENT_CLAIMS_OF_ACCOUNT)
                .bind(self.installation.as_str())
                .bind(since)
                .bind(account.as_str()),
        };
        let row = query.fetch_one(tx.connection()).await.map_err(failed(action))?;
        Ok(RecentClaims {
            runs: count(&row, "taken")?,
            first: row.try_get("first_taken").map_err(failed(action))?,
            last: row.try_get("last_taken").map_err(failed(action))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_retry_delay_follows_recent_claims() {
        let claims = |runs, first, last| RecentClaims { runs, first: Some(first), last: Some(last) };
        for (recent, seconds) in [
            (RecentClaims { runs: 0, first: None, last: None }, 300),
            // Ten in ten seconds.
            (claims(10, 290_000, 299_500), 1),
            // Ten in four minutes.
            (claims(10, 60_000, 290_000), 24),
            // A hundred in no time, and none since.
            (claims(100, 100_000, 101_000), 199),
            (claims(1, 300_000, 300_000), 1),
            // By a clock that was set back.
            (claims(1, 400_000, 400_000), 1),
        ] {
            assert_eq!(recent.retry_after(300_000).as_secs(), seconds);
        }
    }
}
