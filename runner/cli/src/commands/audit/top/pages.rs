//! Renders the pages that `sluice audit top` shows over its rows: the help of its keys, and the details of a row.

use runner_audit::Entry;

use super::{
    super::{call_table::CallTable, record, short_duration},
    recent::RecentCalls,
    rows::{GroupRow, safe_name},
    screen_line::ScreenLine,
};
use crate::commands::{figures, palette::Tone, screen::Size};

const HELP: &str = "\
up, down, j, k        move the cursor
PgUp, PgDn            move it by a page
Home, End             move it to the first or last row
Enter                 show the details of the row under the cursor
r  a  m               one row for each run, account or model
t  c  e  l  n         most tokens, cost, errors, latency or calls first (▼ marks the column)
/                     filter by a part of the name: Enter keeps the filter, Esc drops it
?                     show this help
q, Ctrl-C             quit

CALLS      calls that were not refused
/MIN       calls that began in the last minute, refused ones too
ERRORS     calls that failed upstream, broke off or ran into a time limit
IN, OUT    tokens of prompts and answers; ~ marks those that are partly estimated
COST       + marks a cost that is known for some calls only, - one that is known for none
P50, P99   time within which half of the calls, or 99 of 100, have ended

The line at the top sums the rows that the filter shows.";

/// Renders the help of the keys.
pub(super) fn help() -> Vec<ScreenLine> {
    let title = ScreenLine::of(Tone::Bold, "Keys and columns of sluice audit top");
    let lines = HELP.lines().map(|line| ScreenLine::of(Tone::Plain, line));
    [title, ScreenLine::default()].into_iter().chain(lines).collect()
}

/// Renders the figures of a row, and its last calls as far as they fit into `size`.
pub(super) fn details(
    title: &str,
    row: GroupRow<'_>,
    recent: RecentCalls<'_>,
    size: Size,
) -> Vec<ScreenLine> {
    let mut lines = vec![ScreenLine::of(Tone::Bold, format!("{title} {}", safe_name(row.name)))];
    lines.push(ScreenLine::default());
    lines.extend(facts(row).into_iter().map(|fact| ScreenLine::of(Tone::Plain, fact)));
    lines.push(ScreenLine::default());
    let table = CallTable::new(Some(size.columns));
    lines.push(ScreenLine::of(Tone::Bold, table.heading()));
    let left = size.rows.saturating_sub(lines.len() + 1);
    let calls = recent.last_of(row.name, left);
    if calls.is_empty() {
        lines.push(ScreenLine::of(Tone::Plain, "none of the latest calls is of this row"));
    }
    for line in calls {
        let failed = Entry::parse(line).is_ok_and(|entry| entry.is_error());
        let tone = if failed { Tone::Bad } else { Tone::Plain };
        lines.extend(record(line).ok().map(|line| ScreenLine::of(tone, table.row(&line.record))));
    }
    lines
}

fn facts(row: GroupRow<'_>) -> [String; 5] {
    let sums = row.sums;
    let tokens = |count| figures::tokens(count, sums.inexact);
    let [first, whole] = [&sums.first, &sums.whole]
        .map(|times| [50, 90, 99].map(|percent| short_duration(times.percentile(percent))).join(", "));
    [
        format!("calls       {}, {} refused, {} failed", sums.calls, sums.refused, sums.errors),
        format!(
            "tokens      {} in ({} cached), {} out ({} reasoning)",
            tokens(sums.tokens.input),
            tokens(sums.tokens.cached),
            tokens(sums.tokens.output),
            tokens(sums.tokens.reasoning),
        ),
        format!("cost        {}", figures::cost(sums.cost, sums.inexact)),
        format!("first byte  {first} (p50, p90, p99)"),
        format!("whole call  {whole} (p50, p90, p99)"),
    ]
}
