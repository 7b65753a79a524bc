//! `tool-latency FILE PAGE CALLS` measures how long a host tool that does nothing takes, seen from inside a sandbox. It writes
//! the figures as JSON, and as a table between two marks of the page.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on has failed, with the place")]

use std::fs;

use bench::measure::machine::Machine;
use harness::tool_latency::{LatencyRow, ToolLatency};
use serde_json::json;

const USAGE: &str = "usage: tool-latency FILE PAGE CALLS";
const BEGIN: &str = "<!-- tool-latency:begin -->\n";
const END: &str = "<!-- tool-latency:end -->";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [file, page, calls] = arguments.as_slice() else { panic!("{USAGE}") };
    let machine = Machine::here();
    let rows = ToolLatency { calls: calls.parse().expect(USAGE) }.measure().await;
    // The programs beside this one are measured.
    let is_release = std::env::current_exe().unwrap().ancestors().any(|dir| dir.ends_with("release"));
    let build = if is_release { " --release" } else { "" };
    let command = format!("cargo run{build} -p tests --example tool-latency {}", arguments.join(" "));
    let about = format!(
        "`{command}` on {} ({} cores, {}), commit `{}`:\n\n",
        machine.processor, machine.cores, machine.kernel, machine.commit
    );
    let record = json!({ "command": command, "machine": machine, "rows": rows });
    fs::write(file, format!("{record:#}\n")).unwrap();
    let text = fs::read_to_string(page).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the page has a place for the table");
    let (_, after) = rest.split_once(END).expect("it has an end");
    fs::write(page, format!("{before}{BEGIN}{about}{}{END}{after}", table(&rows))).unwrap();
}

fn table(rows: &[LatencyRow]) -> String {
    let mut text = "| call | p50 | p90 | p99 |\n|---|--:|--:|--:|\n".to_owned();
    for LatencyRow { way, p50_us, p90_us, p99_us, .. } in rows {
        let [p50, p90, p99] =
            [p50_us, p90_us, p99_us].map(|us| format!("{}.{:02} ms", us / 1000, us % 1000 / 10));
        text += &format!("| {way} | {p50} | {p90} | {p99} |\n");
    }
    text
}
