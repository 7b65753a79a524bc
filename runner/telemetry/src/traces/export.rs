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
    otlp::{Collector, Failed, Unusable},
    request::Asked,
    runs,
    span::{self, Span, Value},
};
use crate::metrics::{Dropped, Metrics};

/// Most items in the queue. A span is some 500 bytes, a run its id.
const QUEUE: usize = 2048;
/// Most spans in one request.
pub(super) const BATCH: usize = 256;
/// Time for which a batch is gathered.
pub(super) const GATHER: Duration = Duration::from_millis(500);
/// Pauses before a batch is sent again.
const PAUSES: [Duration; 3] = [Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(3)];
/// Time for which the queue is still exported when all other work is over.
const FLUSH: Duration = Duration::from_millis(1500);

/// Item to be exported.
#[derive(Debug)]
enum Item {
    /// An ended run, with all of its spans.
    Run(RunId),
    Span(Box<Span>),
}

/// Handle that queues spans. Never waits.
#[derive(Debug, Clone)]
pub struct Traces {
    to: mpsc::Sender<Item>,
    metrics: Arc<Metrics>,
}

/// Receiver of the queue, with the exporter.
#[derive(Debug)]
pub struct Export {
    from: mpsc::Receiver<Item>,
    teller: Teller,
}

/// Exporter: the collector, and the counters of spans.
#[derive(Debug)]
pub(super) struct Teller {
    collector: Collector,
    resource: Vec<(&'static str, Value)>,
    metrics: Arc<Metrics>,
    pub(super) installation: InstallationId,
    /// Models that may be named in spans, whatever agents ask for.
    pub(super) models: BTreeSet<String>,
}

/// Opens the queue and its exporter; `None` if `settings` name no collector.
///
/// # Errors
/// If `settings` cannot be used.
pub fn open(settings: &Settings, metrics: &Arc<Metrics>) -> Result<Option<(Traces, Export)>, Unusable> {
    let Some(collector) = Collector::of(&settings.telemetry)? else { return Ok(None) };
    let (to, from) = mpsc::channel(QUEUE);
    let installation = settings.sandbox.installation.clone();
    let resource = vec![
        ("service.name", "sluicegate".into()),
        ("service.version", env!("CARGO_PKG_VERSION").into()),
        ("service.instance.id", Value::Text(Worker::this_process().to_string())),
        ("sluicegate.installation", installation.as_str().into()),
    ];
    let models = super::calls::models(settings);
    let teller = Teller { collector, resource, metrics: Arc::clone(metrics), installation, models };
    Ok(Some((Traces { to, metrics: Arc::clone(metrics) }, Export { from, teller })))
}

impl Traces {
    /// Queues the spans of a run whose end is stored.
    pub fn ended(&self, run: &RunId) {
        self.hand_in(Item::Run(run.clone()));
    }

    /// Queues the span of an answered request to the API.
    pub fn answered(&self, asked: Asked, status: u16) {
        if let Some(span) = asked.answered(status) {
            self.hand_in(Item::Span(Box::new(span)));
        }
    }

    fn hand_in(&self, item: Item) {
        if self.to.try_send(item).is_err() && self.metrics.spans().dropped(Dropped::QueueFull, 1) {
            tracing::warn!("spans are dropped: more are handed in than the collector takes");
        }
    }
}

/// Does `work` while `export`, if there is one, exports the queued spans of runs in `store`. With a `data_plane`, it
/// exports the model calls of its journal as well. Afterwards the queue is exported for a second and a half more.
pub async fn beside<T>(
    export: Option<Export>,
    (store, data_plane): (&Store, Option<&DataPlane>),
    work: impl Future<Output = T>,
) -> T {
    let Some(Export { from, teller }) = export else { return work.await };
    let over = CancellationToken::new();
    let work = async {
        let done = work.await;
        over.cancel();
        done
    };
    let calls = async {
        if let Some(data_plane) = data_plane {
            over.run_until_cancelled(Box::pin(teller.follow(store, data_plane))).await;
        }
    };
    let (done, (), ()) = tokio::join!(work, calls, Box::pin(teller.tell_all(from, store, &over)));
    done
}

impl Teller {
    async fn tell_all(&self, mut from: mpsc::Receiver<Item>, store: &Store, over: &CancellationToken) {
        let telling = async {
            // After `over` no item is queued any more: the queue then holds all that is left.
            while let Some(first) = tokio::select! {
                biased;
                first = from.recv() => first,
                () = over.cancelled() => None,
            } {
                let gathered = tokio::time::Instant::now() + GATHER;
                let mut items = vec![first];
                while items.len() < BATCH && !over.is_cancelled() {
                    tokio::select! {
                        next = timeout_at(gathered, from.recv()) => match next {
                            Ok(Some(item)) => items.push(item),
                            Ok(None) | Err(_) => break,
                        },
                        () = over.cancelled() => {}
                    }
                }
                while items.len() < BATCH
                    && let Ok(item) = from.try_recv()
                {
                    items.push(item);
                }
                let mut spans = Vec::new();
                for item in items {
                    match item {
                        Item::Span(span) => spans.push(*span),
                        Item::Run(run) => spans.extend(self.of_run(store, &run).await),
                    }
                }
                self.tell(&spans).await;
            }
        };
        tokio::pin!(telling);
        tokio::select! {
            () = &mut telling => return,
            () = over.cancelled() => {}
        }
        drop(timeout(FLUSH, telling).await);
    }

    async fn of_run(&self, store: &Store, run: &RunId) -> Vec<Span> {
        match store.record(run).await {
            Ok(record) => runs::spans(&record),
            Err(error) => {
                if self.metrics.spans().dropped(Dropped::Unreadable, 1) {
                    tracing::warn!(%run, error = %report::chain(&error), "a run's spans are dropped");
                }
                Vec::new()
            }
        }
    }

    /// Exports `spans` with a few retries, then drops them.
    async fn tell(&self, spans: &[Span]) {
        for batch in spans.chunks(BATCH) {
            let mut pauses = PAUSES.into_iter();
            while let Err(error) = self.try_tell(batch).await {
                match pauses.next() {
                    Some(pause) if error.passes() => sleep(pause).await,
                    _ => {
                        self.give_up(batch, &error);
                        break;
                    }
                }
            }
        }
    }

    /// Exports `spans` once, and counts those that the collector refuses. Only a failed request is an error.
    pub(super) async fn try_tell(&self, spans: &[Span]) -> Result<(), Failed> {
        if spans.is_empty() {
            return Ok(());
        }
        let refused = self.collector.send(span::body(&self.resource, spans).into()).await?;
        let count = spans.len() as u64;
        self.metrics.spans().told(count.saturating_sub(refused));
        if refused > 0 && self.metrics.spans().dropped(Dropped::Refused, refused) {
            tracing::warn!(refused, "the collector refuses spans");
        }
        Ok(())
    }

    /// Counts `spans` as dropped, and logs the first drop.
    pub(super) fn give_up(&self, spans: &[Span], error: &Failed) {
        let why = if error.passes() { Dropped::Unavailable } else { Dropped::Refused };
        if self.metrics.spans().dropped(why, spans.len() as u64) {
            tracing::warn!(error = %report::chain(error), "spans are dropped");
        }
    }
}
