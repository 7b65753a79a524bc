//! `sluice audit`: who called what, as the journal has it. A command per file.

mod export;
mod show;
mod stats;
mod tail;
mod top;
mod trace;
mod verify;

use std::io;

use platform_core::{
    id::{AccountId, RunId},
    record::JournalLine,
};
use serde::de::DeserializeOwned;

use super::{Context, Error, exit::Exit};
use crate::{
    audit::{Entry, Filter, When},
    data_plane::{self, DataPlane, Follow, Lines},
};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Show recorded model calls: a table on a terminal, NDJSON in a pipe
    #[command(after_help = "\
Examples:
  sluice audit tail -n 20                            the last twenty calls
  sluice audit tail --run run-19c1-5f0e -f           one run's calls, as they end
  sluice audit tail --refusal limit_used_up | jq .account
  sluice audit tail --outcome timed_out --json")]
    Tail(tail::Arguments),
    /// Show who uses how much, as it changes: full screen, like top(1)
    ///
    /// Keys: `r` runs, `a` accounts, `m` models; sort by `t` tokens, `c` cost, `e` errors, `l` latency, `n` calls; `/` to
    /// filter by name, Enter to keep the filter, Esc to drop it; `q` to leave. Without a terminal it prints one table.
    #[command(after_help = "\
Examples:
  sluice audit top                                   runs by tokens
  sluice audit top --group account --by cost         who spends the money?
  sluice audit top --json | jq '.rows[0]'            once, for a program

Calls are those that were not refused. Errors are those of them that failed upstream, broke off or ran into a time limit.")]
    Top(top::Arguments),
    /// Show everything about one call; of a refusal, what decided it and what would change that
    #[command(after_help = "\
Examples:
  sluice audit show 019ac0de-5f0e-7000-8000-000000000001
  sluice audit show 42442a7af31b                     its end is enough, as the table of `tail` has it

Exit codes: 0 it was found, 1 the journal has no such call, 69 there is no proxy")]
    Show(show::Arguments),
    /// Follow a run's next call step by step, as it happens
    ///
    /// Counts and times only: nothing of what is asked or answered is shown.
    #[command(after_help = "\
Examples:
  sluice audit trace run-19c1-5f0e                   where does its time go?
  sluice audit trace run-19c1-5f0e --json

Exit codes: 0 the call has ended, 1 the run was closed before it made one, or is not open; 69 there is no proxy")]
    Trace(trace::Arguments),
    /// Check that no record was changed, removed, put in or written anew
    ///
    /// Recomputes the sequence and the hash chain, and compares with what consumers acknowledged. A journal that was written
    /// anew as a whole, or whose end is missing, is a good journal by itself: keep the cursor that is printed somewhere else,
    /// and give it to the next check.
    #[command(after_help = "\
Examples:
  sluice audit verify                                             of the proxy that runs
  sluice audit verify --json | jq .cursor > /elsewhere/cursor     keep where it ends
  sluice audit verify --cursor /elsewhere/cursor                  nothing up to there was changed since
  sluice audit verify --dir /backup/journal                       of a stopped proxy, or a copy

Exit codes: 0 it is whole, 1 it is not, 2 a file cannot be used, 69 there is no proxy")]
    Verify(verify::Arguments),
    /// Write records as CSV or NDJSON, for spreadsheets and programs
    ///
    /// Cells that a spreadsheet would take for a formula get an apostrophe in front. A file is there whole or not at all.
    #[command(after_help = "\
Examples:
  sluice audit export --format csv --from 2026-11-01 --to 2026-12-01 -o november.csv
  sluice audit export --format ndjson --account acct-7 | gzip > acct-7.ndjson.gz")]
    Export(export::Arguments),
    /// Sum calls up by run, account or model: tokens, cost, errors, how long they took
    #[command(after_help = "\
Examples:
  sluice audit stats --by account                    who spends the money?
  sluice audit stats --by model --from 24h           which model is slow today?
  sluice audit stats --by run --json | jq '.rows[] | select(.errors > 0)'

Calls are those that were not refused. Errors are those of them that failed upstream, broke off or ran into a time limit.
Percentiles are at most one per cent above the exact ones.")]
    Stats(stats::Arguments),
}

/// Whose records.
#[derive(clap::Args, Default)]
struct Whose {
    /// Only calls of this run
    #[arg(long, value_name = "RUN")]
    run: Option<RunId>,
    /// Only calls of this account
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<AccountId>,
}

/// Records of which time.
#[derive(clap::Args, Default)]
struct Span {
    /// Only calls that began then or later: a time (RFC 3339), a day (UTC), or so long ago (`90m`)
    #[arg(long, value_name = "TIME")]
    from: Option<When>,
    /// Only calls that began before
    #[arg(long, value_name = "TIME")]
    to: Option<When>,
}

fn filter(whose: Whose, span: Span) -> Filter {
    Filter { run: whose.run, account: whose.account, from: span.from, to: span.to, ..Filter::default() }
}

pub(super) async fn audit(context: &Context, command: Command) -> Result<Exit, Error> {
    let data_plane = DataPlane::at(&context.settings.proxy.control_socket());
    let ended = match command {
        Command::Tail(arguments) => tail::tail(&data_plane, arguments).await,
        Command::Top(arguments) => top::top(&data_plane, arguments).await,
        Command::Show(arguments) => show::show(&data_plane, arguments).await,
        Command::Trace(arguments) => trace::trace(&data_plane, arguments).await,
        Command::Verify(arguments) => verify::verify(&data_plane, arguments).await,
        Command::Export(arguments) => export::export(&data_plane, arguments).await,
        Command::Stats(arguments) => stats::stats(&data_plane, arguments).await,
    };
    match ended {
        // Whoever reads has enough.
        Err(error) if is_closed_pipe(error.as_ref()) => Ok(Exit::Success),
        ended => ended,
    }
}

fn is_closed_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Reads a word as the journal writes it: an outcome, a refusal.
fn journal_word<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::from(text)).map_err(|error| error.to_string())
}

/// The records that a filter takes, of the journal as far as it goes now.
struct Picked {
    lines: Lines,
    filter: Filter,
}

impl Picked {
    async fn of(data_plane: &DataPlane, filter: Filter) -> Result<Self, Error> {
        Ok(Self { lines: data_plane.journal(None, Follow::UntilEnd).await?, filter })
    }

    /// The next one, raw; `None` behind the last.
    async fn next(&mut self) -> Result<Option<&[u8]>, Error> {
        // Twice, because a borrow that is returned in a loop holds for all of it.
        loop {
            match self.lines.next().await? {
                None => return Ok(None),
                Some(line) if self.filter.takes(&entry(line)?) => break,
                Some(_) => {}
            }
        }
        Ok(Some(self.lines.last()))
    }
}

fn entry(line: &[u8]) -> Result<Entry<'_>, Error> {
    Entry::parse(line).map_err(no_record)
}

fn record(line: &[u8]) -> Result<JournalLine, Error> {
    serde_json::from_slice(line).map_err(no_record)
}

fn no_record(error: serde_json::Error) -> Error {
    Box::new(data_plane::Error::Unexpected(format!("a line that is no record ({error})")))
}

/// A time on a clock of microseconds, for people.
fn milliseconds(microseconds: u64) -> String {
    format!("{}.{} ms", microseconds / 1000, microseconds % 1000 / 100)
}

/// A time that may not be known, in as few letters as people need.
fn brief(microseconds: Option<u64>) -> String {
    match microseconds {
        None => "-".to_owned(),
        Some(micros) if micros < 10_000 => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        Some(micros) if micros < 1_000_000 => format!("{} ms", micros / 1000),
        Some(micros) if micros < 600_000_000 => {
            format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000)
        }
        Some(micros) => format!("{} min", micros / 60_000_000),
    }
}
