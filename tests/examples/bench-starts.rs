//! `bench-starts FILE README` measures the time from an order to the agent's start. The results are JSON, and a table
//! between two marks of the README.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on has failed, with the place")]

use std::fs;

use bench::measure::machine::Machine;
use harness::start_times::{Row, StartTimes, percentile};
use serde_json::json;

const BEGIN: &str = "<!-- starts:begin -->";
const END: &str = "<!-- starts:end -->";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [file, readme] = arguments.as_slice() else { panic!("usage: bench-starts FILE README") };
    let times = StartTimes { alone: 30, rounds: 8 };
    let machine = Machine::here();
    let rows = times.measure().await;
    let about = format!(
        "`make bench-starts` on {} ({} cores, {}), commit `{}`, milliseconds from the order to the agent's first instruction; {} \
         starts alone and {} of eight at once each, in turns: [all of them](../../../{file}).",
        machine.processor,
        machine.cores,
        machine.kernel,
        machine.commit,
        times.alone,
        times.rounds * 8,
    );
    let table = table(&rows);
    let record = json!({ "command": "make bench-starts", "machine": machine, "rows": rows });
    fs::write(file, format!("{record:#}\n")).unwrap();
    let text = fs::read_to_string(readme).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the README has a place for the table");
    let (_, after) = rest.split_once(END).expect("it has an end");
    fs::write(readme, format!("{before}{BEGIN}\n{about}\n\n{table}{END}{after}")).unwrap();
}

fn table(rows: &[Row]) -> String {
    let mut text = "| start | p50 | p95 | eight at once: p50 | p95 |\n|---|--:|--:|--:|--:|\n".to_owned();
    for Row { what, alone_ms, at_once_ms } in rows {
        let figures = [(alone_ms, 50), (alone_ms, 95), (at_once_ms, 50), (at_once_ms, 95)];
        let figures = figures.map(|(all, percent)| format!("{:.0}", percentile(all, percent)));
        text += &format!("| {what} | {} |\n", figures.join(" | "));
    }
    text
}
