//! `sluice runs`: what ran, what is running, how it ended and what it used.

use std::{
    io::{self, Write},
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use clap::builder::PossibleValuesParser;
use platform_core::id::{AccountId, AgentId, RunId};
use platform_runtime::terminal::{self, Output, Sanitizer};
use serde_json::{Value, json};

use super::{
    Context, Error, events,
    exit::Exit,
    gc, logs,
    run::{OutputArguments, cancelled_by_signals},
    table::Table,
    wait,
};
use crate::{
    lifecycle::{Failure, State},
    store::{Filter, Kind, Record, Run, UnixMillis},
    workspace,
};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// List runs, the newest first
    #[command(after_help = "\
Examples:
  sluice runs ls                            the last twenty
  sluice runs ls --state running            what runs now?
  sluice runs ls --account acct-7 -n 100    what an account ran
  sluice runs ls --before run-19c1-5f0e     the page after this one")]
    Ls(LsArguments),
    /// Show everything that is known of a run
    #[command(after_help = "\
Examples:
  sluice runs show run-19c1-5f0e
  sluice runs show run-19c1-5f0e --json | jq .usage")]
    Show(ShowArguments),
    /// Show what a run tells, as it happens or happened
    Events(events::Arguments),
    /// Show what an agent printed
    Logs(logs::Arguments),
    /// Remove what is left of runs that are over, and say why what stays does
    ///
    /// Only what is proven to be this installation's and dead: its run has ended, and the store has a row of this very thing.
    /// `sluice up` does the same at its start and from time to time.
    #[command(after_help = "\
Examples:
  sluice runs gc --dry-run                  what would be removed, and why?
  sluice runs gc
  sluice runs gc --kept                     workspaces that were kept, too
  sluice runs gc --json | jq -r '.things[] | select(.outcome == \"unknown\").name'")]
    Gc(gc::Arguments),
    /// Wait until a run has ended, and show its answer
    #[command(after_help = "\
Examples:
  sluice runs wait run-19c1-5f0e
  sluice runs wait $(sluice run --detach \"A long task\") > answer.txt

The exit code is the run's, as `sluice run` would have had it.")]
    Wait(WaitArguments),
    /// End runs: their agents are told to end, and ended if they do not
    #[command(after_help = "\
Examples:
  sluice runs cancel run-19c1-5f0e
  sluice runs ls --state running --json | jq -r '.runs[].run_id' | xargs sluice runs cancel")]
    Cancel(CancelArguments),
}

#[derive(clap::Args)]
pub(super) struct WaitArguments {
    /// The run
    run: RunId,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(clap::Args)]
pub(super) struct CancelArguments {
    /// The runs
    #[arg(required = true)]
    runs: Vec<RunId>,
    /// Return as soon as it is asked for, not when they have ended
    #[arg(long)]
    no_wait: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(super) struct LsArguments {
    /// Only runs in this state; may be repeated
    #[arg(long, value_name = "STATE", value_parser = PossibleValuesParser::new(State::NAMES))]
    state: Vec<String>,
    /// Only runs this account pays for
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<AccountId>,
    /// Only runs of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentId>,
    /// Only runs ordered before this one
    #[arg(long, value_name = "RUN")]
    before: Option<RunId>,
    /// At most so many
    #[arg(short, long, value_name = "N", default_value_t = 20)]
    number: u32,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(super) struct ShowArguments {
    /// The run
    run: RunId,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) async fn runs(context: &Context, command: Command) -> Result<Exit, Error> {
    match command {
        Command::Ls(arguments) => ls(context, arguments).await,
        Command::Show(arguments) => show(context, arguments).await,
        Command::Events(arguments) => events::events(context, arguments).await,
        Command::Logs(arguments) => logs::logs(context, arguments).await,
        Command::Gc(arguments) => gc::gc(context, arguments).await,
        Command::Wait(arguments) => {
            let store = context.store().await?;
            wait::wait(&store, &arguments.run, arguments.output, &cancelled_by_signals()?).await
        }
        Command::Cancel(arguments) => cancel(context, arguments).await,
    }
}

async fn cancel(context: &Context, arguments: CancelArguments) -> Result<Exit, Error> {
    let store = context.store().await?;
    let stop = cancelled_by_signals()?;
    let mut asked = Vec::new();
    for run in &arguments.runs {
        asked.push(store.ask_cancel(run).await?);
    }
    let mut out = io::stdout();
    for mut run in asked {
        if !arguments.no_wait {
            match wait::ended(&store, &run.run, &stop).await? {
                Some(record) => run = record.run,
                None => return Ok(Exit::Cancelled),
            }
        }
        if arguments.json {
            writeln!(out, "{}", json!({ "run_id": run.run, "state": run.state.name() }))?;
        } else {
            writeln!(out, "{} {}", run.run, run.state)?;
        }
    }
    Ok(Exit::Success)
}

async fn ls(context: &Context, arguments: LsArguments) -> Result<Exit, Error> {
    let LsArguments { state, account, agent, before, number, json } = arguments;
    let store = context.store().await?;
    let before = match before {
        Some(run) => Some(store.record(&run).await?.run).map(|run| (run.created, run.run)),
        None => None,
    };
    let states = State::NAMES.into_iter().filter(|name| state.iter().any(|asked| asked == name)).collect();
    let page = store.list(&Filter { states, account, agent, before }, number).await?;
    let mut out = io::stdout();
    if json {
        let more = page.next.is_some();
        let runs: Vec<_> = page.runs.iter().map(|run| for_operators(json!(run), run)).collect();
        let line = json!({ "runs": runs, "more": more, "now_ms": page.now }).to_string();
        writeln!(out, "{}", terminal::safe_json(&line))?;
        return Ok(Exit::Success);
    }
    let mut table =
        Table::new(["RUN", "STATE", "AGENT", "ACCOUNT", "ORDERED", "TOOK", "CALLS", "TOKENS", "COST"]);
    page.runs.iter().for_each(|run| table.row(line(run, page.now)));
    write!(out, "{table}")?;
    if let Some((_, last)) = &page.next {
        writeln!(out, "there are more: --before {last}")?;
    }
    Ok(Exit::Success)
}

/// What is written of `run`, with the detail of its failure.
fn for_operators(mut json: Value, run: &Run) -> Value {
    json["error"] = json!(run.error.as_ref().map(Failure::for_operators));
    json
}

fn line(run: &Run, now: UnixMillis) -> [String; 9] {
    let used = |text: fn(&Run) -> Option<String>| text(run).unwrap_or_else(|| "-".to_owned());
    [
        run.run.to_string(),
        state(run),
        run.agent.to_string(),
        run.account.to_string(),
        at(run.created),
        span(run.created, run.ended.unwrap_or(now)),
        used(|run| Some(run.usage?.calls.to_string())),
        used(|run| run.usage.map(|usage| (usage.tokens.input + usage.tokens.output).to_string())),
        used(|run| Some(run.usage?.cost_nanodollars.to_string())),
    ]
}

/// Its state, and whether the process that had it is gone.
fn state(run: &Run) -> String {
    let left = run.lease.as_ref().is_some_and(|lease| lease.over);
    if left { format!("{} (left)", run.state) } else { run.state.to_string() }
}

async fn show(context: &Context, arguments: ShowArguments) -> Result<Exit, Error> {
    let record = context.store().await?.record(&arguments.run).await?;
    let mut out = io::stdout();
    if arguments.json {
        writeln!(out, "{}", terminal::safe_json(&for_operators(json!(record), &record.run).to_string()))?;
    } else {
        let workspaces = &context.settings.sandbox.workspace_dir;
        out.write_all(text(&record, workspaces).as_bytes())?;
    }
    Ok(Exit::Success)
}

fn text(record: &Record, workspaces: &Path) -> String {
    let run = &record.run;
    let mut lines = vec![
        ("run", run.run.to_string()),
        ("state", state(run)),
        ("agent", run.agent.to_string()),
        ("account", run.account.to_string()),
        ("attempt", format!("{}, epoch {}", run.attempt, run.epoch)),
        ("ordered", at(run.created)),
    ];
    lines.extend(run.started.map(|started| ("started", at(started))));
    lines.extend(
        run.ended.map(|ended| ("ended", format!("{}, after {}", at(ended), span(run.created, ended)))),
    );
    lines.extend(
        run.lease.as_ref().map(|lease| ("held by", format!("{} until {}", lease.owner, at(lease.until)))),
    );
    lines.extend(run.exit_code.map(|code| ("exit code", code.to_string())));
    lines.extend(
        run.oom_seen
            .filter(|seen| *seen)
            .map(|_| ("memory", "a process needed more than there was".to_owned())),
    );
    lines.extend(
        run.error.as_ref().map(|error| ("error", format!("{}: {}", error.code.code(), error.message))),
    );
    let detail = run.error.as_ref().and_then(|error| error.detail.as_ref());
    lines.extend(detail.map(|detail| ("detail", detail.for_operators().to_owned())));
    lines.extend(run.usage.map(|usage| {
        let tokens = usage.tokens;
        let (calls, refused, cost) = (usage.calls, usage.refused, usage.cost_nanodollars);
        (
            "used",
            format!(
                "{calls} calls ({refused} refused), {} tokens in, {} out, {cost}",
                tokens.input, tokens.output
            ),
        )
    }));
    let mut text = String::new();
    for (name, value) in lines {
        let value = terminal::safe(&value).replace(['\n', '\t'], " ");
        text += &format!("{name:<10} {value}\n");
    }
    text += &history(record, workspaces);
    if let Some(answer) = &record.answer {
        text += &format!("\n{}\n", Sanitizer::new(Output::Safe).clean(answer));
    }
    text
}

/// What was made for a run, and what happened to it.
fn history(record: &Record, workspaces: &Path) -> String {
    let mut made = Table::new(["MADE FOR IT", "NAME", "IS"]);
    for thing in &record.resources {
        let name = match thing.kind {
            Kind::Workspace => workspace::tree(workspaces, &thing.name).display().to_string(),
            _ => thing.name.clone(),
        };
        made.row([thing.kind.name().to_owned(), name, thing.stage.name().to_owned()]);
    }
    let pruned = match record.pruned_events {
        0 => String::new(),
        count => format!("{count} events before these are kept no longer (store.keep_events)\n"),
    };
    let mut happened = Table::new(["AT", "WHAT", "MORE"]);
    for event in &record.events {
        happened.row([at(event.at), event.kind.clone(), event.payload.clone()]);
    }
    format!("\n{made}\n{pruned}{happened}")
}

fn at(time: UnixMillis) -> String {
    let since = Duration::from_millis(u64::try_from(time.0).unwrap_or_default());
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since).to_string()
}

/// The time of a day, UTC.
pub(super) fn time_of_day(time: UnixMillis) -> String {
    at(time).get(11..19).unwrap_or_default().to_owned()
}

fn span(from: UnixMillis, to: UnixMillis) -> String {
    let span = from.until(to);
    let shown = if span.as_secs() < 10 { span } else { Duration::from_secs(span.as_secs()) };
    humantime::format_duration(shown).to_string()
}
