//! Writes the state of all parts as JSON.

use std::collections::BTreeMap;

use platform_core::control::{Consumer, JournalState, NotReady};
use platform_runtime::report::ErrorText;
use runner_store::SCHEMA;
use serde::Serialize;
use utoipa::ToSchema;

use super::{DataPlaneState, SystemState, finding::FindingView};

/// State of what runs need.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = System)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SystemView {
    version: &'static str,
    /// True if store, Docker and data plane work.
    ready: bool,
    store: StoreView,
    docker: DockerView,
    data_plane: DataPlaneView,
    /// State of the journal; null if the data plane does not answer.
    #[schema(required = true)]
    journal: Option<JournalView>,
    /// Numbers of runs that have not ended, of all accounts, by state.
    runs: BTreeMap<String, u64>,
    queue: QueueView,
    /// Parts that do not work, with a fix for each.
    findings: Vec<FindingView>,
}

/// State of the store.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StoreState)]
struct StoreView {
    /// `ok` or `unavailable`.
    state: &'static str,
    #[schema(required = true)]
    description: Option<String>,
    /// Version of the schema that this program uses.
    schema: usize,
    #[schema(required = true)]
    reason: Option<String>,
}

/// State of Docker.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DockerState)]
struct DockerView {
    /// `ok` or `unavailable`.
    state: &'static str,
    #[schema(required = true)]
    engine: Option<String>,
    #[schema(required = true)]
    api: Option<String>,
    #[schema(required = true)]
    reason: Option<String>,
}

/// State of the data plane.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DataPlaneState)]
#[serde(rename_all = "camelCase")]
struct DataPlaneView {
    /// `ready`, `not_ready` or `unavailable`.
    state: &'static str,
    #[schema(required = true)]
    version: Option<String>,
    #[schema(required = true)]
    uptime_seconds: Option<u64>,
    #[schema(required = true)]
    open_runs: Option<u64>,
    #[schema(required = true)]
    calls_in_flight: Option<u64>,
    /// `up`, `down` or `probing`.
    #[schema(required = true)]
    upstream: Option<&'static str>,
    /// Reasons why calls do not pass.
    reasons: Vec<String>,
    /// Reason why it does not answer.
    #[schema(required = true)]
    reason: Option<String>,
}

/// State of the journal.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = JournalStatus)]
#[serde(rename_all = "camelCase")]
struct JournalView {
    id: String,
    last_seq: u64,
    /// State, such as `open` or `full`.
    #[schema(value_type = String)]
    state: JournalState,
    consumers: Vec<ConsumerView>,
}

/// Consumer of the journal.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = JournalConsumer)]
struct ConsumerView {
    name: String,
    /// Last line that it has acknowledged.
    acknowledged: u64,
    /// Number of lines after that one.
    lag: u64,
}

/// Runs that wait.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = SystemQueue)]
#[serde(rename_all = "camelCase")]
struct QueueView {
    waiting: u64,
    /// Seconds for which the oldest one has waited.
    #[schema(required = true)]
    oldest_seconds: Option<u64>,
}

impl SystemView {
    pub(super) fn of(state: &SystemState) -> Self {
        let store = state.store.as_ref().ok();
        let ready = state.data_plane.as_ref().is_ok_and(|state| state.readiness.ready);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            ready: store.is_some() && state.docker.is_ok() && ready,
            store: StoreView {
                state: word(&state.store),
                description: store.map(|store| store.description.clone()),
                schema: SCHEMA,
                reason: state.store.as_ref().err().map(ErrorText::to_string),
            },
            docker: DockerView {
                state: word(&state.docker),
                engine: state.docker.as_ref().ok().map(|version| version.engine.clone()),
                api: state.docker.as_ref().ok().map(|version| version.api.clone()),
                reason: state.docker.as_ref().err().map(ErrorText::to_string),
            },
            data_plane: DataPlaneView::of(&state.data_plane),
            journal: state.data_plane.as_ref().ok().map(JournalView::of),
            runs: store.map(|store| store.present.states.iter().cloned().collect()).unwrap_or_default(),
            queue: store.map_or_else(QueueView::default, |store| QueueView {
                waiting: store.queue.waiting.all(),
                oldest_seconds: store.queue.oldest.map(|oldest| oldest.as_secs()),
            }),
            findings: FindingView::of(state),
        }
    }
}

fn word<T>(answered: &Result<T, ErrorText>) -> &'static str {
    if answered.is_ok() { "ok" } else { "unavailable" }
}

impl DataPlaneView {
    fn of(state: &Result<DataPlaneState, ErrorText>) -> Self {
        let DataPlaneState { health, readiness, .. } = match state {
            Ok(state) => state,
            Err(ErrorText(reason)) => return Self::unavailable(reason),
        };
        Self {
            state: if readiness.ready { "ready" } else { "not_ready" },
            version: Some(health.version.clone()),
            uptime_seconds: Some(health.uptime_s),
            open_runs: Some(health.runs),
            calls_in_flight: Some(health.in_flight),
            upstream: Some(health.upstream_state.word()),
            reasons: readiness.reasons.iter().map(NotReady::to_string).collect(),
            reason: None,
        }
    }

    fn unavailable(reason: &str) -> Self {
        Self {
            state: "unavailable",
            version: None,
            uptime_seconds: None,
            open_runs: None,
            calls_in_flight: None,
            upstream: None,
            reasons: Vec::new(),
            reason: Some(reason.to_owned()),
        }
    }
}

impl JournalView {
    fn of(DataPlaneState { health, consumers, .. }: &DataPlaneState) -> Self {
        let view = |Consumer { name, acknowledged, lag }: &Consumer| ConsumerView {
            name: name.clone(),
            acknowledged: acknowledged.seq,
            lag: *lag,
        };
        Self {
            id: health.journal_id.clone(),
            last_seq: health.journal_seq,
            state: health.journal,
            consumers: consumers.iter().map(view).collect(),
        }
    }
}
