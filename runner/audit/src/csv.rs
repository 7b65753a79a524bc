//! Formats records as CSV (RFC 4180), safe to open in a spreadsheet.
//!
//! An agent chooses the names of models, so a text could be a formula. A text that begins like one gets an apostrophe
//! in front, as OWASP's page on CSV injection advises. Numbers stay numbers.

use platform_core::record::{ExchangeRecord, Figures, JournalLine};

/// Content of one cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// A number, which stays one in a spreadsheet.
    Number(u64),
    /// A number that may be negative.
    Signed(i64),
    /// A text, which no spreadsheet reads as a formula.
    Text(String),
    /// Nothing.
    Empty,
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Self {
        Self::Signed(number)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(Self::Empty, Into::into)
    }
}

/// Returns the text cell of a value that serializes to a string. Any other value, such as `None`, makes an empty cell.
fn text_cell(value: impl serde::Serialize) -> Cell {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => Cell::Text(text),
        _ => Cell::Empty,
    }
}

/// Names of the columns, in order.
const COLUMNS: [&str; 52] = [
    "seq",
    "ts",
    "run_id",
    "attempt",
    "account",
    "user",
    "graph",
    "identity",
    "route",
    "model_asked",
    "model_answered",
    "finish_reason",
    "stream",
    "status",
    "outcome",
    "refusal",
    "rule",
    "timeout",
    "request_bytes",
    "response_bytes",
    "ttfb_us",
    "duration_us",
    "tokens_input",
    "tokens_output",
    "tokens_cached",
    "tokens_cache_written",
    "tokens_cache_written_1h",
    "tokens_reasoning",
    "tokens_source",
    "cost_nanodollars",
    "cost_source",
    "litellm_call_id",
    "tools",
    "kind",
    "calls",
    "tap",
    "v",
    "tool_name",
    "tool_outcome",
    "tool_connection",
    "tool_args_sha256",
    "output_rate",
    "seen_input",
    "seen_output",
    "seen_cost_nanodollars",
    "correction_line",
    "correction_before_input",
    "correction_before_output",
    "correction_before_cost_nanodollars",
    "correction_after_input",
    "correction_after_output",
    "correction_after_cost_nanodollars",
];

/// Returns the line of column names.
pub fn header() -> String {
    COLUMNS.join(",") + "\r\n"
}

/// Returns the line for a record.
pub fn row(line: &JournalLine) -> String {
    format_line(&[call_cells(line), later_cells(&line.record)].concat())
}

/// Returns the line of these cells.
pub fn format_line(cells: &[Cell]) -> String {
    cells.iter().map(format_cell).collect::<Vec<_>>().join(",") + "\r\n"
}

fn call_cells(line: &JournalLine) -> Vec<Cell> {
    let record = &line.record;
    let tool = record.tool.as_ref();
    let text = |text: &str| Cell::Text(text.to_owned());
    let tools: Vec<_> = record.tools.iter().map(|tool| tool.as_str()).collect();
    vec![
        line.seq.into(),
        text(&record.ts),
        text(record.run_id.as_str()),
        u64::from(record.attempt).into(),
        text(record.account.as_str()),
        text_cell(&record.user),
        text_cell(&record.graph),
        text_cell(record.identity),
        text_cell(record.route),
        text_cell(&record.model_asked),
        text_cell(&record.model_answered),
        text_cell(&record.finish_reason),
        text(if record.stream { "true" } else { "false" }),
        u64::from(record.status).into(),
        text_cell(record.outcome),
        text_cell(record.refusal),
        text_cell(&record.rule),
        text_cell(record.timeout),
        record.request_bytes.into(),
        record.response_bytes.into(),
        record.ttfb_us.into(),
        record.duration_us.into(),
        record.tokens.input.into(),
        record.tokens.output.into(),
        record.tokens.cached.into(),
        record.tokens.cache_written.into(),
        record.tokens.cache_written_1h.into(),
        record.tokens.reasoning.into(),
        text_cell(record.tokens_source),
        record.cost_nanodollars.map(|cost| cost.0).into(),
        text_cell(record.cost_source),
        text_cell(record.litellm_call_id),
        text(&tools.join(" ")),
        text_cell(record.kind),
        record.calls.into(),
        text_cell(record.tap),
        u64::from(line.v).into(),
        text_cell(tool.map(|tool| &tool.name)),
        text_cell(tool.map(|tool| tool.outcome)),
        text_cell(tool.and_then(|tool| tool.connection.as_ref())),
        text_cell(tool.and_then(|tool| tool.args_sha256.as_ref())),
    ]
}

/// Returns the cells of what a record has beside its call: its rate, what was seen, and a correction.
fn later_cells(record: &ExchangeRecord) -> Vec<Cell> {
    let correction = record.correction.as_deref();
    let figures = |figures: Option<Figures>| {
        [
            figures.map(|figures| figures.input).into(),
            figures.map(|figures| figures.output).into(),
            figures.map(|figures| figures.cost_nanodollars.0).into(),
        ]
    };
    let line = correction.map(|correction| correction.line);
    let mut cells = vec![record.output_rate.into()];
    cells.extend(figures(record.seen.as_deref().copied()));
    cells.push(line.into());
    cells.extend(figures(correction.map(|correction| correction.before)));
    cells.extend(figures(correction.map(|correction| correction.after)));
    cells
}

fn format_cell(cell: &Cell) -> String {
    match cell {
        Cell::Empty => String::new(),
        Cell::Number(number) => number.to_string(),
        Cell::Signed(number) => number.to_string(),
        Cell::Text(text) => quote(&neutralize(text)),
    }
}

/// Adds an apostrophe if a spreadsheet would read `text` as a formula.
fn neutralize(text: &str) -> String {
    let apostrophe = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("{apostrophe}{text}")
}

/// Quotes `text` if it would break its cell.
fn quote(text: &str) -> String {
    if text.contains([',', '"', '\r', '\n', '\'']) || text.starts_with(' ') || text.ends_with(' ') {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_a_formula_or_breaks_its_cell() {
        let cases = [
            ("gpt-4o", "gpt-4o"),
            ("=1+1", "\"'=1+1\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@SUM", "\"'@SUM\""),
            ("\tx", "\"'\tx\""),
            ("\r=x", "\"'\r=x\""),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("", ""),
        ];
        for (text, cell) in cases {
            assert_eq!(format_cell(&Cell::Text(text.to_owned())), cell);
        }
        assert_eq!(format_line(&[12_u64.into(), (-12_i64).into()]), "12,-12\r\n");
        assert_eq!(format_cell(&Cell::from(None::<u64>)), "");
    }
}
