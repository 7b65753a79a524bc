//! Implements `sluice run`: runs an agent once, prints its answer as it arrives, and exits with a code for the outcome.

mod files;
mod host_tool_events;
mod read_order;
mod repository;
mod roots;

use std::{
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use platform_core::{
    event::AgentEvent,
    id::{AccountId, AgentId, ExternalId, GatewayAgentId, InvalidId, ModelName, RunId, ToolName},
    money::NanoDollars,
    name,
    priority::Priority,
    traceparent::Traceparent,
};
use platform_runtime::{
    retry::{Backoff, Transient, retry_until},
    settings::{Accounts, DEFAULT_AGENT, Image},
};
use runner_control_client::{self as data_plane, DataPlane};
use runner_docker::Docker;
use runner_engine::{
    context::EngineHandles,
    observer::Observer,
    run::{self, LeaseError, LeasedRun},
    run_order::OrderError,
    run_request::RunRequest,
    thread::read_thread_key,
    worker::Presence,
};
use runner_store::{self as store, Created, Store};
use runner_telemetry::traces::{self, SpanQueue};
use runner_workspace::Workspaces;
use tokio::{runtime::Handle, sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

use self::{
    files::{FilesArguments, Staging},
    read_order::read_order,
    repository::RepositoryArguments,
};
use super::{
    Context, Error,
    count::parse_count,
    exit::Exit,
    left::Left,
    preflight,
    progress::REDRAW_INTERVAL,
    runtime::cancel_on_signals,
    show::{OutputArguments, Show},
    wait::{self, exit_of},
};

/// Capacity of the channel that carries events from the run to its display.
const EVENT_CHANNEL_CAPACITY: usize = 512;
/// Longest wait for a proxy, and the interval between its health checks meanwhile.
const PROXY_TIMEOUT: Duration = Duration::from_secs(3);
const PROXY_RETRY_DELAY: Duration = Duration::from_millis(50);

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sluice run --workspace . \"Explain this repository\"
  sluice run --repo https://github.com/acme/app --pr \"Fix the typo in the README\"
  sluice run --workspace . --include .env.test \"Make the tests pass\"
  git diff | sluice run -              read the question from standard input
  sluice run --history said.json \"Go on\"  earlier messages: [{\"role\": \"user\", \"content\": \"...\"}]
  sluice run --image my-agent:dev \"Hi\"  replace the image of the agent's entry
  sluice run --detach \"A long task\"      submit to `sluice up`, print the run's id and return
  sluice run --detach --priority low \"Tidy up\"  submit with low priority
  sluice runs wait run-19c1-5f0e         wait for the answer")]
pub(super) struct Arguments {
    /// Agent to run; `claude-code` is short for `sandbox:claude-code`
    #[arg(long, default_value = DEFAULT_AGENT, value_name = "AGENT", value_parser = parse_agent)]
    agent: AgentId,
    /// Agent of the agent's gateway, as `sluice gateway agents ls` lists it, or of OpenClaw, as `openclaw_agents` of the
    /// agent's entry describes it [default: that of the agent's entry]
    #[arg(long, value_name = "ID")]
    gateway_agent: Option<GatewayAgentId>,
    /// Model to ask [default: the agent's, else upstream.default_model]
    #[arg(long, value_name = "MODEL")]
    model: Option<ModelName>,
    /// Account that pays
    #[arg(long, default_value = "local", value_name = "ACCOUNT")]
    account: AccountId,
    /// User for whom the agent runs, for the upstream's records
    #[arg(long, value_name = "ID")]
    user: Option<ExternalId>,
    /// Id of the run [default: a new id]
    #[arg(long, value_name = "RUN")]
    run_id: Option<RunId>,
    /// Image for this run, instead of the image of the agent's entry
    #[arg(long, value_name = "IMAGE")]
    image: Option<Image>,
    /// Limit on tokens of prompts and answers; at most the limit of the agent's entry
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_count)]
    total_tokens: Option<u64>,
    /// Limit on cost in dollars; at most the limit of the agent's entry. Only models with a price can be called
    #[arg(long, value_name = "DOLLARS", allow_negative_numbers = true)]
    cost: Option<NanoDollars>,
    /// Priority among queued runs: low, normal or high; at most the priority of the account's entry
    #[arg(long, default_value_t, value_name = "PRIORITY")]
    priority: Priority,
    /// Host tool that the run may call, of those of its agent and account; may be repeated [default: all of them]
    #[arg(long = "host-tool", value_name = "TOOL")]
    host_tools: Vec<ToolName>,
    /// Submit the run to `sluice up`, print its id and return
    #[arg(long)]
    detach: bool,
    /// File of messages before the question: a JSON list of `{role, content}`; role is user, assistant or system
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// W3C trace context that the run is part of [default: $TRACEPARENT, if set]
    #[arg(long, value_name = "TRACEPARENT")]
    traceparent: Option<Traceparent>,
    /// Thread to continue: the agent gets its earlier questions and answers. Runs of a gateway's agents wait for each
    /// other; others are refused while the thread's last run has not ended
    #[arg(long, value_name = "KEY", value_parser = read_thread_key)]
    state_key: Option<ExternalId>,
    /// Keep the workspace after the run, for as long as `keep` of its agent says; `sluice runs show` prints its path
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    files: FilesArguments,
    #[command(flatten)]
    repository: RepositoryArguments,
    #[command(flatten)]
    output: OutputArguments,
    /// Question to ask; `-` reads it from standard input
    question: String,
}

/// Waits for a proxy that is just being started or replaced: `sluice up &` may come right before.
async fn wait_for_proxy(data_plane: &DataPlane) -> Result<(), data_plane::Error> {
    let deadline = Instant::now() + PROXY_TIMEOUT;
    let health = async || data_plane.health().await;
    retry_until(deadline, Backoff::constant(PROXY_RETRY_DELAY), Transient::is_transient, health)
        .await
        .map(drop)
}

/// Parses the id of an agent. A word without a family is one of Sluicegate's own.
pub(super) fn parse_agent(text: &str) -> Result<AgentId, InvalidId> {
    if text.contains(':') { AgentId::parse(text) } else { AgentId::parse(&format!("sandbox:{text}")) }
}

pub(super) async fn run(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let output = arguments.output;
    let detach = arguments.detach;
    let settings = &context.settings;
    let data_plane = DataPlane::at(&settings.proxy.control_socket());
    let files = arguments.files.clone();
    // W3C Trace Context demands that an invalid trace context is ignored.
    let caller = context.sources.environment.get(name::env::TRACEPARENT).and_then(|text| text.parse().ok());
    let caller = arguments.traceparent.or(caller);
    let order = read_order(context, &data_plane, arguments).await?;
    let store = context.serving_store().await?;
    let mut request = order.request(settings, &store).await?.part_of(caller);
    preflight::check_shown_price(settings, &data_plane, &request).await?;
    let staging = Staging::of(context, output);
    if detach {
        staging.add(&mut request, &files)?;
        let submitted = submit(&store, &request, &settings.accounts, output).await;
        if submitted.is_ok() && !Presence::is_shown(&settings.sandbox.state_dir) {
            writeln!(
                io::stderr(),
                "sluice: nothing executes runs here now: it waits until `sluice up` runs"
            )?;
        }
        if submitted.is_err() {
            staging.discard(&store, &request).await;
        }
        return submitted;
    }
    let (engine, export) = connect(context, store).await?;
    engine.workspaces.sized(request.spec.agent.disk).disk_space()?.enough()?;
    staging.add(&mut request, &files)?;
    let cancel = cancel_on_signals()?;
    let executing = Box::pin(execute_request(&engine, request.clone(), output, &cancel));
    // `sluice up` reads the journal and exports the spans of calls.
    let executed = traces::export_during(export, &engine.store, None, executing).await;
    if executed.is_err() {
        staging.discard(&engine.store, &request).await;
    }
    executed
}

/// Connects to all that a run of this process needs. Returns the spans to export, too.
pub(super) async fn connect(
    context: &Context,
    store: Store,
) -> Result<(EngineHandles, Option<SpanQueue>), Error> {
    let settings = &context.settings;
    let docker = Docker::connect(&settings.sandbox.docker_socket).await?;
    let workspaces = Workspaces::open(&settings.sandbox)?;
    let (observer, export) = Observer::of(settings)?;
    let handles = EngineHandles::of(settings, docker, store, workspaces);
    let engine = EngineHandles { observer, github: context.github(), ..handles };
    wait_for_proxy(&engine.data_plane).await?;
    Ok((engine, export))
}

/// Executes the run of `request` in this process, and shows it. Returns its exit code.
pub(super) async fn execute_request(
    engine: &EngineHandles,
    request: RunRequest,
    output: OutputArguments,
    cancel: &CancellationToken,
) -> Result<Exit, Error> {
    // Before the agent works and its account pays.
    if let Some(repo) = &request.spec.repo {
        repo.check_credential(&engine.github).map_err(OrderError::from)?;
    }
    match LeasedRun::create(engine, request).await {
        Ok(leased_run) => execute(engine, &leased_run, output, cancel).await,
        // A repeated command with the same `--run-id` gets the answer of the first.
        Err(LeaseError::Exists(run)) => {
            let settings = engine.settings.get();
            wait::wait(&engine.store, &settings.sandbox, &run.run_id, output, cancel).await
        }
        Err(error) => Err(not_created(error)),
    }
}

/// Executes a run that this process has leased, and shows it.
async fn execute(
    engine: &EngineHandles,
    leased_run: &LeasedRun,
    output: OutputArguments,
    cancel: &CancellationToken,
) -> Result<Exit, Error> {
    let (events, received) = mpsc::channel::<AgentEvent>(EVENT_CHANNEL_CAPACITY);
    // The display has its own thread: a terminal or pager that stops reading must not stop timers, signals and
    // clean-up.
    let timers = Handle::current();
    let RunRequest { run_id, spec, .. } = &leased_run.request;
    let show = Show::new(output).begins_with(spec);
    let display = std::thread::spawn(move || display_events(show, received, &timers));
    let executed =
        async |events: mpsc::Sender<AgentEvent>| run::execute(engine, leased_run, &events, cancel).await;
    let result = if spec.agent.host_tools.is_empty() {
        executed(events).await
    } else {
        let (own, made) = mpsc::channel(EVENT_CHANNEL_CAPACITY);
        let merged = host_tool_events::merge(engine.store.clone(), run_id, made, events);
        tokio::join!(Box::pin(executed(own)), merged).0
    };
    let shown = display.join().map_err(|_panic| io::Error::other("showing the run failed"))?;
    let result = match result {
        Ok(result) => result,
        // Another worker took the run over while this process was stopped, and executes it now.
        Err(_lease_lost) => {
            let settings = engine.settings.get();
            return wait::wait(&engine.store, &settings.sandbox, run_id, output, cancel).await;
        }
    };
    let left = Left::of(&engine.store, &engine.settings.get().sandbox, run_id).await?;
    shown?.result(&leased_run.request.subject(), &result, &left)?;
    if spec.files.is_some() && !output.json {
        writeln!(
            io::stderr(),
            "its changes: sluice runs diff {run_id}; to take them over: sluice runs apply {run_id}"
        )?;
    }
    Ok(exit_of(&result, left.relay.as_ref()))
}

/// Stores the request for `sluice up`, and prints its id.
async fn submit(
    store: &Store,
    request: &RunRequest,
    accounts: &Accounts,
    output: OutputArguments,
) -> Result<Exit, Error> {
    let mut out = io::stdout();
    let (Created::New(run) | Created::Existing(run)) =
        match LeasedRun::enqueue(store, request, accounts).await {
            Ok(created) => created,
            Err(error) => return Err(not_created(error)),
        };
    if output.json {
        writeln!(out, "{}", serde_json::json!({ "run_id": run.run_id, "state": run.state.name() }))?;
    } else {
        writeln!(out, "{}", run.run_id)?;
    }
    Ok(Exit::Success)
}

/// Returns the error for a run that was not created. A taken id or a full queue is not a failure of the store, so it is
/// named alone.
fn not_created(error: LeaseError) -> Error {
    match error {
        LeaseError::NotStored(
            refused @ (store::Error::Conflict { .. }
            | store::Error::Full(_)
            | store::Error::ThreadBusy { .. }),
        ) => refused.into(),
        error => error.into(),
    }
}

/// Shows events until the last one. Receives all even if the terminal is gone, because the run waits for that.
fn display_events(
    mut show: Show,
    mut events: mpsc::Receiver<AgentEvent>,
    timers: &Handle,
) -> io::Result<Show> {
    let mut written = Ok(());
    loop {
        let next = match show.is_watched() {
            true => timers.block_on(async { tokio::time::timeout(REDRAW_INTERVAL, events.recv()).await }),
            false => Ok(events.blocking_recv()),
        };
        written = written.and_then(|()| match &next {
            Ok(Some(event)) => show.event(event),
            Ok(None) => Ok(()),
            Err(_elapsed) => {
                show.tick();
                Ok(())
            }
        });
        if matches!(next, Ok(None)) {
            return written.map(|()| show);
        }
    }
}
