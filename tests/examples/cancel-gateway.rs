//! `cancel-gateway FILE RUNS AT_A_TIME SEED` cancels more runs at a real gateway than a test may. It writes the times
//! of the last model calls as JSON, and fails if a model is called too late.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on has failed, with the place")]

use std::time::Instant;

use bench::measure::machine::Machine;
use harness::cancels::{Cancels, gateway};
use serde_json::json;

const USAGE: &str = "usage: cancel-gateway FILE RUNS AT_A_TIME SEED";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [file, runs, at_a_time, seed] = arguments.as_slice() else { panic!("{USAGE}") };
    let number = |text: &String| text.parse().expect(USAGE);
    let cancels =
        Cancels { runs: number(runs), at_a_time: number(at_a_time), seed: seed.parse().expect(USAGE) };
    let sessions = gateway().await;
    let began = Instant::now();
    let (_, found) = cancels.run(&sessions).await;
    let record = json!({
        "command": format!("cargo run -p tests --example cancel-gateway {}", arguments.join(" ")),
        "machine": Machine::here(),
        "seconds": began.elapsed().as_secs(),
        "found": found,
    });
    std::fs::write(file, format!("{record:#}\n")).unwrap();
    sessions.gateway.stop().await;
    assert_eq!(found.faults, Vec::<String>::new());
}
