//! `sluice audit`

use std::io::{self, IsTerminal, Write};

use platform_core::{
    id::RunId,
    record::{ExchangeRecord, JournalLine, TokensSource},
};
use platform_runtime::terminal;

use super::{Context, Error, exit::Exit};
use crate::data_plane::{DataPlane, Follow};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Show recorded model calls: a table on a terminal, NDJSON in a pipe
    #[command(after_help = "Example:\n  sluice audit tail --run run-19c1-5f0e -f | jq .tokens")]
    Tail {
        /// Only calls of this run
        #[arg(long, value_name = "RUN")]
        run: Option<RunId>,
        /// Go on with calls to come
        #[arg(short, long)]
        follow: bool,
        /// NDJSON also on a terminal
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn audit(context: &Context, command: Command) -> Result<Exit, Error> {
    let Command::Tail { run, follow, json } = command;
    let data_plane = DataPlane::at(&context.settings.proxy.control_socket());
    let follow = if follow { Follow::On } else { Follow::UntilEnd };
    let mut lines = data_plane.journal(0, follow).await?;
    let mut out = io::stdout();
    let as_table = out.is_terminal() && !json;
    if as_table {
        writeln!(out, "{}", heading())?;
    }
    while let Some(line) = lines.next().await? {
        let parsed: JournalLine = serde_json::from_slice(line)?;
        if run.as_ref().is_some_and(|run| *run != parsed.record.run_id) {
            continue;
        }
        if as_table {
            writeln!(out, "{}", terminal::safe(&row(&parsed.record)))?;
        } else {
            out.write_all(line)?;
            out.write_all(b"\n")?;
        }
    }
    Ok(Exit::Success)
}

/// Fixed widths, because rows appear one by one.
fn heading() -> String {
    format!(
        "{:19}  {:26} {:16} {:20} {:>6} {:>6} {:>10} {:>8} {:>8}  OUTCOME",
        "TIME", "RUN", "ACCOUNT", "MODEL", "IN", "OUT", "COST", "FIRST", "WHOLE"
    )
}

fn row(record: &ExchangeRecord) -> String {
    let model =
        record.model_answered.as_ref().or(record.model_asked.as_ref()).map_or("-", |model| model.as_str());
    let cost = record.cost_nanodollars.map_or_else(|| "-".to_owned(), |cost| cost.to_string());
    let first = record.ttfb_us.map_or_else(|| "-".to_owned(), milliseconds);
    let why = record.refusal.map(|refusal| refusal.code());
    let why = why.or(record.finish_reason.as_ref().map(|reason| reason.as_str()));
    let outcome = why.map_or_else(|| record.outcome.to_string(), |why| format!("{} ({why})", record.outcome));
    // What nobody has counted is marked.
    let tokens = |count: u64| match record.tokens_source {
        TokensSource::Exact => count.to_string(),
        TokensSource::Estimated => format!("~{count}"),
        TokensSource::None => "-".to_owned(),
    };
    format!(
        "{:19}  {:26} {:16} {:20} {:>6} {:>6} {:>10} {:>8} {:>8}  {} {outcome}",
        record.ts.get(..19).unwrap_or(&record.ts),
        record.run_id,
        record.account,
        model,
        tokens(record.tokens.input),
        tokens(record.tokens.output),
        cost,
        first,
        milliseconds(record.duration_us),
        record.status,
    )
}

fn milliseconds(microseconds: u64) -> String {
    format!("{}.{} ms", microseconds / 1000, microseconds % 1000 / 100)
}
