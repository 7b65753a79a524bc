//! `starts FILE COUNT AT_A_TIME WARM` starts more runs than a test may, and writes their times as JSON. It fails if a
//! run fails.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on has failed, with the place")]

use std::time::Instant;

use bench::measure::machine::Machine;
use harness::starts::Starts;
use serde_json::json;

const USAGE: &str = "usage: starts FILE COUNT AT_A_TIME WARM";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [file, numbers @ ..] = arguments.as_slice() else { panic!("{USAGE}") };
    let numbers: Vec<_> = numbers.iter().map(|number| number.parse().expect(USAGE)).collect();
    let [count, at_a_time, warm] = numbers[..] else { panic!("{USAGE}") };
    let starts = Starts { count, at_a_time, warm };
    let began = Instant::now();
    let found = starts.run().await;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    let command = format!("cargo run -p tests --example starts {}", arguments.join(" "));
    let record = json!({
        "command": command,
        "machine": Machine::here(),
        "load_average_at_the_end": load.trim(),
        "seconds": began.elapsed().as_secs(),
        "starts": starts.count,
        "at_a_time": starts.at_a_time,
        "kept_ready": starts.warm,
        "found": found,
    });
    std::fs::write(file, format!("{record:#}\n")).unwrap();
    assert_eq!(found.failures, Vec::<String>::new());
}
