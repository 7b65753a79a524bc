//! Reads the events of a run's last attempt that are parts of its answer.

use platform_core::{event::Phase, id::RunId};

use super::{
    Run, Store,
    error::{Error, failed},
    events::{PAGE_SIZE, status_event},
    read::Event,
};

/// A restart stores this event first.
const ATTEMPT_BEGIN: &str = "SELECT COALESCE(max(seq), 0) FROM events WHERE run = $1 AND payload = $2";
/// Logs are most events, and no part of an answer.
const LIST: &str = "SELECT seq, at, kind, payload FROM events WHERE run = $1 AND seq > $2 \
     AND kind NOT IN ('log', 'log_cut') ORDER BY seq LIMIT $3";

impl Store {
    /// Returns the number of the last event before those of the run's attempt; 0 for the first attempt.
    pub async fn attempt_begin(&self, run: &Run) -> Result<u64, Error> {
        if run.attempt == 0 {
            return Ok(0);
        }
        let begin = serde_json::to_string(&status_event(Phase::Queued)).unwrap_or_default();
        self.retry(async || {
            let seq = sqlx::query_scalar(ATTEMPT_BEGIN).bind(run.run_id.as_str()).bind(&begin);
            let seq: i64 = seq.fetch_one(&self.pool).await.map_err(failed("find the begin of an attempt"))?;
            Ok(u64::try_from(seq).unwrap_or_default())
        })
        .await
    }

    /// Returns at most 256 events of a run after the one numbered `after`, without what its agent printed.
    pub async fn answer_events(&self, run_id: &RunId, after: u64) -> Result<Vec<Event>, Error> {
        self.retry(async || {
            let rows = sqlx::query(LIST)
                .bind(run_id.as_str())
                .bind(i64::try_from(after).unwrap_or(i64::MAX))
                .bind(i64::try_from(PAGE_SIZE).unwrap_or(i64::MAX))
                .fetch_all(&self.pool)
                .await
                .map_err(failed("read a run's answer"))?;
            rows.iter().map(Event::read).collect()
        })
        .await
    }
}
