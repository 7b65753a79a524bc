//! Implements `sluice runs forget`: removes the texts of an ended run.

use std::io::{self, Write};

use runner_store::AccountScope;
use serde_json::json;

use super::{Context, Error, exit::Exit, run_reference::RunReference};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sluice runs forget run-19c1-5f0e
  sluice runs ls --account acct-7 --state failed --json | jq -r '.runs[].run_id' | xargs -n 1 sluice runs forget

The run stays, with its times, its usage and the code of its failure, and so does what receipts and
the journal have of it. It leaves its thread, and cannot be started again. `store.retention` does the
same by age.

Exit codes: 1 there is no such run, 75 it has not ended")]
pub(super) struct Arguments {
    /// Id of the run, or at least 4 characters of its beginning or end
    #[arg(value_name = "RUN")]
    run: RunReference,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) async fn forget(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { run, json } = arguments;
    let store = context.store().await?;
    let run_id = run.in_store(&store).await?;
    store.forget_run(&run_id, &AccountScope::All).await?;
    let mut out = io::stdout();
    if json {
        writeln!(out, "{}", json!({ "run_id": run_id, "forgotten": true }))?;
    } else {
        writeln!(out, "{run_id}: question, answer and output are removed")?;
    }
    Ok(Exit::Success)
}
