//! Reads runs, their records and their events for people and programs.

use platform_core::{
    event::AgentEvent,
    id::{AccountId, AgentId, RunId},
    traceparent::Traceparent,
};
use serde::{Deserialize, Serialize};
use sqlx::{Row, any::AnyRow};

use super::{
    EventCursor, Resource, RetryWhen, Run, Store, UnixMillis,
    error::{Error, failed},
    row::{columns, count, number, text},
};

/// Filter of a list of runs.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Names of their states; any state if empty.
    pub states: Vec<&'static str>,
    /// Account that pays for them.
    pub account: Option<AccountId>,
    /// The agent that runs.
    pub agent: Option<AgentId>,
    /// Only those ordered before this one; for the next page.
    pub before: Option<(UnixMillis, RunId)>,
}

/// Runs, the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The runs.
    pub runs: Vec<Run>,
    /// Value of `before` for the next page's filter; absent at the end.
    pub next: Option<(UnixMillis, RunId)>,
    /// Time of this snapshot, by the database's clock.
    pub now: UnixMillis,
}

/// Everything that is known of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Record {
    /// The run.
    #[serde(flatten)]
    pub run: Run,
    /// Order of the run, as JSON.
    #[serde(rename = "order", serialize_with = "embedded")]
    pub wanted: String,
    /// The answer, or its beginning.
    pub answer: Option<String>,
    /// Length of the answer, in bytes.
    pub answer_bytes: Option<i64>,
    /// Resources made for the run.
    pub resources: Vec<Resource>,
    /// Events, the oldest first, without printed lines and the answer; [`Store::told`] returns those, too.
    pub events: Vec<Event>,
    /// Number of earlier events that were removed because the run ended long ago.
    pub pruned_events: u64,
    /// Position up to which the events between its moves are recorded.
    #[serde(skip)]
    pub told: EventCursor,
    /// Reason why its agent was about to be ended, if it was.
    #[serde(skip)]
    pub stopping: Option<String>,
    /// Id of the image that its containers are made from, once it is prepared.
    pub image: Option<String>,
    /// Time of this snapshot, by the database's clock.
    #[serde(rename = "now_ms")]
    pub now: UnixMillis,
}

impl Record {
    /// Returns the span of the client that ordered the run; `None` if it sent none or the order cannot be read.
    pub fn trace_parent(&self) -> Option<Traceparent> {
        #[derive(Deserialize)]
        struct Order {
            #[serde(default)]
            caller: Option<Traceparent>,
        }
        serde_json::from_str::<Order>(&self.wanted).ok().and_then(|order| order.caller)
    }
}

/// Event of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Its number, from 1, without gaps.
    pub seq: u64,
    /// Time of the event.
    #[serde(rename = "at_ms")]
    pub at: UnixMillis,
    /// Kind of the event, as [`platform_core::event::AgentEvent::kind`] returns it.
    pub kind: String,
    /// The event, as JSON.
    #[serde(serialize_with = "embedded")]
    pub payload: String,
}

/// Serializes the payload as JSON, or as text if it is not JSON.
fn embedded<S: serde::Serializer>(payload: &str, serializer: S) -> Result<S::Ok, S::Error> {
    match serde_json::from_str::<serde_json::Value>(payload) {
        Ok(json) => json.serialize(serializer),
        Err(_) => serializer.serialize_str(payload),
    }
}

const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM runs WHERE installation = $1 AND ($2 IS NULL OR $2 LIKE '%,' || state || ',%') \
     AND ($3 IS NULL OR account = $3) AND ($4 IS NULL OR agent = $4) \
     AND ($5 IS NULL OR created < $5 OR (created = $5 AND run < $6)) \
     ORDER BY created DESC, run DESC LIMIT $7"
);
const LARGE: &str = "SELECT wanted, answer, answer_bytes, events_recorded, stopping, image, \
     (SELECT min(seq) FROM events WHERE events.run = runs.run) AS first_event FROM runs WHERE run = $1";
const EVENTS: &str = "SELECT seq, at, kind, payload FROM events WHERE run = $1 \
     AND kind NOT IN ('log', 'assistant_final') ORDER BY seq";

impl Store {
    /// Returns at most `most` runs that match `filter`, the newest first.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn list(&self, filter: &Filter, most: u32) -> Result<Page, Error> {
        self.retry(RetryWhen::Always, async |_| self.list_once(filter, most).await).await
    }

    async fn list_once(&self, filter: &Filter, most: u32) -> Result<Page, Error> {
        let mut tx = self.begin_with(self.backend.begin_snapshot()).await?;
        let states = Some(&filter.states).filter(|states| !states.is_empty());
        let rows = sqlx::query(LIST)
            .bind(self.installation.as_str())
            .bind(states.map(|states| format!(",{},", states.join(","))))
            .bind(filter.account.as_ref().map(AccountId::as_str))
            .bind(filter.agent.as_ref().map(AgentId::as_str))
            .bind(filter.before.as_ref().map(|(created, _)| created.0))
            .bind(filter.before.as_ref().map(|(_, run)| run.as_str()))
            .bind(i64::from(most) + 1)
            .fetch_all(tx.connection())
            .await
            .map_err(failed("list runs"))?;
        let mut runs = rows.iter().map(|row| Run::read(row, tx.now)).collect::<Result<Vec<_>, _>>()?;
        let now = UnixMillis(tx.now);
        tx.commit("list runs").await?;
        let more = runs.len() > most as usize;
        runs.truncate(most as usize);
        let next = runs.last().filter(|_| more).map(|run| (run.created, run.run_id.clone()));
        Ok(Page { runs, next, now })
    }

    /// Returns the run `run_id` as it is now.
    ///
    /// # Errors
    /// [`Error::Unknown`] if there is no such run.
    pub async fn run(&self, run_id: &RunId) -> Result<Run, Error> {
        self.retry(RetryWhen::Always, async |_| {
            let mut tx = self.begin_with(self.backend.begin_snapshot()).await?;
            let found = self.find(&mut tx, run_id).await?;
            tx.commit("look for a run").await?;
            Ok(found)
        })
        .await
    }

    /// Returns everything that is known of the run `run_id`.
    ///
    /// # Errors
    /// [`Error::Unknown`] if there is no such run.
    pub async fn record(&self, run_id: &RunId) -> Result<Record, Error> {
        self.retry(RetryWhen::Always, async |_| self.record_once(run_id).await).await
    }

    async fn record_once(&self, id: &RunId) -> Result<Record, Error> {
        let action = "read a run";
        let mut tx = self.begin_with(self.backend.begin_snapshot()).await?;
        let run = self.find(&mut tx, id).await?;
        let large = sqlx::query(LARGE).bind(id.as_str()).fetch_one(tx.connection()).await;
        let large = large.map_err(failed(action))?;
        let events = sqlx::query(EVENTS).bind(id.as_str()).fetch_all(tx.connection()).await;
        let events = events.map_err(failed(action))?;
        let told: Option<String> = large.try_get("events_recorded").map_err(failed(action))?;
        let first: Option<i64> = large.try_get("first_event").map_err(failed(action))?;
        let resources = tx.resources(id.as_str()).await?;
        let now = UnixMillis(tx.now);
        tx.commit(action).await?;
        Ok(Record {
            wanted: text(&large, "wanted")?,
            answer: large.try_get("answer").map_err(failed(action))?,
            answer_bytes: large.try_get("answer_bytes").map_err(failed(action))?,
            resources,
            events: events.iter().map(Event::read).collect::<Result<_, _>>()?,
            pruned_events: first.and_then(|first| u64::try_from(first - 1).ok()).unwrap_or_default(),
            told: EventCursor::read(told.as_deref())?,
            stopping: large.try_get("stopping").map_err(failed(action))?,
            image: large.try_get("image").map_err(failed(action))?,
            now,
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
        serde_json::from_str(&self.payload).map_err(corrupt)
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
