//! Queues spans, and exports them to the collector.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use platform_core::id::{InstallationId, RunId};
use platform_runtime::{report, settings::Settings};
use runner_control_client::DataPlane;
use runner_store::{Store, Worker};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    otlp::{Collector, ExportError, Unusable},
    request::ApiRequest,
    runs,
    span::{self, AttributeValue, Span},
};
use crate::metrics::{Dropped, Metrics};

/// Most items in the queue. A span is some 500 bytes, a run its id.
const QUEUE_CAPACITY: usize = 2048;
/// Most spans in one request.
pub(super) const MAX_BATCH: usize = 256;
/// Delay after the first span of a batch, in which others join it.
pub(super) const BATCH_DELAY: Duration = Duration::from_millis(500);
/// Delays before a batch is sent again.
const RETRY_DELAYS: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(3)];
/// Time for which the queue is still exported when all other work is over.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(1500);

/// Spans in the queue.
#[derive(Debug)]
enum QueuedSpans {
    /// An ended run, with all of its spans.
    Run(RunId),
    Span(Box<Span>),
}

/// Handle that queues spans. Never waits.
#[derive(Debug, Clone)]
pub struct Traces {
    to: mpsc::Sender<QueuedSpans>,
    metrics: Arc<Metrics>,
}

/// Receiver of the queue, with the exporter.
#[derive(Debug)]
pub struct SpanQueue {
    from: mpsc::Receiver<QueuedSpans>,
    exporter: Exporter,
}

/// Exporter: the collector, and the counters of spans.
#[derive(Debug)]
pub(super) struct Exporter {
    collector: Collector,
    resource: Vec<(&'static str, AttributeValue)>,
    metrics: Arc<Metrics>,
    pub(super) installation: InstallationId,
    /// Models that may be named in spans, whatever agents ask for.
    pub(super) models: BTreeSet<String>,
}

/// Opens the queue and its exporter; `None` if `settings` name no collector.
///
/// # Errors
/// If `settings` cannot be used.
pub fn open(settings: &Settings, metrics: &Arc<Metrics>) -> Result<Option<(Traces, SpanQueue)>, Unusable> {
    let Some(collector) = Collector::of(&settings.telemetry)? else { return Ok(None) };
    let (to, from) = mpsc::channel(QUEUE_CAPACITY);
    let installation = settings.sandbox.installation.clone();
    let resource = vec![
        ("service.name", "sluicegate".into()),
        ("service.version", env!("CARGO_PKG_VERSION").into()),
        ("service.instance.id", AttributeValue::Text(Worker::this_process().to_string())),
        ("sluicegate.installation", installation.as_str().into()),
    ];
    let models = super::calls::models(settings);
    let exporter = Exporter { collector, resource, metrics: Arc::clone(metrics), installation, models };
    Ok(Some((Traces { to, metrics: Arc::clone(metrics) }, SpanQueue { from, exporter })))
}

impl Traces {
    /// Queues the spans of a run whose end is stored.
    pub fn ended(&self, run_id: &RunId) {
        self.enqueue(QueuedSpans::Run(run_id.clone()));
    }

    /// Queues the span of an answered request to the API.
    pub fn answered(&self, asked: ApiRequest, status: u16) {
        if let Some(span) = asked.answered(status) {
            self.enqueue(QueuedSpans::Span(Box::new(span)));
        }
    }

    fn enqueue(&self, item: QueuedSpans) {
        if self.to.try_send(item).is_err() && self.metrics.spans().dropped(Dropped::QueueFull, 1) {
            tracing::warn!("spans dropped: the export queue is full");
        }
    }
}

/// Does `work` while `export`, if there is one, exports the queued spans of runs in `store`. With a `data_plane`, it
/// exports the model calls of its journal as well. Afterwards the queue is exported for a second and a half more.
pub async fn export_during<T>(
    export: Option<SpanQueue>,
    store: &Store,
    data_plane: Option<&DataPlane>,
    work: impl Future<Output = T>,
) -> T {
    let Some(SpanQueue { from, exporter }) = export else { return work.await };
    let over = CancellationToken::new();
    let work = async {
        let done = work.await;
        over.cancel();
        done
    };
    let calls = async {
        if let Some(data_plane) = data_plane {
            over.run_until_cancelled(Box::pin(exporter.follow(store, data_plane))).await;
        }
    };
    let (done, (), ()) = tokio::join!(work, calls, Box::pin(exporter.export_queue(from, store, &over)));
    done
}

impl Exporter {
    async fn export_queue(
        &self,
        mut from: mpsc::Receiver<QueuedSpans>,
        store: &Store,
        over: &CancellationToken,
    ) {
        let telling = async {
            // After `over` no item is queued any more: the queue then holds all that is left.
            while let Some(first) = tokio::select! {
                biased;
                first = from.recv() => first,
                () = over.cancelled() => None,
            } {
                let gathered = tokio::time::Instant::now() + BATCH_DELAY;
                let mut items = vec![first];
                while items.len() < MAX_BATCH && !over.is_cancelled() {
                    tokio::select! {
                        next = timeout_at(gathered, from.recv()) => match next {
                            Ok(Some(item)) => items.push(item),
                            Ok(None) | Err(_) => break,
                        },
                        () = over.cancelled() => {}
                    }
                }
                while items.len() < MAX_BATCH
                    && let Ok(item) = from.try_recv()
                {
                    items.push(item);
                }
                let mut spans = Vec::new();
                for item in items {
                    match item {
                        QueuedSpans::Span(span) => spans.push(*span),
                        QueuedSpans::Run(run) => spans.extend(self.of_run(store, &run).await),
                    }
                }
                self.export_batches(&spans).await;
            }
        };
        tokio::pin!(telling);
        tokio::select! {
            () = &mut telling => return,
            () = over.cancelled() => {}
        }
        drop(timeout(FLUSH_TIMEOUT, telling).await);
    }

    async fn of_run(&self, store: &Store, run_id: &RunId) -> Vec<Span> {
        match store.record(run_id).await {
            Ok(record) => runs::spans(&record),
            Err(error) => {
                if self.metrics.spans().dropped(Dropped::Unreadable, 1) {
                    tracing::warn!(run = %run_id, error = report::chain(&error), "spans of a run dropped: its record cannot be read");
                }
                Vec::new()
            }
        }
    }

    /// Exports `spans` with a few retries, then drops them.
    async fn export_batches(&self, spans: &[Span]) {
        for batch in spans.chunks(MAX_BATCH) {
            let mut delays = RETRY_DELAYS.into_iter();
            while let Err(error) = self.try_export(batch).await {
                match delays.next() {
                    Some(delay) if error.is_transient() => sleep(delay).await,
                    _ => {
                        self.count_dropped(batch, &error);
                        break;
                    }
                }
            }
        }
    }

    /// Exports `spans` once, and counts those that the collector refuses. Only a failed request is an error.
    pub(super) async fn try_export(&self, spans: &[Span]) -> Result<(), ExportError> {
        if spans.is_empty() {
            return Ok(());
        }
        let refused = self.collector.send(span::body(&self.resource, spans).into()).await?;
        let count = spans.len() as u64;
        self.metrics.spans().exported(count.saturating_sub(refused));
        if refused > 0 && self.metrics.spans().dropped(Dropped::Refused, refused) {
            tracing::warn!(refused, "spans refused by the collector");
        }
        Ok(())
    }

    /// Counts `spans` as dropped, and logs the first drop.
    pub(super) fn count_dropped(&self, spans: &[Span], error: &ExportError) {
        let why = if error.is_transient() { Dropped::Unavailable } else { Dropped::Refused };
        if self.metrics.spans().dropped(why, spans.len() as u64) {
            tracing::warn!(error = report::chain(error), "spans dropped");
        }
    }
}
