//! `heads CONNECTIONS FILE` measures the cost of unfinished heads of 60 KiB on many connections, with the proxy's
//! limits and, for comparison, without.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on has failed, with the place")]

use bench::measure::machine::Machine;
use harness::{
    Agent, World, grant,
    heads::flood,
    shared::{register_shared, share},
};
use serde_json::json;

/// Limits that the heads do not reach.
const UNLIMITED: &str = "threads = 2\nmax_header_memory = '4 GiB'\nmax_header_memory_per_listener = '4 GiB'";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [connections, file] = arguments.as_slice() else { panic!("usage: heads CONNECTIONS FILE") };
    let connections = connections.parse().unwrap();
    let mut measured = Vec::new();
    for settings in [None, Some(UNLIMITED)] {
        let mut world = World::quiet("").await;
        if let Some(settings) = settings {
            world.reconfigure("threads = 2", settings);
        }
        share(&mut world, "clients").await;
        let address = register_shared(&world, grant("r1", "acct-1")).await;
        let (flooded, open) = flood(&world, &Agent::over_tcp(address), connections, 60 << 10).await;
        drop(open);
        measured.push(flooded);
    }
    let command = format!("cargo run --release -p tests --example heads {}", arguments.join(" "));
    let record = json!({
        "command": command,
        "machine": Machine::here(),
        "with_default_limits": measured[0],
        "without_limits": measured[1],
    });
    std::fs::write(file, format!("{record:#}\n")).unwrap();
}
