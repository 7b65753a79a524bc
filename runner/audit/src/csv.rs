//! Records as CSV (RFC 4180), safe to open in a spreadsheet.
//!
//! A cell that begins like a formula gets an apostrophe in front, as OWASP's page on CSV injection advises. Names of
//! models are an agent's choice. Cells that are numbers stay numbers.

use platform_core::record::JournalLine;

/// Content of one cell.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Cell {
    Number(u64),
    Text(String),
    Nothing,
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(Self::Nothing, Into::into)
    }
}

/// Returns a value that serializes to a string as a text cell.
fn word(value: impl serde::Serialize) -> Cell {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => Cell::Text(text),
        _ => Cell::Nothing,
    }
}

/// Names of the columns, in order.
const COLUMNS: [&str; 37] = [
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
];

/// Returns the line of column names.
pub fn header() -> String {
    COLUMNS.join(",") + "\r\n"
}

/// Returns the line of a record.
pub fn row(line: &JournalLine) -> String {
    cells(line).iter().map(written).collect::<Vec<_>>().join(",") + "\r\n"
}

fn cells(line: &JournalLine) -> [Cell; COLUMNS.len()] {
    let record = &line.record;
    let text = |text: &str| Cell::Text(text.to_owned());
    let tools: Vec<_> = record.tools.iter().map(|tool| tool.as_str()).collect();
    [
        line.seq.into(),
        text(&record.ts),
        text(record.run_id.as_str()),
        u64::from(record.attempt).into(),
        text(record.account.as_str()),
        word(&record.user),
        word(&record.graph),
        word(record.identity),
        word(record.route),
        word(&record.model_asked),
        word(&record.model_answered),
        word(&record.finish_reason),
        text(if record.stream { "true" } else { "false" }),
        u64::from(record.status).into(),
        word(record.outcome),
        word(record.refusal),
        word(&record.rule),
        word(record.timeout),
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
        word(record.tokens_source),
        record.cost_nanodollars.map(|cost| cost.0).into(),
        word(record.cost_source),
        word(record.litellm_call_id),
        text(&tools.join(" ")),
        word(record.kind),
        record.calls.into(),
        word(record.tap),
        u64::from(line.v).into(),
    ]
}

fn written(cell: &Cell) -> String {
    match cell {
        Cell::Nothing => String::new(),
        Cell::Number(number) => number.to_string(),
        Cell::Text(text) => quoted(&harmless(text)),
    }
}

fn harmless(text: &str) -> String {
    let apostrophe = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("{apostrophe}{text}")
}

fn quoted(text: &str) -> String {
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
            assert_eq!(written(&Cell::Text(text.to_owned())), cell);
        }
        assert_eq!(written(&Cell::Number(12)), "12");
        assert_eq!(written(&Cell::from(None::<u64>)), "");
    }
}
