//! `heads CONNECTIONS FILE` measures the cost of unfinished heads of 60 KiB on many connections: memory, and the calls of
//! another run meanwhile. It measures with the proxy's limits and, for comparison, without.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on has failed, with the place")]

use std::{
    path::PathBuf,
    sync::mpsc::{Receiver, Sender, TryRecvError, channel},
    thread::{self, JoinHandle},
    time::Instant,
};

use bench::{load::percentile, measure::machine::Machine};
use harness::{
    Agent, World, grant,
    heads::flood,
    shared::{register_shared, share},
};
use serde_json::{Value, json};

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
        let run = world.run("r2", "acct-2").await;
        let alone = Neighbour::calls(run.socket.clone()).for_calls(CALLS_ALONE);
        let neighbour = Neighbour::calls(run.socket);
        let (flooded, open) = flood(&world, &Agent::over_tcp(address), connections, 60 << 10).await;
        let beside = neighbour.stop();
        drop(open);
        measured.push(json!({ "heads": flooded, "call_us_before": alone, "call_us_meanwhile": beside }));
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

/// Another run, which makes one call after the other on a thread.
struct Neighbour {
    stop: Sender<()>,
    calls: Receiver<u64>,
    thread: JoinHandle<()>,
}

impl Neighbour {
    /// Starts to call the proxy at `socket`.
    fn calls(socket: PathBuf) -> Self {
        let (stop, stopped) = channel();
        let (made, calls) = channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let agent = Agent::on(&socket);
                while matches!(stopped.try_recv(), Err(TryRecvError::Empty)) {
                    let began = Instant::now();
                    assert_eq!(agent.chat("fake").await.status, 200);
                    made.send(u64::try_from(began.elapsed().as_micros()).unwrap()).unwrap();
                }
            });
        });
        Self { stop, calls, thread }
    }

    /// Waits for `count` calls, and returns their times.
    fn for_calls(self, count: usize) -> Value {
        let times = self.calls.iter().take(count).collect();
        self.ended();
        figures(times)
    }

    /// Returns the times of the calls so far, in microseconds.
    fn stop(self) -> Value {
        let times = self.calls.try_iter().collect();
        self.ended();
        figures(times)
    }

    fn ended(self) {
        self.stop.send(()).unwrap();
        self.thread.join().unwrap();
    }
}

fn figures(mut times: Vec<u64>) -> Value {
    let [p50, p99, max] = [500, 990, 1000].map(|share| percentile(&mut times, share));
    json!({ "calls": times.len(), "p50": p50, "p99": p99, "max": max })
}
