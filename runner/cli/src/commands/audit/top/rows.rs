//! Renders the rows of `sluice audit top`: one for each run, account or model, and their sum.

use platform_core::control::InexactCalls;
use platform_runtime::terminal;
use runner_audit::{By, Sort, Sums};

use super::{super::short_duration, screen_line::ScreenLine};
use crate::{
    commands::{columns, figures, palette::Tone},
    plural::counted,
};

/// Most columns of a name.
const NAME_WIDTH: usize = 32;
/// Position of the cell with errors.
const ERRORS: usize = 3;
const TITLES: [&str; 9] = ["CALLS", "/MIN", "REFUSED", "ERRORS", "IN", "OUT", "COST", "P50", "P99"];
const WIDTHS: [usize; 9] = [7, 6, 8, 7, 9, 9, 13, 8, 8];

/// Rows that the filter lets pass, and how many there are without it.
pub(super) struct Rows<'g> {
    pub(super) shown: Vec<GroupRow<'g>>,
    pub(super) all: usize,
}

/// Sums of a run, an account or a model.
#[derive(Clone, Copy)]
pub(super) struct GroupRow<'g> {
    pub(super) name: &'g str,
    pub(super) sums: &'g Sums,
}

impl GroupRow<'_> {
    /// Renders the row. Sanitises the name, because agents choose some of them.
    pub(super) fn line(self, now: u64) -> ScreenLine {
        let Self { name, sums } = self;
        let cells = [
            sums.calls.to_string(),
            sums.per_minute(now).to_string(),
            sums.refused.to_string(),
            sums.errors.to_string(),
            figures::tokens(sums.tokens.input, sums.inexact),
            figures::tokens(sums.tokens.output, sums.inexact),
            figures::cost(sums.cost, sums.inexact),
            short_duration(sums.whole.percentile(50)),
            short_duration(sums.whole.percentile(99)),
        ];
        let errors = if sums.errors > 0 { Tone::Bad } else { Tone::Plain };
        let tone = |at| if at == ERRORS { errors } else { Tone::Plain };
        line(&safe_name(name), Tone::Plain, |at| ScreenLine::of(tone(at), padded(at, &cells[at])))
    }
}

impl Rows<'_> {
    /// Renders the sum of the rows.
    pub(super) fn sum(&self, by: By, sort: Sort) -> String {
        let total = |figure: fn(&Sums) -> u64| {
            self.shown.iter().fold(0, |sum, row| u64::saturating_add(sum, figure(row.sums)))
        };
        let cost = self.shown.iter().map(|row| row.sums.cost).sum();
        let mut inexact = InexactCalls::default();
        self.shown.iter().for_each(|row| inexact += row.sums.inexact);
        let count = match self.shown.len() {
            shown if shown == self.all => format!("{shown} of them"),
            shown => format!("{shown} of {}", self.all),
        };
        format!(
            "{}s by {}: {count}, {}, {} refused, {}, {}, {}",
            by.word(),
            word(sort),
            counted(total(|sums| sums.calls), "call"),
            total(|sums| sums.refused),
            counted(total(|sums| sums.errors), "error"),
            counted(figures::tokens(total(Sums::all_tokens), inexact), "token"),
            figures::cost(cost, inexact),
        )
    }
}

/// Renders the titles, with a mark on the columns that decide the sequence of the rows.
pub(super) fn heading(by: By, sort: Sort) -> ScreenLine {
    let marked =
        |title: &str| if sorts(sort).contains(&title) { format!("▼{title}") } else { title.to_owned() };
    line(&by.word().to_uppercase(), Tone::Bold, |at| {
        ScreenLine::of(Tone::Bold, padded(at, &marked(TITLES[at])))
    })
}

/// Returns the titles of the columns that decide the sequence.
const fn sorts(sort: Sort) -> &'static [&'static str] {
    match sort {
        Sort::Tokens => &["IN", "OUT"],
        Sort::Cost => &["COST"],
        Sort::Errors => &["ERRORS"],
        Sort::Latency => &["P99"],
        Sort::Calls => &["CALLS"],
    }
}

/// Returns the word for a sequence.
pub(super) const fn word(sort: Sort) -> &'static str {
    match sort {
        Sort::Tokens => "tokens",
        Sort::Cost => "cost",
        Sort::Errors => "errors",
        Sort::Latency => "latency",
        Sort::Calls => "calls",
    }
}

/// Returns `name` without sequences that would drive the terminal.
pub(super) fn safe_name(name: &str) -> String {
    terminal::safe(name).replace(['\n', '\t'], " ")
}

fn line(name: &str, tone: Tone, cell: impl Fn(usize) -> ScreenLine) -> ScreenLine {
    let name = columns::beginning(name, NAME_WIDTH);
    let padding = " ".repeat(NAME_WIDTH.saturating_sub(columns::of(name)));
    let start = ScreenLine::of(tone, format!("{name}{padding}"));
    (0..TITLES.len()).fold(start, |line, at| line.and(Tone::Plain, " ").joined(cell(at)))
}

/// Returns `text` as wide as the column `at`, at its right.
fn padded(at: usize, text: &str) -> String {
    let padding = " ".repeat(WIDTHS[at].saturating_sub(columns::of(text)));
    padding + text
}
