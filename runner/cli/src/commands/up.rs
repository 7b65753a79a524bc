//! `sluice up`

use std::{
    io::{self, IsTerminal, Write},
    sync::Arc,
    time::Duration,
};

use platform_core::control::Health;
use platform_runtime::{
    settings::{Settings, Telemetry},
    shutdown::{Asked, RunBy, Signals},
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
use runner_gateways::sealed;
use runner_store::Error as StoreError;
use runner_telemetry::traces::{self, Export};
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
    complain(&settings.telemetry);
    refuse_elsewhere(context).await?;
    let data_plane = DataPlane::at(&settings.proxy.control_socket());
    let catalog = Arc::new(Catalog::of(settings));
    let (observer, export) = Observer::of(settings)?;
    // A closed terminal ends what runs in it. Without a terminal, SIGHUP has its meaning for services.
    let by = if io::stdout().is_terminal() { RunBy::Person } else { RunBy::Service };
    let signals = Signals::install(by)?;
    let (cancel, proxy_stop) = (CancellationToken::new(), CancellationToken::new());
    let api = match settings.api.listen {
        Some(address) => Some(Api::bind(address).await?),
        None => None,
    };
    let (proxy, health) = supervise::start(&plan, &data_plane).await?;
    announce(context, (&proxy, &health), api.as_ref())?;
    let leave = CancellationToken::new();
    let read = (context.origins.clone(), context.values.clone());
    let told = (Arc::clone(&catalog), Arc::clone(&observer.metrics));
    let reloading = Reloading::new(read, told, data_plane.clone());
    let waiting = heed(signals, reloading, [cancel.clone(), leave.clone()]);
    let watched = async {
        let ended = supervise::watch_over(proxy, &plan, &data_plane, &proxy_stop).await;
        // Without a proxy no run can be registered.
        cancel.cancel();
        ended
    };
    let worked = async {
        let at_end = if by == RunBy::Person { AtEnd::Cancel(leave) } else { AtEnd::Leave };
        let work =
            Work { observer: observer.clone(), export, at_end, cancel: &cancel, proxy_stop: &proxy_stop };
        let ended = work.on_runs(context, &catalog).await;
        // The work may have ended because the store serves another host: then nothing is left to do.
        cancel.cancel();
        // The proxy stops last, because cancelled runs are closed there.
        proxy_stop.cancel();
        ended
    };
    let served = async {
        if let Some(api) = api {
            api.serve((Arc::clone(&catalog), observer.clone()), cancel.clone()).await;
        }
    };
    let (watched, worked, ()) = tokio::join!(watched, worked, served);
    waiting.abort();
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
        environment: supervise::child_environment(&context.origins.environment)?,
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

/// Work on runs, with its observers and its stop signals.
struct Work<'s> {
    observer: Observer,
    export: Option<Export>,
    at_end: AtEnd,
    cancel: &'s CancellationToken,
    proxy_stop: &'s CancellationToken,
}

impl Work<'_> {
    /// Works on runs once all backends are available, until it is to stop.
    ///
    /// # Errors
    /// If the store serves another host.
    async fn on_runs(self, context: &Context, catalog: &Catalog) -> Result<(), StoreError> {
        let Self { observer, export, at_end, cancel, proxy_stop } = self;
        let settings = &context.settings;
        let open = async || context.serving_store().await;
        let Some(mut host) = worker::surroundings(settings, open, cancel).await? else { return Ok(()) };
        host.observer = observer;
        let mut worked = Ok(());
        let work = async {
            worked = Box::pin(worker::work(&host, (settings, catalog), cancel, at_end)).await;
            proxy_stop.cancel();
        };
        observed(&host, (export, &host.data_plane), settings, work).await;
        worked
    }
}

/// Warns of settings that are passed over.
fn complain(telemetry: &Telemetry) {
    if let Some(problem) = &telemetry.passed_over {
        tracing::warn!(problem, "OTEL_EXPORTER_OTLP_ENDPOINT cannot be used and is passed over");
    }
}

/// Does `work` on `host`. Meanwhile it exports traces, answers queries for metrics, and looks after the gateways here.
async fn observed(
    host: &EngineHandles,
    (export, data_plane): (Option<Export>, &DataPlane),
    settings: &Settings,
    work: impl Future<Output = ()>,
) {
    tokio::select! {
        () = traces::beside(export, (&host.store, Some(data_plane)), work) => {}
        () = host.observer.metrics.ask(&host.store) => {}
        () = Box::pin(sealed::tend(settings)) => {}
    }
}

/// Prints what runs, and where.
fn announce(context: &Context, (proxy, health): (&Proxy, &Health), api: Option<&Api>) -> io::Result<()> {
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
fn heed(mut signals: Signals, reloading: Reloading, stops: [CancellationToken; 2]) -> JoinHandle<()> {
    task::spawn("signals", async move {
        for stop in stops {
            while signals.next().await == Asked::Reload {
                reloading.again().await;
            }
            stop.cancel();
        }
    })
}
