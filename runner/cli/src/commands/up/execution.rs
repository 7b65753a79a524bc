//! Executes runs for `sluice up`. Meanwhile writes and reconciles receipts, keeps the floors of balances, and serves host
//! tools. These need the store alone, so calls are billed while Docker is away.

use std::sync::Arc;

use bytes::Bytes;
use platform_runtime::{report, settings::Settings};
use runner_billing::{FloorEnforcer, JournalConsumer, Reconciler, ReconciliationTask};
use runner_connections::{ConnectionBroker, Resealed};
use runner_control_client::DataPlane;
use runner_engine::{
    agents::Catalog,
    current_settings::CurrentSettings,
    observer::Observer,
    relay::GitHubAccess,
    worker::{self, AtEnd},
};
use runner_gateways::{agents, managed};
use runner_proposals::{Proposals, SettingsReader, continue_proposals};
use runner_repos::Refresher;
use runner_store::{Error as StoreError, RunChanges, Store};
use runner_telemetry::traces::{self, SpanQueue};
use runner_tools::ToolGateway;
use tokio::sync::{Notify, mpsc::Receiver};
use tokio_util::sync::CancellationToken;

use super::super::Context;
use crate::host_tools::{self, SharedParts};

/// Worker of `sluice up`, with its observers and its stop signals.
pub(super) struct Execution<'s> {
    pub(super) observer: Observer,
    pub(super) export: Option<SpanQueue>,
    /// Bodies of callbacks that the API has taken.
    pub(super) hints: Receiver<Bytes>,
    pub(super) refresher: Refresher,
    pub(super) at_end: AtEnd,
    pub(super) changes: &'s RunChanges,
    pub(super) cancel: &'s CancellationToken,
    pub(super) proxy_stop: &'s CancellationToken,
}

impl Execution<'_> {
    /// Observes and bills once the store is there, and executes runs once Docker is there, too, until `cancel` is triggered.
    ///
    /// # Errors
    /// If the store serves another host.
    pub(super) async fn run_worker(self, context: &Context, catalog: &Catalog) -> Result<(), StoreError> {
        let Self { observer, export, hints, refresher, at_end, changes, cancel, proxy_stop } = self;
        let settings = &context.settings;
        let open = async || Ok(context.serving_store().await?.reporting(changes.clone()));
        let Some(store) = worker::open_store(open, cancel).await? else { return Ok(()) };
        let github = context.github();
        let tools_stop = CancellationToken::new();
        let mut result = Ok(());
        let work = async {
            result = match worker::connect_engine(settings, &store, cancel).await {
                Ok(Some(mut engine)) => {
                    engine.observer = observer.clone();
                    engine.settings = catalog.settings();
                    engine.github = Arc::clone(&github);
                    Box::pin(worker::work(&engine, settings, catalog, cancel, at_end)).await
                }
                Ok(None) => Ok(()),
                Err(moved) => Err(moved),
            };
            // Runs that go on at the next worker find tools away until then.
            tools_stop.cancel();
            proxy_stop.cancel();
        };
        let connections = ConnectionBroker::of(settings, store.clone(), Arc::clone(&observer.metrics));
        reseal(&connections).await;
        let shared = SharedParts { connections, refresher };
        let gateway = host_tools::sharing_gateway(settings, &store, &github, shared);
        let work = Box::pin(async { tokio::join!(work, serve_tools(gateway, tools_stop.clone())).0 });
        let observation = Observation {
            store: store.clone(),
            data_plane: DataPlane::at(&settings.proxy.control_socket()),
            settings: catalog.settings(),
            observer: observer.clone(),
            github: Arc::clone(&github),
            reader: context.settings_reader(),
        };
        observation.run_during(work, settings, Queues { export, hints }).await;
        result
    }
}

/// Seals all connections with the first key. Without it they are opened with the keys that sealed them.
async fn reseal(connections: &ConnectionBroker) {
    if !connections.is_configured() {
        return;
    }
    match connections.reseal().await {
        Ok(Resealed { resealed: 0, skipped, .. }) if skipped.is_empty() => {}
        Ok(Resealed { resealed, skipped, .. }) => {
            tracing::info!(resealed, skipped = skipped.len(), "connections sealed with the first key");
        }
        Err(error) => tracing::error!(error = report::chain(&error), "connections not sealed again"),
    }
}

/// Serves host tools until `stop` is triggered. Without them, runs call models all the same.
async fn serve_tools(gateway: ToolGateway, stop: CancellationToken) {
    if let Err(error) = Box::pin(gateway.serve(stop)).await {
        tracing::error!(
            error = report::chain(&error),
            "host tools are not served: runs find them unavailable"
        );
    }
}

/// Queues that observers of the worker's runs read.
struct Queues {
    export: Option<SpanQueue>,
    /// Bodies of callbacks that the API has taken.
    hints: Receiver<Bytes>,
}

/// Observers of the calls and runs of this installation.
struct Observation {
    store: Store,
    data_plane: DataPlane,
    settings: CurrentSettings,
    observer: Observer,
    github: Arc<GitHubAccess>,
    reader: SettingsReader,
}

impl Observation {
    /// Runs `work`. Meanwhile exports spans, writes and reconciles receipts, keeps the floors of balances, reads the store
    /// for metrics, monitors managed gateways and mirrored repositories, gives gateways the agents that people
    /// made, and continues proposals.
    async fn run_during(&self, work: impl Future<Output = ()>, settings: &Settings, queues: Queues) {
        let Self { store, data_plane, settings: current, observer, github, reader } = self;
        let charged = Arc::<Notify>::default();
        let reconciliation = self.reconciliation(settings, queues.hints, Arc::clone(&charged));
        let receipts = JournalConsumer {
            store: store.clone(),
            data_plane: data_plane.clone(),
            settings: current.clone(),
            metrics: Arc::clone(&observer.metrics),
            charged: Arc::clone(&charged),
        };
        let floors = FloorEnforcer {
            store: store.clone(),
            data_plane: data_plane.clone(),
            settings: current.clone(),
            metrics: Arc::clone(&observer.metrics),
            charged,
        };
        let proposals = continue_proposals(store, || Proposals::of(&current.get(), store, github, reader));
        tokio::select! {
            () = traces::export_during(queues.export, store, Some(data_plane), work) => {}
            () = observer.metrics.query_store(store) => {}
            () = Box::pin(managed::monitor(settings)) => {}
            never = Box::pin(agents::apply_changes(|| current.get(), store)) => match never {},
            () = Box::pin(runner_repos::monitor(settings)) => {}
            never = Box::pin(proposals) => match never {},
            never = Box::pin(receipts.run()) => match never {},
            never = Box::pin(floors.run()) => match never {},
            never = Box::pin(reconciliation.run()) => match never {},
        }
    }

    /// Returns the task that reconciles receipts, and signals `charged` when it has corrected some.
    fn reconciliation(
        &self,
        settings: &Settings,
        hints: Receiver<Bytes>,
        charged: Arc<Notify>,
    ) -> ReconciliationTask {
        let lease = settings.worker.lease_duration;
        let metrics = Arc::clone(&self.observer.metrics);
        let reconciler = Reconciler::new(self.store.clone(), self.data_plane.clone(), metrics, lease);
        let reconciler = reconciler.signalling(charged);
        ReconciliationTask { reconciler, settings: self.settings.clone(), hints }
    }
}
