//! `sluice up`

use std::{
    io::{self, IsTerminal, Write},
    sync::Arc,
    time::Duration,
};

use platform_core::control::Health;
use platform_runtime::{
    settings::{Settings, Telemetry},
    shutdown::{RunBy, Signalled, Signals},
    task,
};
use runner_api::Api;
use runner_control_client::DataPlane;
use runner_engine::{
    agents::Catalog,
    context::EngineHandles,
    observer::Observer,
    worker::{self, AtEnd},
};
use runner_gateways::managed;
use runner_store::Error as StoreError;
use runner_telemetry::traces::{self, SpanQueue};
use tokio::{task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{Context, Error, exit::Exit};
use crate::{
    reload::Reloading,
    supervise::{self, Plan, Proxy},
};

/// Longest wait for the store before the proxy is started.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) async fn up(context: &Context) -> Result<Exit, Error> {
    let settings = &context.settings;
    let plan = plan(context)?;
    warn_of_ignored(&settings.telemetry);
    refuse_elsewhere(context).await?;
    let data_plane = DataPlane::at(&settings.proxy.control_socket());
    let catalog = Arc::new(Catalog::of(settings));
    let (observer, export) = Observer::of(settings)?;
    // A closed terminal ends what runs in it. Without a terminal, SIGHUP has its meaning for services.
    let by = if io::stdout().is_terminal() { RunBy::Person } else { RunBy::Service };
    let signals = Signals::install(by)?;
    let cancel = CancellationToken::new();
    let proxy_stop = CancellationToken::new();
    let api = match settings.api.listen {
        Some(address) => Some(Api::bind(address).await?),
        None => None,
    };
    let (proxy, health) = supervise::start(&plan, &data_plane).await?;
    announce(context, &proxy, &health, api.as_ref())?;
    let leave = CancellationToken::new();
    let reloading = Reloading::new(
        context.sources.clone(),
        context.values.clone(),
        Arc::clone(&catalog),
        Arc::clone(&observer.metrics),
        data_plane.clone(),
    );
    let signal_task = handle_signals(signals, reloading, [cancel.clone(), leave.clone()]);
    let watched = async {
        let ended = supervise::watch_over(proxy, &plan, &data_plane, &proxy_stop).await;
        // Without a proxy no run can be registered.
        cancel.cancel();
        ended
    };
    let worked = async {
        let at_end = if by == RunBy::Person { AtEnd::Cancel(leave) } else { AtEnd::Leave };
        let work = Execution {
            observer: observer.clone(),
            export,
            at_end,
            cancel: &cancel,
            proxy_stop: &proxy_stop,
        };
        let ended = work.on_runs(context, &catalog).await;
        // The work may have ended because the store serves another host: then nothing is left to do.
        cancel.cancel();
        // The proxy stops last, because cancelled runs are closed there.
        proxy_stop.cancel();
        ended
    };
    let served = async {
        if let Some(api) = api {
            api.serve(Arc::clone(&catalog), observer.clone(), cancel.clone()).await;
        }
    };
    let (watched, worked, ()) = tokio::join!(watched, worked, served);
    signal_task.abort();
    watched?;
    worked?;
    writeln!(io::stdout(), "stopped")?;
    Ok(Exit::Success)
}

/// Returns the command line and environment of the proxy.
///
/// # Errors
/// If a secret that the proxy needs is where it does not reach the proxy, or where this process would hold it.
fn plan(context: &Context) -> Result<Plan, supervise::Error> {
    let proxy = &context.settings.proxy;
    let takes_tokens = proxy.listen.is_some() && proxy.token_secrets_file.is_none();
    if takes_tokens && context.token_secret.is_some() {
        return Err(supervise::Error::HoldsTokenSecret);
    }
    Ok(Plan {
        program: supervise::program_beside_us(),
        arguments: context.passed_on.clone(),
        environment: supervise::child_environment(&context.sources.environment)?,
        longest_stop: proxy.longest_stop().duration(),
    })
}

/// Ends the command early if the store serves another host: nothing is to be started then. The worker retries all other
/// errors later, because the proxy is not to wait for a store.
///
/// # Errors
/// If the store serves another host.
async fn refuse_elsewhere(context: &Context) -> Result<(), StoreError> {
    match timeout(STORE_TIMEOUT, context.serving_store()).await {
        Ok(Ok(store)) => {
            store.close().await;
            Ok(())
        }
        Ok(Err(error)) if error.serves_another() => Err(error),
        Ok(Err(_)) | Err(_) => Ok(()),
    }
}

/// Execution of runs, with its observers and its stop signals.
struct Execution<'s> {
    observer: Observer,
    export: Option<SpanQueue>,
    at_end: AtEnd,
    cancel: &'s CancellationToken,
    proxy_stop: &'s CancellationToken,
}

impl Execution<'_> {
    /// Works on runs once all backends are available, until it is to stop.
    ///
    /// # Errors
    /// If the store serves another host.
    async fn on_runs(self, context: &Context, catalog: &Catalog) -> Result<(), StoreError> {
        let Self { observer, export, at_end, cancel, proxy_stop } = self;
        let settings = &context.settings;
        let open = async || context.serving_store().await;
        let Some(mut host) = worker::connect_backends(settings, open, cancel).await? else { return Ok(()) };
        host.observer = observer;
        let mut worked = Ok(());
        let work = async {
            worked = Box::pin(worker::work(&host, settings, catalog, cancel, at_end)).await;
            proxy_stop.cancel();
        };
        run_observed(&host, export, settings, work).await;
        worked
    }
}

/// Warns of settings that are ignored.
fn warn_of_ignored(telemetry: &Telemetry) {
    if let Some(problem) = &telemetry.passed_over {
        tracing::warn!(problem, "OTEL_EXPORTER_OTLP_ENDPOINT ignored: it cannot be used");
    }
}

/// Does `work` on `host`. Meanwhile exports traces, answers queries for metrics, and looks after the gateways here.
async fn run_observed(
    host: &EngineHandles,
    export: Option<SpanQueue>,
    settings: &Settings,
    work: impl Future<Output = ()>,
) {
    tokio::select! {
        () = traces::export_during(export, &host.store, Some(&host.data_plane), work) => {}
        () = host.observer.metrics.ask(&host.store) => {}
        () = Box::pin(managed::monitor(settings)) => {}
    }
}

/// Prints the state of the proxy, and the addresses.
fn announce(context: &Context, proxy: &Proxy, health: &Health, api: Option<&Api>) -> io::Result<()> {
    let mut out = io::stdout();
    let origin = match proxy {
        Proxy::Own(_) => "started",
        Proxy::Adopted => "already running, adopted",
    };
    writeln!(out, "proxy     {origin}, pid {}", health.pid)?;
    writeln!(out, "upstream  {}", health.upstream)?;
    writeln!(out, "control   {}", context.settings.proxy.control_socket().display())?;
    if let Some(api) = api {
        writeln!(out, "api       http://{}", api.address())?;
    }
    let hint = if out.is_terminal() { "; Ctrl-C stops and cancels runs, twice leaves them" } else { "" };
    writeln!(out, "ready{hint}")
}

/// Handles signals. The first stop signal triggers the first of `stops`, the next one the second.
fn handle_signals(
    mut signals: Signals,
    reloading: Reloading,
    stops: [CancellationToken; 2],
) -> JoinHandle<()> {
    task::spawn("signals", async move {
        for stop in stops {
            while signals.next().await == Signalled::Reload {
                reloading.reload().await;
            }
            stop.cancel();
        }
    })
}
