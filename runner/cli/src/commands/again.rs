//! Implements `sluice runs again`: starts the next attempt of an ended run.

use std::io::{self, Write};

use runner_engine::run::{NotAttempted, start_next_attempt};
use runner_store::Created;
use serde_json::json;

use super::{
    Context, Error,
    error::{Misused, NotEnded},
    exit::Exit,
    run_reference::RunChoice,
};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sluice runs again run-19c1-5f0e
  sluice runs again run-19c1-5f0e --attempt 1     the same command again changes nothing
  sluice runs again --last && sluice runs wait --last

Exit codes: 1 there is no such run, 2 it cannot be repeated, 75 it has not ended, or the queue is full")]
pub(super) struct Arguments {
    #[command(flatten)]
    run: RunChoice,
    /// Number that the attempt must have [default: the next one]
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) async fn again(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { run, attempt, json } = arguments;
    let store = context.serving_store().await?;
    let run_id = run.in_store(&store).await?;
    let (Created::New(run) | Created::Existing(run)) =
        start_next_attempt(&store, &run_id, attempt).await.map_err(not_attempted)?;
    let mut out = io::stdout();
    if json {
        let line = json!({ "run_id": run.run_id, "attempt": run.attempt, "state": run.state.name() });
        writeln!(out, "{line}")?;
    } else {
        writeln!(out, "{} is {}, attempt {}", run.run_id, run.state, run.attempt)?;
    }
    Ok(Exit::Success)
}

/// Returns the error of a command that starts no attempt. It names the store's reason, or the command that helps.
fn not_attempted(error: NotAttempted) -> Error {
    match error {
        NotAttempted::Store(error) => error.into(),
        NotAttempted::NotEnded { run_id, state } => NotEnded { run_id, state }.into(),
        other => Misused(other.to_string()).into(),
    }
}
