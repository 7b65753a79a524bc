//! `heads CONNECTIONS FILE` measures the cost of unfinished heads of 60 KiB on many connections: memory, and the calls of
//! another run meanwhile. It measures with the proxy's limits and, for comparison, without.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on has failed, with the place")]

use std::time::Instant;

use bench::{load::percentile, measure::machine::Machine};
use harness::{
    Agent, World, grant,
    heads::flood,
    shared::{register_shared, share},
};
use platform_runtime::task;
use serde_json::{Value, json};
use tokio::sync::oneshot::{self, error::TryRecvError};

/// Limits that the heads do not reach.
const UNLIMITED: &str = "threads = 2\nmax_header_memory = '4 GiB'\nmax_header_memory_per_listener = '4 GiB'";

/// Calls of another run that are measured before the flood.
const CALLS_ALONE: usize = 500;

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
        let neighbour = world.run("r2", "acct-2").await.agent;
        let mut before = Vec::new();
        for _ in 0..CALLS_ALONE {
            before.push(time_call(&neighbour).await);
        }
        let (stop, mut stopped) = oneshot::channel();
        let meanwhile = task::spawn("calls of another run", async move {
            let mut times = Vec::new();
            while stopped.try_recv() == Err(TryRecvError::Empty) {
                times.push(time_call(&neighbour).await);
            }
            times
        });
        let (flooded, open) = flood(&world, &Agent::over_tcp(address), connections, 60 << 10).await;
        stop.send(()).unwrap();
        let meanwhile = figures(meanwhile.await.unwrap());
        drop(open);
        measured.push(
            json!({ "heads": flooded, "call_us_before": figures(before), "call_us_meanwhile": meanwhile }),
        );
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

/// Returns the time of a call, in microseconds.
async fn time_call(agent: &Agent) -> u64 {
    let began = Instant::now();
    assert_eq!(agent.chat("fake").await.status, 200);
    u64::try_from(began.elapsed().as_micros()).unwrap()
}

/// Returns the number of calls, and percentiles of their times.
fn figures(mut times: Vec<u64>) -> Value {
    let [p50, p99, max] = [500, 990, 1000].map(|share| percentile(&mut times, share));
    json!({ "calls": times.len(), "p50": p50, "p99": p99, "max": max })
}
