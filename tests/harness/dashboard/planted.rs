//! Plants rows into a store, more than a test could have runs make.

use serde_json::{Map, Value, json};

type Row = Map<String, Value>;

/// Ended runs of `acct-7`: many, and one of many events, with a failure among them.
#[derive(Debug, Clone, Copy)]
pub struct Planted {
    /// Number of runs `planted-NNNNN`.
    pub runs: usize,
    /// Number of events of the run `long`.
    pub events: usize,
    /// Number of the event that is a failure.
    pub failure: usize,
}

impl Planted {
    /// Returns `row` of the store with what is planted beside it: the rows of the run `seed` are the models.
    pub(super) fn beside(&self, table: &str, row: Row) -> Vec<Row> {
        let is_model = row.get("run").is_some_and(|run| run == "seed");
        let mut rows = vec![row];
        match table {
            "runs" if is_model => {
                let ids = (0..self.runs).map(|number| format!("planted-{number:05}"));
                let runs: Vec<_> = ids.map(|id| with(&rows[0], &[("run", json!(id))])).collect();
                rows.extend(runs);
                // As if it had been pruned before: so many ended runs have their events removed.
                rows.push(with(
                    &rows[0],
                    &[("run", json!("long")), ("last_event", json!(self.events)), ("pruned", json!(0))],
                ));
            }
            "events" if is_model && rows[0]["seq"] == 1 => {
                let events: Vec<_> = (1..=self.events).map(|seq| self.event(&rows[0], seq)).collect();
                rows.extend(events);
            }
            _ => {}
        }
        rows
    }

    /// Returns an event of the run `long`.
    fn event(&self, model: &Row, seq: usize) -> Row {
        let id = format!("call-{}", seq / 2);
        let payload = if seq == self.events {
            json!({ "type": "done" })
        } else if seq.is_multiple_of(2) && seq != self.failure {
            json!({ "type": "tool_call", "id": id, "name": "read", "arguments": format!("{{\"row\":{seq}}}") })
        } else {
            let is_error = seq == self.failure;
            json!({ "type": "tool_result", "id": id, "result": format!("row {seq}"), "is_error": is_error })
        };
        with(
            model,
            &[
                ("run", json!("long")),
                ("seq", json!(seq)),
                ("kind", payload["type"].clone()),
                ("payload", json!(payload.to_string())),
            ],
        )
    }
}

fn with(row: &Row, values: &[(&str, Value)]) -> Row {
    let mut other = row.clone();
    for (column, value) in values {
        other[*column] = value.clone();
    }
    other
}
