//! `api-occupation FILE SLOW IDLE SECONDS` occupies the HTTP API as `harness::api_occupation` says, and writes its figures
//! as JSON. It fails if requests of others are late.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on has failed, with the place")]

use std::{process::Command, time::Duration};

use bench::measure::machine::Machine;
use harness::api_occupation::ApiOccupation;
use serde_json::json;

/// Largest accepted 99th percentile of requests.
const MAX_REQUEST_US: u64 = 100_000;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [file, slow_bodies, idle, seconds] = arguments.as_slice() else {
        panic!("usage: api-occupation FILE SLOW IDLE SECONDS")
    };
    let occupation = ApiOccupation {
        slow_bodies: slow_bodies.parse().unwrap(),
        idle: idle.parse().unwrap(),
        span: Duration::from_secs(seconds.parse().unwrap()),
    };
    let outcome = occupation.run().await;
    let commit = Command::new("git").args(["rev-parse", "HEAD"]).output().unwrap().stdout;
    let profile = if cfg!(debug_assertions) { "" } else { "--release " };
    let record = json!({
        "command": format!("cargo run {profile}-p tests --example api-occupation {}", arguments.join(" ")),
        "commit": String::from_utf8_lossy(&commit).trim(),
        "machine": Machine::here(),
        "slow_bodies": occupation.slow_bodies,
        "idle": occupation.idle,
        "seconds": occupation.span.as_secs(),
        "max_request_p99_us": MAX_REQUEST_US,
        "outcome": outcome,
    });
    std::fs::write(file, format!("{record:#}\n")).unwrap();
    let p99 = outcome.beside_strangers.p99_us;
    assert!(p99 <= MAX_REQUEST_US, "requests are late: {outcome:?}");
}
