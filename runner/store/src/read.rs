//! Reads runs and their records, and defines the events in them.

use platform_core::{
    event::AgentEvent,
    id::{AccountId, AgentId, RunId},
    json::{self, Bounds},
    traceparent::Traceparent,
};
use serde::{Deserialize, Serialize};
use sqlx::{Row, any::AnyRow};

use super::{
    EventCursor, Resource, Run, Store, Tx, UnixMillis,
    error::{Error, failed},
    row::{columns, count, number, stored_json, text},
};

/// Filter of a list of runs.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Names of the states to list; all states if empty.
    pub states: Vec<&'static str>,
    /// Account that pays.
    pub account: Option<AccountId>,
    /// Account to leave out.
    pub left_out: Option<AccountId>,
    /// Agent that runs.
    pub agent: Option<AgentId>,
    /// Beginning of the ids.
    pub id_prefix: Option<RunId>,
    /// Run before which the listed ones were ordered; for the next page.
    pub before: Option<(UnixMillis, RunId)>,
}

/// Part of a list of runs, the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The runs.
    pub runs: Vec<Run>,
    /// Value of `before` for the next page's filter; absent at the end.
    pub next: Option<(UnixMillis, RunId)>,
    /// Time of this snapshot, by the database's clock.
    pub now: UnixMillis,
}

/// Record of a run, with what happened in it. A run may have 100,000 events, so most readers want the [`RunRecord`] alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunHistory {
    /// The record.
    #[serde(flatten)]
    pub record: RunRecord,
    /// Events, the oldest first, without printed lines and the answer. [`Store::events_after`] returns all events.
    pub events: Vec<Event>,
}

/// Everything that the store knows about a run, except its events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunRecord {
    /// The run.
    #[serde(flatten)]
    pub run: Run,
    /// Order of the run, as JSON.
    #[serde(rename = "order", serialize_with = "as_json")]
    pub wanted: String,
    /// The answer, or its beginning.
    pub answer: Option<String>,
    /// Length of the answer, in bytes.
    pub answer_bytes: Option<i64>,
    /// Resources of the run; includes removed ones.
    pub resources: Vec<Resource>,
    /// Number of earlier events that were removed because the run ended long ago.
    pub pruned_events: u64,
    /// Position up to which the events between transitions are recorded.
    #[serde(skip)]
    pub event_cursor: EventCursor,
    /// Reason for which the agent is about to be stopped, if it is.
    #[serde(skip)]
    pub stopping: Option<String>,
    /// Id of the image that the run's containers are created from; known once the run is prepared.
    pub image: Option<String>,
    /// Time of this snapshot, by the database's clock.
    #[serde(rename = "now_ms")]
    pub now: UnixMillis,
}

impl RunRecord {
    /// Returns the trace context of the client that ordered the run; `None` if the order has none or cannot be parsed.
    pub fn trace_parent(&self) -> Option<Traceparent> {
        #[derive(Deserialize)]
        struct Order {
            #[serde(default)]
            caller: Option<Traceparent>,
        }
        stored_json::<Order>(&self.wanted).and_then(|order| order.caller)
    }
}

/// Event of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Number of the event, from 1, without gaps.
    pub seq: u64,
    /// Time of the event.
    #[serde(rename = "at_ms")]
    pub at: UnixMillis,
    /// Kind of the event, as [`platform_core::event::AgentEvent::kind`] returns it.
    pub kind: String,
    /// The event, as JSON.
    #[serde(serialize_with = "as_json")]
    pub payload: String,
}

/// Serializes `text` as the JSON that it contains, or as a string if it contains none, or more values than memory is
/// taken for.
fn as_json<S: serde::Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    match json::from_str::<serde_json::Value>(text, Bounds::STORED.with_values(Bounds::VALUES)) {
        Ok(json) => json.serialize(serializer),
        Err(_) => serializer.serialize_str(text),
    }
}

const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM runs WHERE installation = $1 AND ($2 IS NULL OR $2 LIKE '%,' || state || ',%') \
     AND ($3 IS NULL OR account = $3) AND ($4 IS NULL OR agent = $4) \
     AND ($5 IS NULL OR created < $5 OR (created = $5 AND run < $6)) \
     AND ($7 IS NULL OR account <> $7) AND ($8 IS NULL OR run LIKE $8) ORDER BY created DESC, run DESC LIMIT $9"
);
const LIST_HELD: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM runs WHERE installation = $1 AND ended IS NULL AND lease_owner IS NOT NULL LIMIT $2"
);
const RECORD_COLUMNS: &str = "SELECT wanted, answer, answer_bytes, events_recorded, stopping, image, \
     (SELECT min(seq) FROM events WHERE events.run = runs.run) AS first_event FROM runs WHERE run = $1";
const ORDER: &str = "SELECT wanted FROM runs WHERE run = $1 AND installation = $2";
const EVENTS: &str = "SELECT seq, at, kind, payload FROM events WHERE run = $1 \
     AND kind NOT IN ('log', 'assistant_final') ORDER BY seq";

/// Action of both ways to read a run.
const READ: &str = "read a run";

impl Store {
    /// Returns at most `max_runs` runs that match `filter`, the newest first.
    pub async fn list(&self, filter: &Filter, max_runs: u32) -> Result<Page, Error> {
        self.retry(async || self.list_once(filter, max_runs).await).await
    }

    async fn list_once(&self, filter: &Filter, max_runs: u32) -> Result<Page, Error> {
        let mut tx = self.begin_with(self.backend.begin_snapshot()).await?;
        let states = Some(&filter.states).filter(|states| !states.is_empty());
        let rows = sqlx::query(LIST)
            .bind(self.installation.as_str())
            .bind(states.map(|states| format!(",{},", states.join(","))))
            .bind(filter.account.as_ref().map(AccountId::as_str))
            .bind(filter.agent.as_ref().map(AgentId::as_str))
            .bind(filter.before.as_ref().map(|(created, _)| created.0))
            .bind(filter.before.as_ref().map(|(_, run)| run.as_str()))
            .bind(filter.left_out.as_ref().map(AccountId::as_str))
            // Ids have no characters that `LIKE` treats specially.
            .bind(filter.id_prefix.as_ref().map(|prefix| format!("{prefix}%")))
            .bind(i64::from(max_runs) + 1)
            .fetch_all(tx.connection())
            .await
            .map_err(failed("list runs"))?;
        let mut runs = rows.iter().map(|row| Run::read(row, tx.now)).collect::<Result<Vec<_>, _>>()?;
        let now = UnixMillis(tx.now);
        tx.commit("list runs").await?;
        let has_more = runs.len() > max_runs as usize;
        runs.truncate(max_runs as usize);
        let next = runs.last().filter(|_| has_more).map(|run| (run.created, run.run_id.clone()));
        Ok(Page { runs, next, now })
    }

    /// Returns at most `max_runs` of the runs that a worker of any process holds, in no order.
    pub async fn held_runs(&self, max_runs: u32) -> Result<Vec<Run>, Error> {
        let action = "list the runs that workers hold";
        self.read(async |mut tx| {
            let query = sqlx::query(LIST_HELD).bind(self.installation.as_str()).bind(i64::from(max_runs));
            let rows = query.fetch_all(tx.connection()).await.map_err(failed(action))?;
            let now = tx.now;
            tx.commit(action).await?;
            rows.iter().map(|row| Run::read(row, now)).collect()
        })
        .await
    }

    /// Returns the run `run_id` as it is now.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the run does not exist.
    pub async fn run(&self, run_id: &RunId) -> Result<Run, Error> {
        self.read(async |mut tx| {
            let run = self.find(&mut tx, run_id).await?;
            tx.finish("look for a run", run).await
        })
        .await
    }

    /// Returns the order of the run `run_id`, as JSON.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the run does not exist.
    pub async fn order(&self, run_id: &RunId) -> Result<String, Error> {
        self.retry(async || {
            let query = sqlx::query_scalar(ORDER).bind(run_id.as_str()).bind(self.installation.as_str());
            let order = query.fetch_optional(&self.pool).await.map_err(failed("read the order of a run"))?;
            order.ok_or_else(|| Error::Unknown { run_id: run_id.clone() })
        })
        .await
    }

    /// Returns the record of the run `run_id`.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the run does not exist.
    pub async fn record(&self, run_id: &RunId) -> Result<RunRecord, Error> {
        self.read(async |mut tx| {
            let record = self.read_record(&mut tx, run_id).await?;
            tx.finish(READ, record).await
        })
        .await
    }

    /// Returns the record of the run `run_id` and its events, of one moment.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the run does not exist.
    pub async fn history(&self, run_id: &RunId) -> Result<RunHistory, Error> {
        self.read(async |mut tx| {
            let record = self.read_record(&mut tx, run_id).await?;
            let events = sqlx::query(EVENTS).bind(run_id.as_str()).fetch_all(tx.connection()).await;
            let events = events.map_err(failed(READ))?;
            tx.commit(READ).await?;
            Ok(RunHistory { record, events: events.iter().map(Event::read).collect::<Result<_, _>>()? })
        })
        .await
    }

    async fn read_record(&self, tx: &mut Tx, run_id: &RunId) -> Result<RunRecord, Error> {
        let run = self.find(tx, run_id).await?;
        let row = sqlx::query(RECORD_COLUMNS).bind(run_id.as_str()).fetch_one(tx.connection()).await;
        let row = row.map_err(failed(READ))?;
        let events_recorded: Option<String> = row.try_get("events_recorded").map_err(failed(READ))?;
        let first_event: Option<i64> = row.try_get("first_event").map_err(failed(READ))?;
        Ok(RunRecord {
            wanted: text(&row, "wanted")?,
            answer: row.try_get("answer").map_err(failed(READ))?,
            answer_bytes: row.try_get("answer_bytes").map_err(failed(READ))?,
            resources: tx.resources(run_id.as_str()).await?,
            pruned_events: first_event.and_then(|seq| u64::try_from(seq - 1).ok()).unwrap_or_default(),
            event_cursor: EventCursor::read(events_recorded.as_deref())?,
            stopping: row.try_get("stopping").map_err(failed(READ))?,
            image: row.try_get("image").map_err(failed(READ))?,
            now: UnixMillis(tx.now),
            run,
        })
    }
}

impl Event {
    /// Parses the payload.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is not an event.
    pub fn event(&self) -> Result<AgentEvent, Error> {
        let corrupt = |_error| Error::Corrupt { what: "payload", value: self.payload.clone() };
        json::from_str(&self.payload, Bounds::STORED).map_err(corrupt)
    }

    /// Returns the event for a reader. One that cannot be read counts as missed: it keeps no reader from those after it.
    #[must_use]
    pub fn shown(&self) -> AgentEvent {
        self.event().unwrap_or(AgentEvent::Missed { count: 1 })
    }

    pub(super) fn read(row: &AnyRow) -> Result<Self, Error> {
        Ok(Self {
            seq: count(row, "seq")?,
            at: UnixMillis(number(row, "at")?),
            kind: text(row, "kind")?,
            payload: text(row, "payload")?,
        })
    }
}
