//! Implements `sluice audit stats`.

use std::io::{self, IsTerminal, Write};

use platform_runtime::terminal;
use runner_audit::{By, Groups, Sort, Sums};
use runner_control_client::DataPlane;
use serde_json::{Value, json};

use super::{SelectedRecords, Selection, TimeRange, entry, filter, short_duration};
use crate::commands::{Error, exit::Exit, figures, table::Table};

/// Width of a bar in cells.
const BAR_WIDTH: u64 = 12;

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    /// Grouping of calls
    #[arg(long, value_enum, default_value = "run")]
    by: By,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    range: TimeRange,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Choice to draw each group's share of the cost as a bar. Only people need bars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bars {
    Drawn,
    Absent,
}

pub(super) async fn stats(data_plane: &DataPlane, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { by, selection, range, json } = arguments;
    let mut records = SelectedRecords::of(data_plane, filter(data_plane, selection, range).await?).await?;
    let mut groups = Groups::new(by);
    let mut total = Sums::default();
    while let Some(line) = records.next().await? {
        let entry = entry(line)?;
        groups.add(&entry);
        total.add(&entry);
    }
    let mut out = io::stdout();
    if json {
        let rows: Vec<_> =
            groups.sorted(Sort::Cost).into_iter().map(|(name, sums)| row(by, name, sums)).collect();
        let summary = json!({ "by": by.word(), "rows": rows, "all": figures(&total) });
        writeln!(out, "{}", terminal::safe_json(&summary.to_string()))?;
    } else {
        let bars = if out.is_terminal() { Bars::Drawn } else { Bars::Absent };
        write!(out, "{}", table(&groups, &total, bars))?;
    }
    Ok(Exit::Success)
}

fn table(groups: &Groups, total: &Sums, bars: Bars) -> String {
    let name = groups.by().word().to_uppercase();
    let mut table = Table::new([
        &name,
        "COST",
        "",
        "CALLS",
        "REFUSED",
        "ERRORS",
        "IN",
        "OUT",
        "FIRST P50",
        "P90",
        "P99",
        "WHOLE P50",
        "P90",
        "P99",
    ]);
    let sorted = groups.sorted(Sort::Cost);
    for (name, sums) in sorted.iter().copied().chain((sorted.len() > 1).then_some(("all", total))) {
        let bar = if bars == Bars::Drawn { bar(sums.cost.0, total.cost.0) } else { String::new() };
        let [first, whole] = [&sums.first, &sums.whole]
            .map(|times| [50, 90, 99].map(|percent| short_duration(times.percentile(percent))));
        let [first_50, first_90, first_99] = first;
        let [whole_50, whole_90, whole_99] = whole;
        table.row([
            name.to_owned(),
            figures::cost(sums.cost, sums.inexact),
            bar,
            sums.calls.to_string(),
            sums.refused.to_string(),
            sums.errors.to_string(),
            figures::tokens(sums.tokens.input, sums.inexact),
            figures::tokens(sums.tokens.output, sums.inexact),
            first_50,
            first_90,
            first_99,
            whole_50,
            whole_90,
            whole_99,
        ]);
    }
    table.to_string()
}

/// Draws the share of `part` in `whole`.
fn bar(part: u64, whole: u64) -> String {
    let cells = u128::from(part) * u128::from(BAR_WIDTH);
    let cells = cells.checked_div(u128::from(whole)).and_then(|cells| usize::try_from(cells).ok());
    "█".repeat(cells.unwrap_or(0))
}

/// Returns a row as JSON.
pub(super) fn row(by: By, name: &str, sums: &Sums) -> Value {
    let mut row = figures(sums);
    row[by.word()] = name.into();
    row
}

fn figures(sums: &Sums) -> Value {
    let percentiles = |value_at: &dyn Fn(u64) -> Option<u64>| json!({ "p50": value_at(50), "p90": value_at(90), "p99": value_at(99) });
    json!({
        "calls": sums.calls,
        "refused": sums.refused,
        "errors": sums.errors,
        "tokens": sums.tokens,
        "cost_nanodollars": sums.cost,
        "inexact": sums.inexact,
        "ttfb_us": percentiles(&|percent| sums.first.percentile(percent)),
        "duration_us": percentiles(&|percent| sums.whole.percentile(percent)),
    })
}
