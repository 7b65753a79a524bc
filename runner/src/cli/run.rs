//! `sluice run`: one question, its answer as it comes, and an exit code that says how it went.

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use platform_core::{
    budget::Budget,
    control::UpstreamHealth,
    event::AgentEvent,
    grant::Correlation,
    id::{AccountId, AgentId, ExternalId, RunId},
    money::NanoDollars,
    name,
    priority::Priority,
    traceparent::Traceparent,
};
use platform_runtime::{
    random,
    settings::{Accounts, DEFAULT_AGENT, Image},
    shutdown, task,
};
use tokio::{runtime::Handle, sync::mpsc};
use tokio_util::sync::CancellationToken;

use super::{
    Context, Error,
    exit::{Exit, Misused},
    show::Show,
    status::TICK,
    wait,
};
use crate::{
    conversation::{Message, Role},
    data_plane::DataPlane,
    run::{self, Booked, BookingError, Host, Keep, Observer, Order, Wanted},
    sandbox::docker::Docker,
    store::{self, Created, Store},
    traces,
    workspace::Workspaces,
};

/// Events between the run and the terminal.
const EVENTS: usize = 512;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sluice run \"Explain this repository\"
  git diff | sluice run -              the question from standard input
  sluice run --history said.json \"Go on\"  after what was said before: [{\"role\": \"user\", \"content\": \"...\"}, ...]
  sluice run --image my-agent:dev \"Hi\"  the agent's entry, another image
  sluice run --detach \"A long task\"      `sluice up` works on it; print its id and return
  sluice run --detach --priority low \"Tidy up\"  the same, once nothing more urgent waits
  sluice runs wait run-19c1-5f0e         its answer, once there is one")]
pub(super) struct Arguments {
    /// The agent to run
    #[arg(long, default_value = DEFAULT_AGENT, value_name = "AGENT")]
    agent: AgentId,
    /// The model to ask [default: the agent's, else upstream.default_model]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Who pays
    #[arg(long, default_value = "local", value_name = "ACCOUNT")]
    account: AccountId,
    /// User on whose behalf it runs, for the upstream's records
    #[arg(long, value_name = "ID")]
    user: Option<ExternalId>,
    /// Id of the run [default: a new one]
    #[arg(long, value_name = "RUN")]
    run_id: Option<RunId>,
    /// Another image for this run
    #[arg(long, value_name = "IMAGE")]
    image: Option<Image>,
    /// Most tokens of prompts and answers; never more than the agent's entry allows
    #[arg(long, value_name = "N")]
    total_tokens: Option<u64>,
    /// Most dollars, likewise; only models can be called that have a price
    #[arg(long, value_name = "DOLLARS")]
    cost: Option<NanoDollars>,
    /// How urgent it is beside others that wait: low, normal or high; never more than its account's entry allows
    #[arg(long, default_value_t, value_name = "PRIORITY")]
    priority: Priority,
    /// Leave it to `sluice up`: print the run's id and return
    #[arg(long)]
    detach: bool,
    /// What was said before the question: a file with a JSON list of `{role, content}`, role being user, assistant or system
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// W3C trace context of which the run is part [default: $TRACEPARENT, if there is one]
    #[arg(long, value_name = "TRACEPARENT")]
    traceparent: Option<Traceparent>,
    /// The conversation to go on with, of an agent whose runs are sessions of a gateway; runs of one conversation wait for each other
    #[arg(long, value_name = "KEY")]
    state_key: Option<ExternalId>,
    /// Keep the workspace when the run has ended; `sluice runs show` tells where, `sluice runs gc --kept` removes it
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    output: OutputArguments,
    /// The question; `-` reads it from standard input
    question: String,
}

/// How the run is shown.
#[derive(clap::Args, Clone, Copy)]
pub(super) struct OutputArguments {
    /// Print every event as a line of JSON; the last one is the result
    #[arg(long)]
    pub(super) json: bool,
    /// Pass what the agent wrote on as it is, escape sequences included
    #[arg(long)]
    pub(super) raw: bool,
}

/// An id for a run that has none: sorts by time, does not collide.
pub(super) fn new_run_id() -> Result<RunId, Error> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    Ok(RunId::parse(&format!("run-{since_epoch:x}-{:08x}", random::bits() & 0xffff_ffff))?)
}

pub(super) async fn run(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let (output, detach) = (arguments.output, arguments.detach);
    let settings = &context.settings;
    let data_plane = DataPlane::at(&settings.proxy.control_socket());
    let order = order(context, &data_plane, arguments).await?;
    let store = context.serving_store().await?;
    if detach {
        return leave(&store, (&order, &settings.accounts), output).await;
    }
    let docker = Docker::connect(&settings.sandbox.docker_socket).await?;
    let workspaces = Workspaces::open(&settings.sandbox)?;
    workspaces.sized(order.wanted.agent.disk).room()?.enough()?;
    let (observer, export) = Observer::of(settings)?;
    let host = Host { observer, ..Host::of(settings, docker, store, workspaces) };
    host.data_plane.health().await?;
    let cancel = cancelled_by_signals()?;
    let booked = match Booked::book(&host, order).await {
        Ok(booked) => booked,
        // Whoever asks again after a broken connection gets the same answer.
        Err(BookingError::Before(run)) => return wait::wait(&host.store, &run.run, output, &cancel).await,
        Err(error) => return Err(error.into()),
    };
    // Calls are traced by `sluice up`, which reads the journal.
    traces::beside(export, (&host.store, None), live(&host, &booked, output, &cancel)).await
}

/// Lives a run that is ours, and shows it.
async fn live(
    host: &Host,
    booked: &Booked,
    output: OutputArguments,
    cancel: &CancellationToken,
) -> Result<Exit, Error> {
    let (events, shown) = mpsc::channel::<AgentEvent>(EVENTS);
    // On a thread of its own: a terminal or pager that stops reading must not stop clocks, signals and clean-up.
    let clock = Handle::current();
    let display = std::thread::spawn(move || display(Show::new(output), shown, &clock));
    let finished = run::execute(host, booked, &events, cancel).await;
    drop(events);
    let shown = display.join().map_err(|_panic| "showing the run failed")?;
    let finished = match finished {
        Ok(finished) => finished,
        // Somebody has taken it over, while we were stopped or asleep, and goes on with it.
        Err(_lost) => return wait::wait(&host.store, &booked.order.run_id, output, cancel).await,
    };
    shown?.result(&booked.order.subject(), &finished)?;
    Ok(finished.answer.map_or_else(|failure| failure.code.into(), |_| Exit::Success))
}

/// Stores the order for `sluice up`, and tells its id.
async fn leave(
    store: &Store,
    (order, accounts): (&Order, &Accounts),
    output: OutputArguments,
) -> Result<Exit, Error> {
    let mut out = io::stdout();
    let (Created::New(run) | Created::Before(run)) = match Booked::leave(store, order, accounts).await {
        Ok(created) => created,
        Err(BookingError::NotStored(full @ store::Error::Full(_))) => {
            if let (true, store::Error::Full(full)) = (output.json, &full) {
                writeln!(out, "{}", full.json())?;
            }
            return Err(full.into());
        }
        Err(error) => return Err(error.into()),
    };
    if output.json {
        writeln!(out, "{}", serde_json::json!({ "run_id": run.run, "state": run.state.name() }))?;
    } else {
        writeln!(out, "{}", run.run)?;
    }
    Ok(Exit::Success)
}

/// Shows events until there are no more, also when nobody can see them: the run waits for its last ones.
fn display(mut show: Show, mut events: mpsc::Receiver<AgentEvent>, clock: &Handle) -> io::Result<Show> {
    let mut written = Ok(());
    loop {
        let next = match show.is_watched() {
            true => clock.block_on(async { tokio::time::timeout(TICK, events.recv()).await }),
            false => Ok(events.blocking_recv()),
        };
        written = written.and_then(|()| match &next {
            Ok(Some(event)) => show.event(event),
            Ok(None) => Ok(()),
            Err(_elapsed) => show.tick(),
        });
        if matches!(next, Ok(None)) {
            return written.map(|()| show);
        }
    }
}

async fn order(context: &Context, data_plane: &DataPlane, arguments: Arguments) -> Result<Order, Error> {
    let agents = &context.settings.agents;
    let Some(agent) = agents.get(&arguments.agent) else {
        let known: Vec<_> = agents.keys().map(ToString::to_string).collect();
        return Err(Box::new(Misused(format!(
            "no agent {}; there are: {}",
            arguments.agent,
            known.join(", ")
        ))));
    };
    let mut agent = agent.clone();
    let default = || agent.model.clone().or_else(|| context.settings.upstream.default_model.clone());
    let Some(model) = arguments.model.or_else(default) else {
        return Err(Box::new(Misused(no_model(&arguments.agent, data_plane).await)));
    };
    let budget = &mut agent.budget;
    tighten(budget, arguments.total_tokens, arguments.cost)?;
    if budget.cost_nanodollars.is_some() && !context.settings.has_price(&model) {
        return Err(Box::new(Misused(format!(
            "the run has a limit of cost, and model {model} has no price: add [prices.\"{model}\"], or run it without --cost and without `cost` in its agent's entry"
        ))));
    }
    agent.image = arguments.image.unwrap_or(agent.image);
    let mut messages = arguments.history.as_deref().map_or(Ok(vec![]), history)?;
    let content = match arguments.question.as_str() {
        "-" => read_stdin()?,
        question => question.to_owned(),
    };
    messages.push(Message { role: Role::User, content });
    // What is no trace context is as good as none: the recommendation wants it ignored.
    let caller = context.origins.environment.get(name::env::TRACEPARENT).and_then(|text| text.parse().ok());
    Ok(Order {
        run_id: arguments.run_id.map_or_else(new_run_id, Ok)?,
        account: arguments.account,
        correlation: Correlation { user: arguments.user, ..Correlation::default() },
        agent_id: arguments.agent,
        priority: arguments.priority,
        wanted: Wanted {
            agent,
            model,
            messages,
            state_key: arguments.state_key,
            keep: if arguments.keep { Keep::Workspace } else { Keep::Nothing },
            caller: None,
        },
    }
    .part_of(arguments.traceparent.or(caller)))
}

/// Has the limits of the options hold where they are tighter.
fn tighten(budget: &mut Budget, total_tokens: Option<u64>, cost: Option<NanoDollars>) -> Result<(), Misused> {
    for (option, allowed) in [("--total-tokens", total_tokens), ("--cost", cost.map(|cost| cost.0))] {
        if allowed == Some(0) {
            return Err(Misused(format!(
                "{option} 0 allows no call: leave it out for the limit of the agent's entry"
            )));
        }
    }
    budget.total_tokens = least(budget.total_tokens, total_tokens);
    budget.cost_nanodollars = least(budget.cost_nanodollars, cost);
    Ok(())
}

/// The tighter one of two limits.
fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
}

/// Tells which model could be named.
async fn no_model(agent: &AgentId, data_plane: &DataPlane) -> String {
    let offered = match data_plane.upstream().await {
        Ok(UpstreamHealth::Ready { models, .. }) => format!("; the upstream offers: {}", models.join(", ")),
        _ => String::new(),
    };
    format!("{agent} has no model: pass --model, or set its `model` or upstream.default_model{offered}")
}

/// What was said before.
fn history(file: &Path) -> Result<Vec<Message>, Error> {
    let mistake = |why: String| Error::from(Misused(format!("--history {}: {why}", file.display())));
    let text = fs::read(file).map_err(|error| mistake(error.to_string()))?;
    serde_json::from_slice(&text)
        .map_err(|error| mistake(format!("not a JSON list of messages, {{role, content}}: {error}")))
}

fn read_stdin() -> io::Result<String> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    Ok(text)
}

/// Cancelled by the first SIGINT, SIGTERM or SIGHUP. Later ones change nothing: clean-up is under way and short.
pub(super) fn cancelled_by_signals() -> io::Result<CancellationToken> {
    let cancel = CancellationToken::new();
    let (signalled, trigger) = (shutdown::signalled(shutdown::RunBy::Person)?, cancel.clone());
    task::spawn("signals", async move {
        signalled.await;
        trigger.cancel();
        // Keeps the handlers installed.
        std::future::pending::<()>().await;
    });
    Ok(cancel)
}
