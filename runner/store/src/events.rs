//! Stores the events of a run: numbered in the order they happened, and each stored once, even if several workers hold
//! the run in turn.
//!
//! A transition stores its own event, in the same transaction. Events between transitions are stored in batches. Each
//! batch carries the position it reaches, so that it is stored only once. A worker that takes the run over continues
//! from there. Followers read these rows.

use platform_core::{
    event::{AgentEvent, Phase},
    id::RunId,
    limit::ByteSize,
};
use runner_model::lifecycle::Failure;
use sqlx::Row;

use super::{
    FencingToken, Run, Store, Tx,
    error::{Error, failed},
    position::{EventCursor, RecordedPosition},
    read::Event,
    row::{count, storable, stored_json},
};

/// Longest payload of an event of a batch.
const MAX_PAYLOAD: ByteSize = ByteSize::kib(64);
/// Maximum number of events that one call reads. A page holds the store up for others: those of many clients that begin
/// to follow runs at once come one after another on SQLite.
pub(super) const PAGE_SIZE: usize = 32;

const GET_POSITION: &str = "SELECT events_recorded FROM runs WHERE run = $1";
const SET_POSITION: &str = "UPDATE runs SET events_recorded = $1 WHERE run = $2";
const TAKE_NUMBERS: &str = "UPDATE runs SET last_event = last_event + $1 WHERE run = $2 RETURNING last_event";
const ADD_EVENT: &str = "INSERT INTO events (run, seq, at, kind, payload) VALUES ($1, $2, $3, $4, $5)";
const GET_ANSWER: &str = "SELECT answer, answer_bytes FROM runs WHERE run = $1";
const STOPPING: RunColumn = RunColumn {
    statement: "UPDATE runs SET stopping = $1 WHERE run = $2",
    action: "store why an agent is ended",
};
const IMAGE: RunColumn =
    RunColumn { statement: "UPDATE runs SET image = $1 WHERE run = $2", action: "store a run's image" };
const LAST_EVENT: &str = "SELECT last_event FROM runs WHERE run = $1 AND installation = $2";
const LIST_AFTER: &str =
    "SELECT seq, at, kind, payload FROM events WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3";

/// Events that are stored together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Number of the batch under its fencing token, from 1. A batch with the same number is stored once.
    pub number: u64,
    /// The events.
    pub events: Vec<AgentEvent>,
    /// Position of the run once these events are recorded.
    pub cursor: EventCursor,
}

/// Column of a run that its holder sets once.
struct RunColumn {
    /// Sets the column to `$1` in the row of run `$2`.
    statement: &'static str,
    /// Name of the operation, for errors.
    action: &'static str,
}

impl Store {
    /// Stores events of a run between two transitions. The same batch again changes nothing.
    ///
    /// # Errors
    /// [`Error::Fenced`] if another worker has taken the run over, [`Error::TooLarge`] if an event is larger than 64
    /// KiB.
    pub async fn record_events(&self, token: &FencingToken, batch: &Batch) -> Result<(), Error> {
        self.write(async |mut tx| {
            self.fence(&mut tx, token).await?;
            tx.record_events(token, batch).await?;
            tx.commit("store a run's events").await
        })
        .await
    }

    /// Records the reason for which a run's agent is about to be stopped.
    ///
    /// # Errors
    /// [`Error::Fenced`] if another worker has taken the run over.
    pub async fn record_stopping(&self, token: &FencingToken, reason: &str) -> Result<(), Error> {
        self.set_column(token, &STOPPING, reason).await
    }

    /// Records the id of the image that a run's containers are created from.
    ///
    /// # Errors
    /// [`Error::Fenced`] if another worker has taken the run over.
    pub async fn record_image(&self, token: &FencingToken, id: &str) -> Result<(), Error> {
        self.set_column(token, &IMAGE, id).await
    }

    async fn set_column(&self, token: &FencingToken, column: &RunColumn, value: &str) -> Result<(), Error> {
        self.write(async |mut tx| {
            self.fence(&mut tx, token).await?;
            let update = sqlx::query(column.statement).bind(value).bind(token.run_id.as_str());
            update.execute(tx.connection()).await.map_err(failed(column.action))?;
            tx.commit(column.action).await
        })
        .await
    }

    /// Returns the number of a run's last event.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the run does not exist.
    pub async fn last_event(&self, run_id: &RunId) -> Result<u64, Error> {
        let action = "read the number of a run's last event";
        self.retry(async || {
            let query = sqlx::query(LAST_EVENT).bind(run_id.as_str()).bind(self.installation.as_str());
            let row = query.fetch_optional(&self.pool).await.map_err(failed(action))?;
            let unknown = || Error::Unknown { run_id: run_id.clone() };
            row.map_or_else(|| Err(unknown()), |row| count(&row, "last_event"))
        })
        .await
    }

    /// Returns a run, and at most 256 events after the one with the number `after`. Fewer than 256 are the last ones.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the run does not exist.
    pub async fn events_after(&self, run_id: &RunId, after: u64) -> Result<(Run, Vec<Event>), Error> {
        self.read(async |mut tx| {
            let action = "read a run's events";
            let found = self.find(&mut tx, run_id).await?;
            let query =
                sqlx::query(LIST_AFTER).bind(run_id.as_str()).bind(i64::try_from(after).unwrap_or(i64::MAX));
            let query = query.bind(i64::try_from(PAGE_SIZE).unwrap_or(i64::MAX));
            let rows = query.fetch_all(tx.connection()).await.map_err(failed(action))?;
            tx.commit(action).await?;
            Ok((found, rows.iter().map(Event::read).collect::<Result<_, _>>()?))
        })
        .await
    }
}

impl Tx {
    /// Stores a batch, unless it is stored already.
    pub(super) async fn record_events(&mut self, token: &FencingToken, batch: &Batch) -> Result<(), Error> {
        let action = "store a run's events";
        let row = sqlx::query(GET_POSITION).bind(token.run_id.as_str()).fetch_one(self.connection()).await;
        let recorded_before: Option<String> =
            row.map_err(failed(action))?.try_get("events_recorded").map_err(failed(action))?;
        let recorded_before = recorded_before.and_then(|text| stored_json::<RecordedPosition>(&text));
        if recorded_before.is_some_and(|recorded_before| {
            recorded_before.epoch == token.epoch && recorded_before.batch >= batch.number
        }) {
            return Ok(());
        }
        self.append(&token.run_id, &batch.events).await?;
        let recorded = RecordedPosition { epoch: token.epoch, batch: batch.number, cursor: batch.cursor };
        let recorded = serde_json::to_string(&recorded).unwrap_or_default();
        let query = sqlx::query(SET_POSITION).bind(recorded).bind(token.run_id.as_str());
        query.execute(self.connection()).await.map(drop).map_err(failed(action))
    }

    /// Numbers `events` and stores them.
    pub(super) async fn append(&mut self, run_id: &RunId, events: &[AgentEvent]) -> Result<(), Error> {
        let action = "add an event";
        let now = self.now;
        let added = i64::try_from(events.len()).unwrap_or(i64::MAX);
        let last: i64 = sqlx::query_scalar(TAKE_NUMBERS)
            .bind(added)
            .bind(run_id.as_str())
            .fetch_one(self.connection())
            .await
            .map_err(failed(action))?;
        for (seq, event) in (last - added + 1..).zip(events) {
            let payload = serde_json::to_string(event).unwrap_or_default();
            let is_answer = matches!(event, AgentEvent::AssistantFinal { .. });
            if payload.len() > MAX_PAYLOAD.as_usize() && !is_answer {
                return Err(Error::TooLarge {
                    what: "an event",
                    bytes: payload.len(),
                    most: MAX_PAYLOAD.as_usize(),
                });
            }
            let query = sqlx::query(ADD_EVENT).bind(run_id.as_str()).bind(seq).bind(now).bind(event.kind());
            query.bind(storable(&payload)).execute(self.connection()).await.map_err(failed(action))?;
        }
        self.changed.events.push(run_id.clone());
        Ok(())
    }

    /// Returns a run's last events. Its outcome and its answer are stored already.
    pub(super) async fn last_events(&mut self, run: &Run) -> Result<Vec<AgentEvent>, Error> {
        let (answer, end) = match &run.error {
            Some(Failure { code, message, .. }) => {
                (None, AgentEvent::Error { code: *code, message: message.clone() })
            }
            None => (Some(self.answer(&run.run_id).await?), AgentEvent::Done),
        };
        let usage =
            run.usage.map(|usage| AgentEvent::UsageReport { calls: usage.calls, tokens: usage.tokens });
        Ok([answer, usage, Some(end)].into_iter().flatten().collect())
    }

    async fn answer(&mut self, run_id: &RunId) -> Result<AgentEvent, Error> {
        let action = "read an answer";
        let row = sqlx::query(GET_ANSWER).bind(run_id.as_str()).fetch_one(self.connection()).await;
        let row = row.map_err(failed(action))?;
        let content: Option<String> = row.try_get("answer").map_err(failed(action))?;
        let bytes: Option<i64> = row.try_get("answer_bytes").map_err(failed(action))?;
        let content = content.unwrap_or_default();
        let whole = bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or_default();
        Ok(AgentEvent::AssistantFinal { cut_bytes: whole.saturating_sub(content.len() as u64), content })
    }
}

/// Returns the event of a run that enters a phase.
pub(super) const fn status_event(phase: Phase) -> AgentEvent {
    AgentEvent::Status { phase }
}
