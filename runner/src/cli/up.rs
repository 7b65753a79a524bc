//! `sluice up`

use std::{
    io::{self, IsTerminal, Write},
    sync::Arc,
};

use platform_core::control::Health;
use platform_runtime::{
    settings::{Settings, Telemetry},
    shutdown::{Asked, RunBy, Signals},
    task,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Context, Error, exit::Exit};
use crate::{
    agents::Catalog,
    api::Api,
    data_plane::DataPlane,
    gateway::sealed,
    reload::Reloading,
    run::{Host, Observer},
    store::Error as StoreError,
    supervise::{self, Plan, Proxy},
    traces::{self, Export},
    worker::{self, AtEnd},
};

pub(super) async fn up(context: &Context) -> Result<Exit, Error> {
    let settings = &context.settings;
    let takes_tokens = settings.proxy.listen.is_some() && settings.proxy.token_secrets_file.is_none();
    if takes_tokens && context.token_secret.is_some() {
        return Err(Box::new(supervise::Error::HoldsTokenSecret));
    }
    let plan = Plan {
        program: supervise::program_beside_us(),
        arguments: context.passed_on.clone(),
        environment: supervise::child_environment(&context.origins.environment)?,
        longest_stop: settings.proxy.longest_stop().duration(),
    };
    complain(&settings.telemetry);
    let data_plane = DataPlane::at(&settings.proxy.control_socket());
    let catalog = Arc::new(Catalog::of(settings));
    let (observer, export) = Observer::of(settings)?;
    // A terminal that is closed ends what runs in it. Without one, SIGHUP is what it is to any service.
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
        // Nobody could register a run any more.
        cancel.cancel();
        ended
    };
    let worked = async {
        let at_end = if by == RunBy::Person { AtEnd::Cancel(leave) } else { AtEnd::Leave };
        let work =
            Work { observer: observer.clone(), export, at_end, cancel: &cancel, proxy_stop: &proxy_stop };
        let ended = work.on_runs(context, &catalog).await;
        // Of no use any more, if it is the store that serves another host.
        cancel.cancel();
        // The proxy last: runs that are cancelled are closed there.
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

/// Work on runs, and what it reports to and is ended by.
struct Work<'s> {
    observer: Observer,
    export: Option<Export>,
    at_end: AtEnd,
    cancel: &'s CancellationToken,
    proxy_stop: &'s CancellationToken,
}

impl Work<'_> {
    /// Works on runs once what that takes is there, until it is to stop.
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

/// Says what is passed over although it is set.
fn complain(telemetry: &Telemetry) {
    if let Some(problem) = &telemetry.passed_over {
        tracing::warn!(problem, "OTEL_EXPORTER_OTLP_ENDPOINT cannot be used and is passed over");
    }
}

/// Does `work` on `host`, has operators be told of it, and looks after the gateways here meanwhile.
async fn observed(
    host: &Host,
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

/// Says what runs, and where.
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

/// Does what signals ask for: the first one that means stop triggers the first of `stops`, and so on.
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
