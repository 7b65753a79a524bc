//! Implements `sluice audit tail`.

use std::{
    collections::VecDeque,
    io::{self, BufWriter, IsTerminal, Write},
};

use platform_core::{
    record::{ExchangeRecord, Kind, Outcome, TokensSource},
    refusal::Refusal,
};
use platform_runtime::terminal;
use runner_audit::Filter;
use runner_control_client::{self as data_plane, DataPlane, Follow};

use super::{Selection, entry, milliseconds, parse_journal_word, record};
use crate::commands::{Error, exit::Exit};

/// Most calls in a table if none are selected.
const MAX_OVERVIEW: usize = 20;

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    selection: Selection,
    /// Only calls with this outcome, as in the journal: `complete`, `timed_out`, `refused`
    #[arg(long, value_name = "OUTCOME", value_parser = parse_journal_word::<Outcome>)]
    outcome: Option<Outcome>,
    /// Only calls refused with this code: `quota_exhausted`
    #[arg(long, value_name = "CODE", value_parser = parse_journal_word::<Refusal>)]
    refusal: Option<Refusal>,
    /// Only calls with this source of token counts: `exact`, `partial`, `estimated`, `none`
    #[arg(long, value_name = "SOURCE", value_parser = parse_journal_word::<TokensSource>)]
    tokens: Option<TokensSource>,
    /// Only calls of this kind: `model`, `tool`
    #[arg(long, value_name = "KIND", value_parser = parse_journal_word::<Kind>)]
    kind: Option<Kind>,
    /// Show only this many of the latest calls [default: all; 20 in a table of unselected calls]
    #[arg(short = 'n', long, value_name = "COUNT")]
    lines: Option<usize>,
    /// Follow new calls
    #[arg(short, long)]
    follow: bool,
    /// Print NDJSON on a terminal, too
    #[arg(long)]
    json: bool,
}

/// Source, filter and printer of the shown lines.
struct Tail<'d> {
    data_plane: &'d DataPlane,
    filter: Filter,
    printer: Printer,
}

/// Printer of lines, as a table or raw.
struct Printer {
    out: BufWriter<io::Stdout>,
    as_table: bool,
}

pub(super) async fn tail(data_plane: &DataPlane, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { selection, outcome, refusal, tokens, kind, lines: count, follow, json } = arguments;
    let filter = Filter { outcome, refusal, tokens, kind, ..selection.filter(data_plane).await? };
    let stdout = io::stdout();
    let as_table = stdout.is_terminal() && !json;
    // A program reads everything: it would not notice that the beginning is missing.
    let is_overview = as_table && filter == Filter::default();
    let count = count.or_else(|| is_overview.then_some(MAX_OVERVIEW));
    let mut tail = Tail { data_plane, filter, printer: Printer { out: BufWriter::new(stdout), as_table } };
    tail.printer.heading()?;
    let after = match count {
        Some(count) => Some(tail.print_last(count).await?),
        None => None,
    };
    if count.is_none() || follow {
        tail.print_after(after, if follow { Follow::On } else { Follow::UntilEnd }).await?;
    }
    tail.printer.out.flush()?;
    Ok(Exit::Success)
}

impl Tail<'_> {
    /// Prints the last `count` matching lines, and returns the last sequence number of the journal.
    async fn print_last(&mut self, count: usize) -> Result<u64, Error> {
        let mut lines = self.data_plane.journal(None, Follow::UntilEnd).await?;
        let mut latest = VecDeque::new();
        let mut end = 0;
        while let Some(line) = lines.next().await? {
            let entry = entry(line)?;
            end = entry.seq;
            if self.filter.takes(&entry) {
                latest.push_back(line.to_vec());
                if latest.len() > count {
                    latest.pop_front();
                }
            }
        }
        latest.iter().try_for_each(|line| self.printer.line(line))?;
        self.printer.out.flush()?;
        Ok(end)
    }

    /// Prints the matching lines after the sequence number `after`, as they arrive.
    async fn print_after(&mut self, after: Option<u64>, follow: Follow) -> Result<(), Error> {
        let mut lines = self.data_plane.journal(after, follow).await?;
        while let Some(line) = lines.next().await? {
            if self.filter.takes(&entry(line)?) {
                self.printer.line(line)?;
            }
            if follow == Follow::On && !lines.has_next() {
                self.printer.out.flush()?;
            }
        }
        match follow {
            Follow::On => Err(data_plane::Error::Gone.into()),
            Follow::UntilEnd => Ok(()),
        }
    }
}

impl Printer {
    /// Prints the heading. Widths are fixed, because rows appear one by one.
    fn heading(&mut self) -> io::Result<()> {
        if self.as_table {
            writeln!(
                self.out,
                "{:19}  {:12} {:26} {:16} {:20} {:>6} {:>6} {:>10} {:>8} {:>8}  OUTCOME",
                "TIME", "CALL", "RUN", "ACCOUNT", "MODEL", "IN", "OUT", "COST", "FIRST", "WHOLE"
            )?;
        }
        self.out.flush()
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Error> {
        if self.as_table {
            writeln!(self.out, "{}", terminal::safe(&row(&record(line)?.record)))?;
        } else {
            self.out.write_all(line)?;
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }
}

fn row(record: &ExchangeRecord) -> String {
    let model =
        record.model_asked.as_ref().or(record.model_answered.as_ref()).map_or("-", |model| model.as_str());
    let cost = record.cost_nanodollars.map_or_else(|| "-".to_owned(), |cost| cost.to_string());
    let first = record.ttfb_us.map_or_else(|| "-".to_owned(), milliseconds);
    // `~` marks counts that are not exact.
    let tokens = |count: u64| match record.tokens_source {
        TokensSource::Exact => count.to_string(),
        TokensSource::Partial | TokensSource::Estimated => format!("~{count}"),
        TokensSource::None => "-".to_owned(),
    };
    let call = record.litellm_call_id.to_string();
    format!(
        "{:19}  {:12} {:26} {:16} {:20} {:>6} {:>6} {:>10} {:>8} {:>8}  {} {}",
        record.ts.get(..19).unwrap_or(&record.ts),
        // The last part of the id is enough for `sluice audit show` to find the call.
        call.rsplit('-').next().unwrap_or(&call),
        record.run_id,
        record.account,
        model,
        tokens(record.tokens.input),
        tokens(record.tokens.output),
        cost,
        first,
        milliseconds(record.duration_us),
        record.status,
        outcome_in_words(record),
    )
}

/// Returns the outcome of a call, with its reason: `complete (stop)`, `refused (quota_exhausted, run.cost)`,
/// `refused (rate_limited) for 120 calls`.
fn outcome_in_words(record: &ExchangeRecord) -> String {
    let reason = record.refusal.map(|refusal| refusal.code());
    let reason = reason.or(record.finish_reason.as_ref().map(|reason| reason.as_str()));
    let rule = record.rule.as_ref().map(|rule| rule.as_str());
    let why: Vec<_> =
        reason.into_iter().chain(rule).chain(record.timeout.map(|timeout| timeout.word())).collect();
    let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join(", ")) };
    let calls = if record.calls == 1 { String::new() } else { format!(" for {} calls", record.calls) };
    format!("{}{why}{calls}", record.outcome)
}
