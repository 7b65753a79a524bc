//! `metering FILE CALLS GIANTS SEED` makes more calls than a test may. It writes as JSON how the journal compares with
//! the usage that the upstream reported, and fails if they differ.

#![allow(clippy::unwrap_used, reason = "a play that cannot go on has failed, with the place")]

use std::{process::Command, time::Instant};

use bench::measure::machine::Machine;
use harness::metering::Metering;
use serde_json::json;

const USAGE: &str = "usage: metering FILE CALLS GIANTS SEED";
/// Bytes of the largest answers and echoes.
const LARGEST: usize = 20 << 20;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [file, calls, giants, seed] = arguments.as_slice() else { panic!("{USAGE}") };
    let number = |text: &String| text.parse().expect(USAGE);
    let play = Metering {
        seed: seed.parse().expect(USAGE),
        calls: number(calls),
        giants: number(giants),
        largest: LARGEST,
    };
    let began = Instant::now();
    let found = play.play().await.judge();
    let commit = Command::new("git").args(["rev-parse", "HEAD"]).output().unwrap().stdout;
    let record = json!({
        "command": format!("cargo run -p tests --example metering {}", arguments.join(" ")),
        "commit": String::from_utf8_lossy(&commit).trim(),
        "machine": Machine::here(),
        "seed": play.seed,
        "seconds": began.elapsed().as_secs(),
        "found": found,
    });
    std::fs::write(file, format!("{record:#}\n")).unwrap();
    assert_eq!(found.faults, Vec::<String>::new());
}
