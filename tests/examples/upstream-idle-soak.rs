//! `upstream-idle-soak FILE` makes calls as far apart as the upstream keeps idle connections, more than a test may, and
//! writes the results as JSON.

#![allow(clippy::unwrap_used, reason = "a play that cannot go on has failed, with the place")]

use std::time::Instant;

use bench::measure::machine::Machine;
use harness::idle_soak::Soak;
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [file] = arguments.as_slice() else { panic!("usage: upstream-idle-soak FILE") };
    // The upstream has gunicorn's 2 s, and the proxy its default. The half second between them must cover the delay
    // with which the proxy reads an answer. On a busy machine, bursts of this size take longer, and calls fail.
    let usual = Soak {
        callers: 250,
        rounds: 400,
        upstream_idle_ms: 2000,
        pool_idle_ms: 1500,
        gap_ms: 2000,
        hold_ms: 300,
    };
    let plays = [
        ("gaps equal to the upstream's idle time", usual),
        (
            "gaps equal to pool_idle, where connections are still used again",
            Soak { rounds: 20, gap_ms: 1500, ..usual },
        ),
        ("control: pool_idle above the upstream's", Soak { rounds: 20, pool_idle_ms: 10_000, ..usual }),
    ];
    let (machine, mut played) = (Machine::here(), Vec::new());
    for (name, soak) in plays {
        let began = Instant::now();
        let found = soak.play().await;
        played.push(
            json!({ "play": name, "with": soak, "seconds": began.elapsed().as_secs(), "found": found }),
        );
    }
    let command =
        "cargo run --release -p tests --example upstream-idle-soak tests/records/upstream-idle-soak.json";
    let record = json!({ "command": command, "machine": machine, "plays": played });
    std::fs::write(file, format!("{record:#}\n")).unwrap();
}
