//! Implements `sluice audit`: evaluates the journal of model calls. Each command has a file.

#[cfg(test)]
mod advice_tests;
mod call_choice;
mod call_table;
mod export;
mod show;
mod stats;
mod tail;
mod top;
mod trace;
mod verify;

use std::io;

use platform_core::{
    id::AccountId,
    invalid::InvalidValue,
    json::{self, Bounds},
    record::JournalLine,
};
use runner_audit::{Entry, Filter, When};
use runner_control_client::{DataPlane, Follow, Lines};
use serde::de::DeserializeOwned;

use super::{Context, Error, error::Misused, exit::Exit, palette::Palette, run_reference::RunReference};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Show recorded model calls: a table on a terminal, NDJSON in a pipe
    #[command(after_help = "\
Examples:
  sluice audit tail -n 20                            show the last twenty calls
  sluice audit tail --run run-19c1-5f0e -f           follow the calls of one run
  sluice audit tail --refusal quota_exhausted | jq .account
  sluice audit tail --outcome timed_out --json")]
    Tail(tail::Arguments),
    /// Show live usage by run, account or model in full screen, like top(1)
    ///
    /// Arrows, `j`, `k`, PgUp, PgDn, Home and End move the cursor, Enter shows the details of its row. Keys for rows:
    /// `r` runs, `a` accounts, `m` models; for their sequence: `t` tokens, `c` cost, `e` errors, `l` latency, `n`
    /// calls. `/` filters by name, `?` explains all keys, `q` quits. Without a terminal, prints one table.
    #[command(after_help = concat!("\
Examples:
  sluice audit top                                   show runs, most tokens first
  sluice audit top --group account --by cost         show accounts, highest cost first
  sluice audit top --json | jq '.rows[0]'            print the first row once, as JSON

Calls do not include refused calls. Errors are calls that failed upstream, broke off or ran into a
time limit.
", crate::commands::figures::legend!()))]
    Top(top::Arguments),
    /// Show all details of one call; for a refusal, the rule that decided it and the fix
    #[command(after_help = "\
Examples:
  sluice audit show 019ac0de-5f0e-7000-8000-000000000001
  sluice audit show 42442a7af31b                     use the end of the id, as `tail` shows it
  sluice audit show --run run-19c1-5f0e              show the call that failed last in a run
  sluice audit show --last                           the same, of the newest run

Exit codes: 0 the call was found, 1 the journal has no such call, 69 there is no proxy")]
    Show(show::Arguments),
    /// Follow the next call of a run live, step by step
    ///
    /// Shows counts and times only, no text of requests or answers.
    #[command(after_help = "\
Examples:
  sluice audit trace run-19c1-5f0e                   show the time of each step
  sluice audit trace run-19c1-5f0e --json

Exit codes: 0 the call has ended, 1 the run was closed before it made a call, or is not open;
69 there is no proxy")]
    Trace(trace::Arguments),
    /// Verify that no record was changed, removed, inserted or rewritten
    ///
    /// Recomputes the sequence and the hash chain, and compares them with the records that consumers acknowledged. A
    /// journal that was rewritten as a whole, or that lost its end, looks valid by itself. To detect this, keep the
    /// printed cursor in another place and pass it to the next check.
    #[command(after_help = "\
Examples:
  sluice audit verify                                           verify the running proxy's journal
  sluice audit verify --json | jq .cursor > /elsewhere/cursor   keep a cursor to its end
  sluice audit verify --cursor /elsewhere/cursor                compare with the kept cursor
  sluice audit verify --dir /backup/journal                     verify a stopped proxy, or a copy

Exit codes: 0 the journal is valid, 1 it is not, 2 a file cannot be used, 69 there is no proxy")]
    Verify(verify::Arguments),
    /// Export records as CSV or NDJSON, for spreadsheets and programs
    ///
    /// Cells that a spreadsheet would read as a formula begin with an apostrophe. A file is written completely or
    /// not at all.
    #[command(after_help = "\
Examples:
  sluice audit export --format csv --from 2026-11-01 --to 2026-12-01 -o november.csv
  sluice audit export --format ndjson --account acct-7 | gzip > acct-7.ndjson.gz")]
    Export(export::Arguments),
    /// Summarize calls by run, account or model: tokens, cost, errors, latency
    #[command(after_help = concat!("\
Examples:
  sluice audit stats --by account                    show cost by account
  sluice audit stats --by model --from 24h           show the latency of models in the last 24 hours
  sluice audit stats --by run --json | jq '.rows[] | select(.errors > 0)'

Calls do not include refused calls. Errors are calls that failed upstream, broke off or ran into a
time limit.
Percentiles are at most one per cent above the exact ones.
", crate::commands::figures::legend!()))]
    Stats(stats::Arguments),
}

/// Selection of records by run and account.
#[derive(clap::Args, Default)]
struct Selection {
    /// Only calls of this run: its id, or at least 4 characters of its beginning or end
    #[arg(long, value_name = "RUN")]
    run: Option<RunReference>,
    /// Only calls of the run that made the newest call; trial runs of `sluice doctor` do not count
    #[arg(long, conflicts_with = "run")]
    last: bool,
    /// Only calls of this account
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<AccountId>,
}

/// Selection of records by time.
#[derive(clap::Args, Default)]
struct TimeRange {
    /// Only calls that began at this time or later: a time (RFC 3339), a day (UTC), or a time ago (`90m`)
    #[arg(long, value_name = "TIME")]
    from: Option<When>,
    /// Only calls that began before this time
    #[arg(long, value_name = "TIME")]
    to: Option<When>,
}

impl Selection {
    /// Returns the filter that this describes. Finds the run in the journal.
    async fn filter(self, data_plane: &DataPlane) -> Result<Filter, Error> {
        let run = match self.run {
            Some(reference) => Some(reference.in_journal(data_plane).await?),
            None if self.last => call_choice::newest_run(data_plane).await?,
            None => None,
        };
        Ok(Filter { run, account: self.account, ..Filter::default() })
    }
}

/// Returns the filter that the options describe, unless no call can match it.
async fn filter(data_plane: &DataPlane, selection: Selection, range: TimeRange) -> Result<Filter, Error> {
    let TimeRange { from, to } = range;
    if from.as_ref().zip(to.as_ref()).is_some_and(|(from, to)| from >= to) {
        return Err(Error::from(Misused(
            "--from is not before --to, so no call can match: the hour before the last is `--from 2h --to 1h`"
                .to_owned(),
        )));
    }
    Ok(Filter { from, to, ..selection.filter(data_plane).await? })
}

pub(super) async fn audit(context: &Context, command: Command) -> Result<Exit, Error> {
    let data_plane = DataPlane::at(&context.settings.proxy.control_socket());
    match command {
        Command::Tail(arguments) => tail::tail(&data_plane, arguments).await,
        Command::Top(arguments) => {
            let palette = Palette::of(&io::stdout(), &context.sources.environment);
            top::top(&data_plane, palette, arguments).await
        }
        Command::Show(arguments) => show::show(&data_plane, &context.settings, arguments).await,
        Command::Trace(arguments) => trace::trace(context, &data_plane, arguments).await,
        Command::Verify(arguments) => verify::verify(&data_plane, arguments).await,
        Command::Export(arguments) => export::export(&data_plane, arguments).await,
        Command::Stats(arguments) => stats::stats(&data_plane, arguments).await,
    }
}

/// Parses a word as the journal writes it, such as an outcome or a refusal.
fn parse_journal_word<T: DeserializeOwned>(text: &str) -> Result<T, InvalidValue> {
    serde_json::from_value(serde_json::Value::from(text)).map_err(InvalidValue::of)
}

/// Reader of the records that match a filter, up to the present end of the journal.
struct SelectedRecords {
    lines: Lines,
    filter: Filter,
}

impl SelectedRecords {
    async fn of(data_plane: &DataPlane, filter: Filter) -> Result<Self, Error> {
        Ok(Self { lines: data_plane.journal(None, Follow::UntilEnd).await?, filter })
    }

    /// Returns the next matching line, unparsed. Returns `None` after the last.
    async fn next(&mut self) -> Result<Option<&[u8]>, Error> {
        // The line is borrowed again after the loop: a borrow returned inside it would last for all iterations.
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
    Entry::parse(line).map_err(Error::invalid_record)
}

fn record(line: &[u8]) -> Result<JournalLine, Error> {
    json::from_slice(line, Bounds::STORED).map_err(Error::invalid_record)
}

/// Formats microseconds as milliseconds.
fn milliseconds(microseconds: u64) -> String {
    format!("{}.{} ms", microseconds / 1000, microseconds % 1000 / 100)
}

/// Formats a duration in few characters, with a unit that fits its size. Formats an unknown one as `-`.
fn short_duration(microseconds: Option<u64>) -> String {
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
