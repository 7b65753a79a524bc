//! Implements `sluice usage`: shows the usage of runs and accounts, and their limits.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use platform_runtime::terminal;
use runner_control_client::DataPlane;

use super::{
    Context, Error,
    exit::Exit,
    spending::{BudgetOwner, Spending},
};

/// Interval between two reads with `--follow`.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    owner: BudgetOwner,
    #[command(flatten)]
    trials: Trials,
    /// Refresh every second until the run is closed or Ctrl-C: in place on a terminal, NDJSON in a pipe
    #[arg(short, long)]
    follow: bool,
    /// Print JSON instead of tables; with --follow, one object per change
    #[arg(long)]
    json: bool,
}

/// Trial runs of `sluice doctor`, which overviews leave out.
#[derive(clap::Args)]
struct Trials {
    /// Also show account `doctor`, with the trial runs of `sluice doctor`
    #[arg(long, conflicts_with_all = ["run", "last", "account"])]
    all: bool,
}

/// Format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UsageFormat {
    Tables,
    /// Tables that replace the previous ones on the terminal.
    InPlace,
    Json,
}

pub(super) async fn usage(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let data_plane = DataPlane::at(&context.settings.proxy.control_socket());
    let format = match (arguments.json, arguments.follow) {
        (false, false) => UsageFormat::Tables,
        (false, true) if io::stdout().is_terminal() => UsageFormat::InPlace,
        _ => UsageFormat::Json,
    };
    let run_id = arguments.owner.run_id(context, &data_plane).await?;
    let mut shown = None;
    let mut tick = tokio::time::interval(REFRESH_INTERVAL);
    loop {
        tick.tick().await;
        let mut current = arguments.owner.read(run_id.as_ref(), &data_plane).await?;
        if !arguments.trials.all {
            current.leave_out(crate::doctor::ACCOUNT);
        }
        if shown.as_ref() != Some(&current) {
            show(&current, shown.as_ref(), format)?;
        }
        if !arguments.follow || current.is_final() {
            return Ok(Exit::Success);
        }
        shown = Some(current);
    }
}

fn show(current: &Spending, previous: Option<&Spending>, format: UsageFormat) -> Result<(), Error> {
    let mut out = io::stdout();
    match (format, previous) {
        (UsageFormat::Json, _) => writeln!(out, "{}", terminal::safe_json(&serde_json::to_string(current)?))?,
        (UsageFormat::InPlace, Some(previous)) => {
            let lines = previous.text().lines().count();
            write!(out, "\x1b[{lines}A\x1b[J{}", current.text())?;
        }
        (UsageFormat::InPlace, None) | (UsageFormat::Tables, _) => write!(out, "{}", current.text())?,
    }
    Ok(out.flush()?)
}
