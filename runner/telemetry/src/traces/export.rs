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

/// Maximum number of items in the queue. A span takes some 500 bytes, a run only its id.
const QUEUE_CAPACITY: usize = 2048;
/// Maximum number of spans in one request.
pub(super) const MAX_BATCH: usize = 256;
/// Delay after the first span of a batch, in which others join it.
pub(super) const BATCH_DELAY: Duration = Duration::from_millis(500);
/// Delays before a batch is sent again.
const RETRY_DELAYS: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(3)];
/// Time for which the queue is still exported after all other work has ended.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(1500);

/// Item of the queue.
#[derive(Debug)]
enum QueuedSpans {
    /// An ended run. Its spans are created from its record.
    Run(RunId),
    Span(Box<Span>),
}

/// Handle that queues spans without waiting.
#[derive(Debug, Clone)]
pub struct Traces {
    sender: mpsc::Sender<QueuedSpans>,
    metrics: Arc<Metrics>,
}

/// Receiver of the queue, with the exporter.
#[derive(Debug)]
pub struct SpanQueue {
    receiver: mpsc::Receiver<QueuedSpans>,
    exporter: Exporter,
}

/// Exporter of spans to the collector, which counts them.
#[derive(Debug)]
pub(super) struct Exporter {
    collector: Collector,
    resource: Vec<(&'static str, AttributeValue)>,
    metrics: Arc<Metrics>,
    pub(super) installation: InstallationId,
    /// Configured models, which spans may name.
    pub(super) models: BTreeSet<String>,
}

/// Opens the queue and its exporter; `None` if `settings` name no collector.
///
/// # Errors
/// If `settings` cannot be used.
pub fn open(settings: &Settings, metrics: &Arc<Metrics>) -> Result<Option<(Traces, SpanQueue)>, Unusable> {
    let Some(collector) = Collector::of(&settings.telemetry)? else { return Ok(None) };
    let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
    let installation = settings.sandbox.installation.clone();
    let resource = vec![
        ("service.name", "sluicegate".into()),
        ("service.version", env!("CARGO_PKG_VERSION").into()),
        ("service.instance.id", AttributeValue::Text(Worker::this_process().to_string())),
        ("sluicegate.installation", installation.as_str().into()),
    ];
    let models = settings.named_models().map(str::to_owned).collect();
    let exporter = Exporter { collector, resource, metrics: Arc::clone(metrics), installation, models };
    Ok(Some((Traces { sender, metrics: Arc::clone(metrics) }, SpanQueue { receiver, exporter })))
}

impl Traces {
    /// Queues the spans of a run after its end is stored.
    pub fn ended(&self, run_id: &RunId) {
        self.enqueue(QueuedSpans::Run(run_id.clone()));
    }

    /// Queues the span of an answered request to the API.
    pub fn answered(&self, request: ApiRequest, status: u16) {
        if let Some(span) = request.into_span(status) {
            self.enqueue(QueuedSpans::Span(Box::new(span)));
        }
    }

    fn enqueue(&self, item: QueuedSpans) {
        if self.sender.try_send(item).is_err() && self.metrics.spans().dropped(Dropped::QueueFull, 1) {
            tracing::warn!("spans dropped: the export queue is full");
        }
    }
}

/// Performs `work`, and meanwhile exports the spans in `queue`, if there is one. Reads ended runs from `store`. With a
/// `data_plane`, exports the model calls of its journal as well. After `work`, exports the rest of the queue for at
/// most `FLUSH_TIMEOUT`.
pub async fn export_during<T>(
    queue: Option<SpanQueue>,
    store: &Store,
    data_plane: Option<&DataPlane>,
    work: impl Future<Output = T>,
) -> T {
    let Some(SpanQueue { receiver, exporter }) = queue else { return work.await };
    let work_ended = CancellationToken::new();
    let work = async {
        let result = work.await;
        work_ended.cancel();
        result
    };
    let calls = async {
        if let Some(data_plane) = data_plane {
            work_ended.run_until_cancelled(Box::pin(exporter.follow(store, data_plane))).await;
        }
    };
    let (result, (), ()) =
        tokio::join!(work, calls, Box::pin(exporter.export_queue(receiver, store, &work_ended)));
    result
}

impl Exporter {
    async fn export_queue(
        &self,
        mut receiver: mpsc::Receiver<QueuedSpans>,
        store: &Store,
        work_ended: &CancellationToken,
    ) {
        let exporting = async {
            // After `work_ended`, no item is queued any more, so the queue then holds all remaining items.
            while let Some(first) = tokio::select! {
                biased;
                first = receiver.recv() => first,
                () = work_ended.cancelled() => None,
            } {
                let deadline = tokio::time::Instant::now() + BATCH_DELAY;
                let mut items = vec![first];
                while items.len() < MAX_BATCH && !work_ended.is_cancelled() {
                    tokio::select! {
                        next = timeout_at(deadline, receiver.recv()) => match next {
                            Ok(Some(item)) => items.push(item),
                            Ok(None) | Err(_) => break,
                        },
                        () = work_ended.cancelled() => {}
                    }
                }
                while items.len() < MAX_BATCH
                    && let Ok(item) = receiver.try_recv()
                {
                    items.push(item);
                }
                let mut spans = Vec::new();
                for item in items {
                    match item {
                        QueuedSpans::Span(span) => spans.push(*span),
                        QueuedSpans::Run(run) => spans.extend(self.run_spans(store, &run).await),
                    }
                }
                self.export_batches(&spans).await;
            }
        };
        tokio::pin!(exporting);
        tokio::select! {
            () = &mut exporting => return,
            () = work_ended.cancelled() => {}
        }
        drop(timeout(FLUSH_TIMEOUT, exporting).await);
    }

    async fn run_spans(&self, store: &Store, run_id: &RunId) -> Vec<Span> {
        match store.history(run_id).await {
            Ok(history) => runs::spans(&history),
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

    /// Exports `spans` once, and counts those that the collector refuses. Fails only if the request fails.
    pub(super) async fn try_export(&self, spans: &[Span]) -> Result<(), ExportError> {
        if spans.is_empty() {
            return Ok(());
        }
        let refused = self.collector.send(span::request_body(&self.resource, spans).into()).await?;
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
