//! Implements `sluice up`: starts the proxy, the API and a worker, and stops them in order.

mod execution;

use std::{
    io::{self, IsTerminal, Write},
    sync::Arc,
    time::Duration,
};

use platform_core::control::Health;
use platform_runtime::{
    report,
    settings::{Settings, Telemetry},
    shutdown::{RunBy, Signalled, Signals},
    task, terminal,
};
use runner_api::{Api, ApiContext, Callbacks, ConfigurationFile};
use runner_connections::SealingKeys;
use runner_control_client::DataPlane;
use runner_engine::{
    agents::Catalog,
    observer::Observer,
    worker::{AtEnd, Presence},
};
use runner_proposals::ProposalPlace;
use runner_repos::Refresher;
use runner_store::{Error as StoreError, RunChanges};
use tokio::{
    task::JoinHandle,
    time::{MissedTickBehavior, timeout},
};
use tokio_util::sync::CancellationToken;

use self::execution::Execution;
use super::{Context, Error, exit::Exit};
use crate::{
    doctor,
    reload::Reloader,
    supervise::{self, Plan, Proxy},
};

/// Longest wait for the store before the start of the proxy.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which the proxy is asked whether it has read its configuration again.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);
/// Delay before the API tries again to open the store.
const STORE_RETRY_DELAY: Duration = Duration::from_secs(2);

pub(super) async fn up(context: &Context) -> Result<Exit, Error> {
    let settings = &context.settings;
    let plan = plan(context)?;
    check_settings(settings)?;
    let store_problem = store_problem(context).await?;
    let data_plane = DataPlane::at(&settings.proxy.control_socket());
    let catalog = Arc::new(Catalog::of(settings));
    let (observer, export) = Observer::of(settings)?;
    let run_by = if io::stdout().is_terminal() { RunBy::Person } else { RunBy::Service };
    // SIGHUP means to reload. On a terminal it may also mean that this was closed, which is looked at when it comes.
    let signals = Signals::install(RunBy::Service)?;
    let cancel = CancellationToken::new();
    let proxy_stop = CancellationToken::new();
    // Comes before the error of an address that the other process has already.
    warn_of_other_supervisor(&data_plane).await;
    let api = Api::bind(&settings.api)?;
    let (proxy, health) = supervise::start(&plan, &data_plane).await?;
    // Before it says that it is ready, so that a command right after that finds it.
    let _presence = show_presence(settings);
    announce(context, &proxy, &health, api.as_ref())?;
    let obstacles = doctor::obstacles(settings, &data_plane).await;
    announce_readiness(obstacles.into_iter().chain(store_problem).collect())?;
    let leave_runs = CancellationToken::new();
    // The worker's store reports to the API's.
    let changes = RunChanges::default();
    let reloader = reloader(context, &catalog, &observer, &data_plane, api.as_ref());
    let listener = SignalListener { signals, reloader, run_by };
    let signal_task = listener.spawn([cancel.clone(), leave_runs.clone()]);
    let supervised = async {
        let ended = supervise::watch_over(proxy, &plan, &data_plane, &proxy_stop).await;
        // Without a proxy no run can be registered.
        cancel.cancel();
        ended
    };
    let (callbacks, hints) = Callbacks::channel();
    let refresher = Refresher::default();
    let executed = async {
        let at_end = if run_by == RunBy::Person { AtEnd::Cancel(leave_runs) } else { AtEnd::Leave };
        let execution = Execution {
            observer: observer.clone(),
            export,
            hints,
            refresher: refresher.clone(),
            at_end,
            changes: &changes,
            cancel: &cancel,
            proxy_stop: &proxy_stop,
        };
        let ended = execution.run_worker(context, &catalog).await;
        // Stops the API, too, if the worker ended because the store serves another host.
        cancel.cancel();
        // The proxy stops last, because the worker closes cancelled runs there.
        proxy_stop.cancel();
        ended
    };
    let api_context = api_context(context, Arc::clone(&catalog), observer.clone(), cancel.clone());
    let api_context = api_context.with_callbacks(callbacks, context.ingest_token.clone());
    let api_context = api_context.with_refresher(refresher.clone());
    let served = serve_api(context, api, &api_context, &changes);
    let (supervised, executed, served) = tokio::join!(supervised, executed, served);
    signal_task.abort();
    supervised?;
    executed?;
    served?;
    writeln!(io::stdout(), "stopped")?;
    Ok(Exit::Success)
}

/// Looks for faults of settings that would show only later: a wrong file is found now, and not by the first agent.
fn check_settings(settings: &Settings) -> Result<(), Error> {
    settings.connections.key_file.as_ref().map(SealingKeys::read).transpose()?;
    ProposalPlace::check(settings)?;
    warn_of_ignored_settings(&settings.telemetry);
    Ok(())
}

/// Shows other commands that this process executes runs.
fn show_presence(settings: &Settings) -> Option<Presence> {
    let shown = Presence::show(&settings.sandbox.state_dir).inspect_err(|error| {
        tracing::warn!(error = report::chain(error), "other commands will say that nothing executes runs");
    });
    shown.ok()
}

fn api_context(
    context: &Context,
    catalog: Arc<Catalog>,
    observer: Observer,
    cancel: CancellationToken,
) -> ApiContext {
    let api_context = ApiContext::of(&context.settings, catalog, observer, cancel);
    api_context.with_configuration(configuration_file(context)).with_github(context.github())
}

/// Returns the configuration file, as drafts of agents are compared with it.
fn configuration_file(context: &Context) -> ConfigurationFile {
    ConfigurationFile {
        path: context.sources.configuration_path().to_owned(),
        reader: context.settings_reader(),
    }
}

/// Returns the reader of the configuration after the start.
fn reloader(
    context: &Context,
    catalog: &Arc<Catalog>,
    observer: &Observer,
    data_plane: &DataPlane,
    api: Option<&Api>,
) -> Reloader {
    Reloader {
        sources: context.sources.clone(),
        values: context.values.clone(),
        catalog: Arc::clone(catalog),
        metrics: Arc::clone(&observer.metrics),
        data_plane: data_plane.clone(),
        api_tls: api.and_then(Api::tls),
        followed: None,
    }
}

/// Serves the API until the stop; waits for the stop if `api` is `None`.
async fn serve_api(
    context: &Context,
    api: Option<Api>,
    api_context: &ApiContext,
    changes: &RunChanges,
) -> io::Result<()> {
    let Some(api) = api else {
        api_context.stopped().await;
        return Ok(());
    };
    let opened = async {
        tokio::select! {
            () = open_api_store(context, api_context, changes) => {}
            () = api_context.stopped() => {}
        }
    };
    let served = async {
        let served = api.serve(api_context.clone()).await;
        // If the API failed, all else stops, too.
        api_context.stop();
        served
    };
    let (served, ()) = tokio::join!(served, opened);
    served
}

/// Opens a store for the API alone, so that its reads do not wait for the worker's connection. Tries until it succeeds.
async fn open_api_store(context: &Context, api_context: &ApiContext, changes: &RunChanges) {
    loop {
        match context.api_store().await {
            Ok(store) => return api_context.open(store.reporting(changes.clone())),
            Err(error) => tracing::debug!(error = report::chain(&error), "the API has no store yet"),
        }
        tokio::time::sleep(STORE_RETRY_DELAY).await;
    }
}

/// Returns the command line and environment of the proxy.
///
/// # Errors
/// If the environment holds the upstream's key, or a secret that would not reach the proxy.
fn plan(context: &Context) -> Result<Plan, supervise::Error> {
    let proxy = &context.settings.proxy;
    let takes_tokens = proxy.listen.is_some() && proxy.token_secrets_file.is_none();
    if takes_tokens && context.token_secret.is_some() {
        return Err(supervise::Error::HoldsTokenSecret);
    }
    Ok(Plan {
        program: supervise::proxy_program(),
        arguments: context.proxy_arguments.clone(),
        environment: supervise::child_environment(&context.sources.environment)?,
        longest_stop: proxy.longest_stop().duration(),
    })
}

/// Checks that the store does not serve another host, before anything is started. Returns all other problems in words:
/// the worker tries again later, because the proxy must not wait for a store.
///
/// # Errors
/// If the store serves another host.
async fn store_problem(context: &Context) -> Result<Option<String>, StoreError> {
    match timeout(STORE_TIMEOUT, context.serving_store()).await {
        Ok(Ok(store)) => {
            store.close().await;
            Ok(None)
        }
        Ok(Err(error)) if error.serves_another() => Err(error),
        Ok(Err(error)) => Ok(Some(report::chain(&error))),
        Err(_elapsed) => Ok(Some(format!("the store did not answer within {} s", STORE_TIMEOUT.as_secs()))),
    }
}

/// Warns if another `sluice up` has started the proxy. Several are allowed, and often a mistake.
async fn warn_of_other_supervisor(data_plane: &DataPlane) {
    if let Some(pid) = supervise::other_supervisor(data_plane).await {
        tracing::warn!(pid, "another `sluice up` of this configuration runs already: both execute its runs");
    }
}

/// Warns of settings that are ignored.
fn warn_of_ignored_settings(telemetry: &Telemetry) {
    if let Some(problem) = &telemetry.passed_over {
        tracing::warn!(problem, "OTEL_EXPORTER_OTLP_ENDPOINT ignored: it cannot be used");
    }
}

/// Prints the state of the proxy and the addresses of all listeners.
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
        writeln!(out, "api       {}", api.url())?;
        writeln!(out, "dashboard `sluice dashboard` prints a link to sign in")?;
    }
    Ok(())
}

/// Prints that everything is started, with each of the `obstacles` that keep runs from being executed.
fn announce_readiness(obstacles: Vec<String>) -> io::Result<()> {
    let mut out = io::stdout();
    let hint = if out.is_terminal() { "; Ctrl-C stops and cancels runs, twice leaves them" } else { "" };
    if obstacles.is_empty() {
        return writeln!(out, "ready{hint}");
    }
    writeln!(out, "ready, but: {}{hint}", terminal::safe(&obstacles.join("; ")))
}

/// Listener for what other processes ask of `sluice up`: signals, and reloads of its proxy.
struct SignalListener {
    signals: Signals,
    reloader: Reloader,
    run_by: RunBy,
}

impl SignalListener {
    /// Listens in its own task. The first stop signal triggers the first token of `stops`, the second signal the
    /// second token.
    fn spawn(mut self, stops: [CancellationToken; 2]) -> JoinHandle<()> {
        task::spawn("signals", async move {
            for stop in stops {
                self.reload_until_stopped().await;
                stop.cancel();
            }
        })
    }

    /// Reads the configuration again at each SIGHUP and after each reload of the proxy, until a signal means stop.
    async fn reload_until_stopped(&mut self) {
        let mut looks = tokio::time::interval(FOLLOW_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                signalled = self.signals.next() => match signalled {
                    Signalled::Stop => return,
                    Signalled::Reload if self.has_lost_terminal() => return,
                    Signalled::Reload => self.reloader.reload().await,
                },
                _ = looks.tick() => self.reloader.follow().await,
            }
        }
    }

    /// Returns whether the terminal of a person was closed, which sends SIGHUP as well.
    fn has_lost_terminal(&self) -> bool {
        self.run_by == RunBy::Person && !io::stdout().is_terminal()
    }
}
