//! Implements `sluice runs`: lists, shows, waits for and cancels runs.

use std::io::{self, Write};

use clap::builder::PossibleValuesParser;
use platform_core::{
    control::Usage,
    id::{AccountId, AgentId},
};
use platform_runtime::terminal;
use runner_engine::relay::RelayRecord;
use runner_model::lifecycle::{Failure, State};
use runner_store::{Filter, QueuePosition, ReceiptSums, Run, RunHistory, UnixMillis};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Context, Error, again, events,
    exit::Exit,
    figures, files, forget, gc, logs, record,
    record::{cost_text, state_text},
    run_reference::{self, RunChoice, RunReference},
    runtime::cancel_on_signals,
    show::OutputArguments,
    table::Table,
    times::{format_span, format_time},
    tools::ToolCallsOfRun,
    wait,
};

/// Most columns of a question in a list.
const MAX_QUESTION_COLUMNS: usize = 60;

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// List runs, newest first
    #[command(after_help = concat!("\
Examples:
  sluice runs ls                            list the last twenty runs
  sluice runs ls --state running            list running runs
  sluice runs ls --state queued             list queued runs and their position in the queue
  sluice runs ls --account acct-7 -n 100    list the last hundred runs of an account
  sluice runs ls --before run-19c1-5f0e     list the next page

", figures::legend!(), "\nTrial runs of `sluice doctor` are left out, unless --all or --account doctor is given."))]
    Ls(LsArguments),
    /// Show all details of a run
    #[command(after_help = concat!("\
Examples:
  sluice runs show run-19c1-5f0e
  sluice runs show 9f446d19                 the end of an id is enough
  sluice runs show --last --json | jq .usage

", figures::legend!()))]
    Show(ShowArguments),
    /// Show the events of a run, stored or live
    Events(events::Arguments),
    /// Show the output of an agent
    Logs(logs::Arguments),
    /// Show the changes of a run to the files it received
    Diff(files::diff::Arguments),
    /// List the files of a run, with the change of each
    Files(files::ls::Arguments),
    /// Copy the files of a run to a new directory
    Pull(files::pull::Arguments),
    /// Write the changes of a run into the directory its files came from
    Apply(files::apply::Arguments),
    /// Remove leftover resources of ended runs, and explain why others stay
    ///
    /// Removes only resources that provably belong to this installation and are dead. Their run has ended, and the
    /// store has a row for the resource itself. `sluice up` does the same at its start and at intervals.
    #[command(after_help = "\
Examples:
  sluice runs gc --dry-run                  list what would be removed, with reasons
  sluice runs gc
  sluice runs gc --kept                     also remove kept workspaces, and those of threads
  sluice runs gc --json | jq -r '.things[] | select(.outcome == \"unknown\").name'")]
    Gc(gc::Arguments),
    /// Wait for a run to end and show its answer
    #[command(after_help = "\
Examples:
  sluice runs wait run-19c1-5f0e
  sluice runs wait $(sluice run --detach \"A long task\") > answer.txt

The exit code is the one that `sluice run` would have returned.")]
    Wait(WaitArguments),
    /// Cancel runs: ask their agents to stop, and kill those that do not
    #[command(after_help = "\
Examples:
  sluice runs cancel run-19c1-5f0e
  sluice runs ls --state running --json | jq -r '.runs[].run_id' | xargs sluice runs cancel")]
    Cancel(CancelArguments),
    /// Start an ended run again: the same order, as its next attempt with its own budget
    Again(again::Arguments),
    /// Remove the question, the answer and the output of an ended run
    Forget(forget::Arguments),
}

#[derive(clap::Args)]
pub(super) struct WaitArguments {
    #[command(flatten)]
    run: RunChoice,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(clap::Args)]
pub(super) struct CancelArguments {
    /// Ids of the runs, or at least 4 characters of the beginning or end of each
    #[arg(required_unless_present = "last", value_name = "RUNS")]
    runs: Vec<RunReference>,
    #[command(flatten)]
    newest: NewestRun,
    /// Return after the request, without waiting for the runs to end
    #[arg(long)]
    no_wait: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// The newest run, in place of ids.
#[derive(clap::Args)]
struct NewestRun {
    /// Cancel the newest run; trial runs of `sluice doctor` do not count
    #[arg(long, conflicts_with = "runs")]
    last: bool,
}

#[derive(clap::Args)]
pub(super) struct LsArguments {
    /// Only runs in this state; may be repeated
    #[arg(long, value_name = "STATE", value_parser = PossibleValuesParser::new(State::NAMES))]
    state: Vec<String>,
    /// Only runs that this account pays for
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<AccountId>,
    /// Also list the trial runs of `sluice doctor`, which account `doctor` pays for
    #[arg(long)]
    all: bool,
    /// Only runs of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentId>,
    /// Only runs submitted before this run
    #[arg(long, value_name = "RUN")]
    before: Option<RunReference>,
    /// Maximum number of runs
    #[arg(short, long, value_name = "N", default_value_t = 20)]
    number: u32,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(super) struct ShowArguments {
    #[command(flatten)]
    run: RunChoice,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Run in a list, for programs.
#[derive(Serialize)]
struct ListedRun<'r> {
    #[serde(flatten)]
    run: &'r Run,
    /// Number of queued runs of the same account and priority before this run, if it waits.
    ahead: Option<u64>,
    /// Sums of its receipts, if it has some yet.
    receipts: Option<&'r ReceiptSums>,
    /// Beginning of its question, unless that was removed.
    question: Option<String>,
}

/// Record of a run, for programs.
#[derive(Serialize)]
struct RunJson<'r> {
    #[serde(flatten)]
    history: &'r RunHistory,
    /// Position in the queue, if the run waits to be claimed.
    #[serde(rename = "standing")]
    position: Option<QueuePosition>,
    /// Sums of its receipts, if it has some yet.
    receipts: Option<&'r ReceiptSums>,
    /// Way of its commits, if it has a repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    relay: Option<&'r RelayRecord>,
    /// Its calls of host tools.
    #[serde(skip_serializing_if = "ToolCallsOfRun::is_empty")]
    tool_calls: &'r ToolCallsOfRun,
}

pub(super) async fn runs(context: &Context, command: Command) -> Result<Exit, Error> {
    match command {
        Command::Ls(arguments) => ls(context, arguments).await,
        Command::Show(arguments) => show(context, arguments).await,
        Command::Events(arguments) => events::events(context, arguments).await,
        Command::Logs(arguments) => logs::logs(context, arguments).await,
        Command::Diff(arguments) => files::diff::diff(context, arguments).await,
        Command::Files(arguments) => files::ls::files(context, arguments).await,
        Command::Pull(arguments) => files::pull::pull(context, arguments).await,
        Command::Apply(arguments) => files::apply::apply(context, arguments).await,
        Command::Gc(arguments) => gc::gc(context, arguments).await,
        Command::Wait(arguments) => {
            let store = context.store().await?;
            let run_id = arguments.run.in_store(&store).await?;
            let sandbox = &context.settings.sandbox;
            wait::wait(&store, sandbox, &run_id, arguments.output, &cancel_on_signals()?).await
        }
        Command::Cancel(arguments) => cancel(context, arguments).await,
        Command::Again(arguments) => again::again(context, arguments).await,
        Command::Forget(arguments) => forget::forget(context, arguments).await,
    }
}

async fn cancel(context: &Context, arguments: CancelArguments) -> Result<Exit, Error> {
    let store = context.store().await?;
    let stop = cancel_on_signals()?;
    // All are found before the first is cancelled, so that a mistyped one cancels nothing.
    let mut run_ids = Vec::new();
    for reference in &arguments.runs {
        run_ids.push(reference.in_store(&store).await?);
    }
    if arguments.newest.last {
        run_ids.push(run_reference::newest(&store).await?);
    }
    let mut runs = Vec::new();
    for run_id in &run_ids {
        runs.push(store.request_cancel(run_id).await?);
    }
    let mut out = io::stdout();
    for mut run in runs {
        if !arguments.no_wait {
            match wait::until_ended(&store, &run.run_id, &stop).await? {
                Some(record) => run = record.run,
                None => return Ok(Exit::Cancelled),
            }
        }
        if arguments.json {
            writeln!(out, "{}", json!({ "run_id": run.run_id, "state": run.state.name() }))?;
        } else {
            writeln!(out, "{} {}", run.run_id, run.state)?;
        }
    }
    Ok(Exit::Success)
}

async fn ls(context: &Context, arguments: LsArguments) -> Result<Exit, Error> {
    let LsArguments { state, account, all, agent, before, number, json } = arguments;
    let store = context.store().await?;
    let before = match before {
        Some(run) => {
            let run = store.run(&run.in_store(&store).await?).await?;
            Some((run.created, run.run_id))
        }
        None => None,
    };
    let states =
        State::NAMES.into_iter().filter(|name| state.iter().any(|requested| requested == name)).collect();
    let is_overview = account.is_none() && !all;
    let left_out = is_overview.then(|| AccountId::parse(crate::doctor::ACCOUNT)).transpose()?;
    let page =
        store.list(&Filter { states, account, left_out, agent, before, ..Filter::default() }, number).await?;
    let mut out = io::stdout();
    let sums = store.receipt_sums(&page.runs).await?;
    let mut runs = Vec::new();
    for run in &page.runs {
        let ahead = store.ahead(run).await?;
        let question =
            record::beginning_of_question(&store.record(&run.run_id).await?.wanted, MAX_QUESTION_COLUMNS);
        runs.push(ListedRun { run, ahead, receipts: sums.get(&run.run_id), question });
    }
    if json {
        let more = page.next.is_some();
        let runs: Vec<_> = runs.iter().map(|listed| for_operators(json!(listed), listed.run)).collect();
        let line = json!({ "runs": runs, "more": more, "now_ms": page.now }).to_string();
        writeln!(out, "{}", terminal::safe_json(&line))?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new([
        "RUN", "STATE", "FAILURE", "PRIORITY", "AGENT", "ACCOUNT", "ORDERED", "TOOK", "CALLS", "TOKENS",
        "COST", "QUESTION",
    ]);
    for run in &runs {
        table.row(row(run, page.now));
    }
    write!(out, "{table}")?;
    if let Some((_, last)) = &page.next {
        writeln!(out, "there are more: --before {last}")?;
    }
    Ok(Exit::Success)
}

/// Adds the operator's detail of `run`'s failure to its JSON.
fn for_operators(mut json: Value, run: &Run) -> Value {
    json["error"] = json!(run.error.as_ref().map(Failure::for_operators));
    json
}

/// Returns the row of a run.
fn row(ListedRun { run, ahead, receipts, question }: &ListedRun<'_>, now: UnixMillis) -> [String; 12] {
    let or_dash = |text: fn(&Run) -> Option<String>| text(run).unwrap_or_else(|| "-".to_owned());
    [
        run.run_id.to_string(),
        ahead.map_or_else(|| state_text(run), |ahead| format!("{}, {ahead} ahead", run.state)),
        or_dash(|run| Some(run.error.as_ref()?.code.code().to_owned())),
        run.priority.to_string(),
        run.agent.to_string(),
        run.account.to_string(),
        format_time(run.created),
        format_span(run.created, run.ended.unwrap_or(now)),
        or_dash(|run| Some(run.usage?.calls.to_string())),
        or_dash(|run| {
            let Usage { tokens, inexact, .. } = run.usage?;
            Some(figures::tokens(tokens.input.saturating_add(tokens.output), inexact))
        }),
        cost_text(run, *receipts).unwrap_or_else(|| "-".to_owned()),
        question.clone().unwrap_or_else(|| "-".to_owned()),
    ]
}

async fn show(context: &Context, arguments: ShowArguments) -> Result<Exit, Error> {
    let store = context.store().await?;
    let history = store.history(&arguments.run.in_store(&store).await?).await?;
    let record = &history.record;
    let position = store.queue_position(&record.run).await?;
    let sums = store.receipt_sums([&record.run]).await?;
    let relay = store.relay(&record.run.run_id).await?;
    // The commits of a run are not shown after its texts were removed.
    let relay = relay.and_then(|relay| RelayRecord::read(&relay).ok());
    let tool_calls = ToolCallsOfRun::read(&store, &record.run.run_id).await?;
    let mut out = io::stdout();
    if arguments.json {
        let receipts = sums.get(&record.run.run_id);
        let run =
            RunJson { history: &history, position, receipts, relay: relay.as_ref(), tool_calls: &tool_calls };
        let shown = for_operators(json!(run), &record.run);
        writeln!(out, "{}", terminal::safe_json(&shown.to_string()))?;
    } else {
        let workspaces = &context.settings.sandbox.workspace_dir;
        let receipts = sums.get(&record.run.run_id);
        let shown = record::ShownRun {
            history: &history,
            position,
            receipts,
            relay: relay.as_ref(),
            tool_calls: &tool_calls,
        };
        out.write_all(shown.text(workspaces).as_bytes())?;
    }
    Ok(Exit::Success)
}
