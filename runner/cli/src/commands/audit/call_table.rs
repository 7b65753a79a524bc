//! Formats calls as rows of a table that fits a terminal. Pure: does not use the terminal.

use platform_core::record::{ExchangeRecord, Figures, TokensSource};
use platform_runtime::terminal;

use super::short_duration;
use crate::commands::columns;

/// Least width at which every column has its whole width.
const WIDE: usize = 160;
/// Least width of the last column, which is cut at the end of the line.
const MIN_OUTCOME_WIDTH: usize = 20;
/// Columns in the sequence in which a narrow terminal loses them.
const DROPPED_FIRST: [Column; 8] = [
    Column::First,
    Column::Account,
    Column::Cost,
    Column::In,
    Column::Out,
    Column::Model,
    Column::Whole,
    Column::Run,
];

/// Columns of the table. Widths are fixed, because rows appear one by one.
#[derive(Debug)]
pub(super) struct CallTable {
    columns: Vec<Column>,
    /// Width of the terminal; rows without one are as long as they need.
    width: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Time,
    Call,
    Run,
    Account,
    Model,
    In,
    Out,
    Cost,
    First,
    Whole,
    Outcome,
}

impl Column {
    const ALL: [Self; 11] = [
        Self::Time,
        Self::Call,
        Self::Run,
        Self::Account,
        Self::Model,
        Self::In,
        Self::Out,
        Self::Cost,
        Self::First,
        Self::Whole,
        Self::Outcome,
    ];

    const fn title(self) -> &'static str {
        match self {
            Self::Time => "TIME",
            Self::Call => "CALL",
            Self::Run => "RUN",
            Self::Account => "ACCOUNT",
            Self::Model => "MODEL",
            Self::In => "IN",
            Self::Out => "OUT",
            Self::Cost => "COST",
            Self::First => "FIRST",
            Self::Whole => "WHOLE",
            Self::Outcome => "OUTCOME",
        }
    }

    const fn is_figure(self) -> bool {
        matches!(self, Self::In | Self::Out | Self::Cost | Self::First | Self::Whole)
    }
}

impl CallTable {
    /// Returns the columns that fit into `width`, or all columns without one.
    pub(super) fn new(width: Option<usize>) -> Self {
        let mut table = Self { columns: Column::ALL.to_vec(), width };
        let Some(width) = width.filter(|width| *width < WIDE) else { return table };
        for dropped in DROPPED_FIRST {
            if table.fixed_width() + MIN_OUTCOME_WIDTH <= width {
                break;
            }
            table.columns.retain(|column| *column != dropped);
        }
        table
    }

    /// Returns the line with the titles of the columns.
    pub(super) fn heading(&self) -> String {
        self.line(|column| column.title().to_owned())
    }

    /// Returns the row of a call. Sanitises it, because agents choose some of the names.
    pub(super) fn row(&self, record: &ExchangeRecord) -> String {
        self.line(|column| terminal::safe(&self.cell(column, record)).replace(['\n', '\t'], " "))
    }

    fn is_wide(&self) -> bool {
        self.width.is_none_or(|width| width >= WIDE)
    }

    /// Returns the width of all columns but the last, with the gaps behind them.
    fn fixed_width(&self) -> usize {
        self.columns.iter().filter_map(|column| self.width_of(*column)).map(|width| width + 1).sum()
    }

    /// Returns the width of `column`; `None` for the last one.
    fn width_of(&self, column: Column) -> Option<usize> {
        let wide = self.is_wide();
        Some(match column {
            Column::Time => {
                if wide {
                    20
                } else {
                    9
                }
            }
            Column::Call => 12,
            Column::Run => {
                if wide {
                    26
                } else {
                    8
                }
            }
            Column::Account => {
                if wide {
                    16
                } else {
                    12
                }
            }
            Column::Model => {
                if wide {
                    20
                } else {
                    16
                }
            }
            Column::In | Column::Out => 6,
            Column::Cost => 10,
            Column::First | Column::Whole => {
                if wide {
                    8
                } else {
                    7
                }
            }
            Column::Outcome => return None,
        })
    }

    fn line(&self, cell: impl Fn(Column) -> String) -> String {
        let cells: Vec<_> = self.columns.iter().map(|column| self.padded(*column, &cell(*column))).collect();
        let line = cells.join(" ");
        let line = line.trim_end();
        self.width.map_or(line, |width| columns::beginning(line, width)).to_owned()
    }

    fn padded(&self, column: Column, text: &str) -> String {
        let Some(width) = self.width_of(column) else { return text.to_owned() };
        // The whole cell is shown where nothing has to fit.
        let text = if self.is_wide() { text } else { columns::beginning(text, width) };
        let padding = " ".repeat(width.saturating_sub(columns::of(text)));
        if column.is_figure() { padding + text } else { text.to_owned() + &padding }
    }

    fn cell(&self, column: Column, record: &ExchangeRecord) -> String {
        match column {
            Column::Time => {
                // In UTC, and says so, as all times of `sluice` do.
                let shown = if self.is_wide() { 0..19 } else { 11..19 };
                record.ts.get(shown).map_or_else(|| record.ts.clone(), |time| format!("{time}Z"))
            }
            // The last part of the id is enough for `sluice audit show` to find the call.
            Column::Call => {
                let call = record.litellm_call_id.to_string();
                call.rsplit('-').next().unwrap_or(&call).to_owned()
            }
            // The end of the id is enough for every command that takes a run.
            Column::Run if !self.is_wide() => columns::end(record.run_id.as_str(), 8).to_owned(),
            Column::Run => record.run_id.to_string(),
            Column::Account => record.account.to_string(),
            Column::Model => {
                let tool = record.tool.as_ref().map(|tool| &tool.name);
                let model = record.model_asked.as_ref().or(record.model_answered.as_ref());
                tool.or(model).map_or_else(|| "-".to_owned(), ToString::to_string)
            }
            Column::In => tokens(record, record.tokens.input),
            Column::Out => tokens(record, record.tokens.output),
            Column::Cost => record.cost_nanodollars.map_or_else(|| "-".to_owned(), |cost| cost.to_string()),
            Column::First => short_duration(record.ttfb_us),
            Column::Whole => short_duration(Some(record.duration_us)),
            Column::Outcome => format!("{} {}", record.status, outcome_in_words(record)),
        }
    }
}

/// Formats a count of tokens; `~` marks one that is not exact.
fn tokens(record: &ExchangeRecord, count: u64) -> String {
    match record.tokens_source {
        TokensSource::Exact => count.to_string(),
        TokensSource::Partial | TokensSource::Estimated => format!("~{count}"),
        TokensSource::None => "-".to_owned(),
    }
}

/// Returns the outcome of a call, with its reason: `complete (stop)`, `refused (quota_exhausted, run.cost)`,
/// `refused (rate_limited) for 120 calls`. A correction says what the call counts with from then on.
fn outcome_in_words(record: &ExchangeRecord) -> String {
    if let Some(correction) = &record.correction {
        let Figures { input, output, cost_nanodollars } = correction.after;
        return format!("corrected: {input} in, {output} out, {cost_nanodollars}");
    }
    let reason = record.refusal.map(|refusal| refusal.code());
    let reason = reason.or(record.finish_reason.as_ref().map(|reason| reason.as_str()));
    let rule = record.rule.as_ref().map(|rule| rule.as_str());
    let why: Vec<_> =
        reason.into_iter().chain(rule).chain(record.timeout.map(|timeout| timeout.word())).collect();
    let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join(", ")) };
    let calls = if record.calls == 1 { String::new() } else { format!(" for {} calls", record.calls) };
    format!("{}{why}{calls}", record.outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_fits_every_terminal() {
        for width in 20..200 {
            let table = CallTable::new(Some(width));
            assert!(columns::of(&table.heading()) <= width, "{width}: {}", table.heading());
        }
        let whole = CallTable::new(None).heading();
        assert_eq!(whole, CallTable::new(Some(WIDE)).heading(), "control: a wide terminal loses nothing");
        assert!(Column::ALL.iter().all(|column| whole.contains(column.title())), "{whole}");
    }

    #[test]
    fn narrow_terminals_lose_columns_in_turn() {
        let titles =
            |width| CallTable::new(Some(width)).heading().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(titles(120), "TIME CALL RUN ACCOUNT MODEL IN OUT COST WHOLE OUTCOME");
        assert_eq!(titles(80), "TIME CALL RUN MODEL WHOLE OUTCOME");
        assert_eq!(titles(45), "TIME CALL OUTCOME");
    }
}
