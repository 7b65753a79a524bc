//! Implements the commands about the commits of runs: `explain` and `push`.

mod text;

use std::io::{self, Write};

use platform_core::id::RunId;
use runner_engine::relay::{RelayError, RelayRecord, Relays};
use runner_store::Store;

use self::text::explanation;
pub(super) use self::text::{commit_lines, outcome, summary};
use super::{Context, Error, exit::Exit, run_reference::RunChoice};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Show what became of a run's commits: their branch, and the rules that they break
    #[command(after_help = "\
Examples:
  sluice git explain run-19c1-5f0e
  sluice git explain --last --json | jq -r '.objections[] | .rule + \" \" + .path'

Exit codes: 1 there is no such run, or it has no repository")]
    Explain(Arguments),
    /// Judge and push the commits of a run again, from the bundle that was kept
    ///
    /// For commits that were refused or could not be pushed: after a change of `relay.protected_paths`, with another
    /// token, or once the remote works again.
    #[command(after_help = "\
Examples:
  sluice git push run-19c1-5f0e

Exit codes: 1 the commits did not reach their branch, 2 they are not kept, 75 they are pending")]
    Push(Arguments),
}

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    run: RunChoice,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) async fn git(context: &Context, command: Command) -> Result<Exit, Error> {
    match command {
        Command::Explain(arguments) => explain(context, arguments).await,
        Command::Push(arguments) => push(context, arguments).await,
    }
}

async fn explain(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let store = context.store().await?;
    let run_id = arguments.run.in_store(&store).await?;
    let record = read(&store, &run_id).await?;
    arguments.print(&run_id, &record)?;
    Ok(Exit::Success)
}

async fn push(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let store = context.serving_store().await?;
    let run_id = arguments.run.in_store(&store).await?;
    let record = Relays::of(&context.settings, &store, &context.github()).push_again(&run_id).await?;
    arguments.print(&run_id, &record)?;
    Ok(if record.stage.is_pending() { Exit::TryAgain } else { exit_after_run(&record) })
}

/// Returns the exit code of a command after its run has succeeded. `sluice up` goes on with commits that are pending.
pub(super) const fn exit_after_run(record: &RelayRecord) -> Exit {
    if record.stage.can_restart() { Exit::Failure } else { Exit::Success }
}

/// Reads what is known of a run's commits; `None` if it has no repository, or its texts were removed.
pub(super) async fn known(store: &Store, run_id: &RunId) -> Result<Option<RelayRecord>, Error> {
    let stored = store.relay(run_id).await?;
    Ok(stored.and_then(|stored| RelayRecord::read(&stored).ok()))
}

async fn read(store: &Store, run_id: &RunId) -> Result<RelayRecord, RelayError> {
    let stored = store.relay(run_id).await?;
    let stored = stored.ok_or_else(|| RelayError::NoRelay { run_id: run_id.clone() })?;
    RelayRecord::read(&stored)
}

impl Arguments {
    fn print(&self, run_id: &RunId, record: &RelayRecord) -> Result<(), Error> {
        let mut out = io::stdout();
        if self.json {
            let json = serde_json::json!({ "run_id": run_id, "relay": record });
            writeln!(out, "{json}")?;
        } else {
            write!(out, "{}", explanation(run_id, record))?;
        }
        Ok(())
    }
}
