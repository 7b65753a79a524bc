//! Removes old events of ended runs: those past a maximum age, and those of more runs than an account may keep.
//!
//! A run's row stays, with its order, its usage and its answer. Its last events, which contain the same, stay too. The
//! events of such a run begin with a greater number than 1. Not here: the interval between two prunings (`retention`).

use platform_core::{
    id::RunId,
    limit::{Millis, events::PRUNE_EVENTS},
};
use sqlx::Row;

use super::{
    Store, Tx,
    error::{Error, failed},
    row::parsed,
};

/// Bounds on the events that are kept of ended runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Time for which events are kept after the run's end.
    pub age: Millis,
    /// Number of runs per account that keep their events: those that ended last. A run that has only last events keeps
    /// them and does not count.
    pub runs: u32,
}

/// Numbers of runs and events that were pruned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Number of runs that were marked as pruned.
    pub runs: u64,
    /// Number of events that were removed.
    pub events: u64,
}

/// Number of last events that an ended run keeps. They contain its answer or error, its usage and its end.
const LAST_EVENTS: i64 = 3;
/// Maximum number of runs in one transaction. All of one run's events are removed at once, and those are bounded.
const MAX_RUNS: i64 = 64;

/// Selects runs that are too old, exceed the number of their account, or have nothing to remove. Runs of the last kind
/// are marked at once, so that no later pruning selects them. A run with only last events does not use up its account's
/// number.
const DUE: &str = "SELECT run FROM (\
       SELECT run, ended, last_event, row_number() OVER (\
         PARTITION BY account, CASE WHEN last_event > $2 THEN 1 ELSE 0 END ORDER BY ended DESC, run DESC) AS place \
       FROM runs WHERE installation = $1 AND ended IS NOT NULL AND pruned IS NULL) AS told \
     WHERE ended < $3 OR place > $4 OR last_event <= $2 ORDER BY ended, run LIMIT $5";
/// Marks a run as pruned. Of two processes at once, the second changes nothing.
const MARK: &str = "UPDATE runs SET pruned = CASE WHEN last_event > $1 THEN last_event - $1 ELSE 0 END \
     WHERE run = $2 AND ended IS NOT NULL AND pruned IS NULL RETURNING pruned";
const REMOVE: &str = "DELETE FROM events WHERE run = $1 AND seq <= $2";

const ACTION: &str = "remove events of ended runs";

impl Store {
    /// Removes events of ended runs beyond `keep`, as many as fit one short transaction. Returns zeros if nothing is
    /// left to remove. Concurrent calls are safe.
    pub async fn prune(&self, keep: Keep) -> Result<Pruned, Error> {
        self.retry(async || self.prune_once(keep).await).await
    }

    async fn prune_once(&self, keep: Keep) -> Result<Pruned, Error> {
        let mut tx = self.begin().await?;
        let mut pruned = Pruned::default();
        for run_id in self.runs_to_prune(&mut tx, keep).await? {
            if pruned.events >= PRUNE_EVENTS {
                break;
            }
            let Some(last_removed) = tx.mark_pruned(&run_id).await? else { continue };
            let removed =
                sqlx::query(REMOVE).bind(run_id.as_str()).bind(last_removed).execute(tx.connection()).await;
            pruned.runs += 1;
            pruned.events += removed.map_err(failed(ACTION))?.rows_affected();
        }
        tx.finish(ACTION, pruned).await
    }

    /// Returns the runs to prune, in the order in which they ended.
    async fn runs_to_prune(&self, tx: &mut Tx, keep: Keep) -> Result<Vec<RunId>, Error> {
        let too_old = tx.now.saturating_sub(i64::try_from(keep.age.0).unwrap_or(i64::MAX));
        let runs_to_prune = sqlx::query(DUE).bind(self.installation.as_str()).bind(LAST_EVENTS).bind(too_old);
        let runs_to_prune = runs_to_prune.bind(i64::from(keep.runs)).bind(MAX_RUNS);
        let runs_to_prune = runs_to_prune.fetch_all(tx.connection()).await.map_err(failed(ACTION))?;
        runs_to_prune.iter().map(|row| parsed(row, "run", |text| RunId::parse(text).ok())).collect()
    }
}

impl Tx {
    /// Marks the run `run_id` as pruned. Returns the number of the last event to remove; `None` if the run was marked
    /// before.
    async fn mark_pruned(&mut self, run_id: &RunId) -> Result<Option<i64>, Error> {
        let marked = sqlx::query(MARK).bind(LAST_EVENTS).bind(run_id.as_str());
        let marked = marked.fetch_optional(self.connection()).await.map_err(failed(ACTION))?;
        marked.map(|row| row.try_get("pruned").map_err(failed(ACTION))).transpose()
    }
}
