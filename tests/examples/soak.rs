//! `soak CALLS CUTS FILE` makes many more calls than a test may, and writes the proxy's resources as JSON.

#![allow(clippy::unwrap_used, reason = "a soak that cannot go on has failed, with the place")]

use std::time::Instant;

use bench::measure::machine::Machine;
use harness::soak::{Leak, Soak, grown};
use serde_json::json;

/// Settings that keep only a part of the journal of a million calls.
const SETTINGS: &str = "[journal]\nsegment_size = '4 MiB'\ndisk_budget = '32 MiB'\n";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [calls, cuts, file] = arguments.as_slice() else { panic!("usage: soak CALLS CUTS FILE") };
    let soak =
        Soak { calls: calls.parse().unwrap(), cuts: cuts.parse().unwrap(), bouts: 50, leak: Leak::None };
    let began = Instant::now();
    let samples = soak.run(SETTINGS).await;
    let last = samples.last().unwrap();
    assert_eq!(last.lines, soak.calls + soak.cuts, "each has its record");
    let command = format!("cargo run --release -p tests --example soak {}", arguments.join(" "));
    let record = json!({
        "command": command,
        "machine": Machine::here(),
        "seconds": began.elapsed().as_secs(),
        "calls": last.calls,
        "cuts": soak.cuts,
        "lines": last.lines,
        "grown_from_the_second_third_to_the_last": grown(&samples),
        "samples": samples,
    });
    std::fs::write(file, format!("{record:#}\n")).unwrap();
}
