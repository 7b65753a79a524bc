//! Implements `sluice audit tail`.

use std::{
    collections::VecDeque,
    io::{self, BufWriter, IsTerminal, Write},
};

use platform_core::{
    record::{Kind, Outcome, TokensSource},
    refusal::Refusal,
};
use runner_audit::Filter;
use runner_control_client::{self as data_plane, DataPlane, Follow};

use rustix::termios;

use super::{Selection, call_table::CallTable, entry, parse_journal_word, record};
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
    /// Only records of this kind: `model`, `tool`, `correction`
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
    table: Option<CallTable>,
}

pub(super) async fn tail(data_plane: &DataPlane, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { selection, outcome, refusal, tokens, kind, lines: count, follow, json } = arguments;
    let filter = Filter { outcome, refusal, tokens, kind, ..selection.filter(data_plane).await? };
    let stdout = io::stdout();
    let as_table = stdout.is_terminal() && !json;
    // A program reads everything: it would not notice that the beginning is missing.
    let is_overview = as_table && filter == Filter::default();
    let count = count.or_else(|| is_overview.then_some(MAX_OVERVIEW));
    let table = as_table.then(|| CallTable::new(terminal_width(&stdout)));
    let mut tail = Tail { data_plane, filter, printer: Printer { out: BufWriter::new(stdout), table } };
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

/// Returns the width of the terminal in columns, if it reports one.
fn terminal_width(stdout: &io::Stdout) -> Option<usize> {
    let width = termios::tcgetwinsize(stdout).map_or(0, |size| usize::from(size.ws_col));
    Some(width).filter(|width| *width > 0)
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
    /// Prints the heading of a table.
    fn heading(&mut self) -> io::Result<()> {
        if let Some(table) = &self.table {
            writeln!(self.out, "{}", table.heading())?;
        }
        self.out.flush()
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Error> {
        match &self.table {
            Some(table) => writeln!(self.out, "{}", table.row(&record(line)?.record))?,
            None => {
                self.out.write_all(line)?;
                self.out.write_all(b"\n")?;
            }
        }
        Ok(())
    }
}
