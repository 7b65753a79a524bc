//! `output-soak FILE BYTES` prints more output than a test may, and writes the memory of `sluice run` as JSON. It fails
//! if the memory grows with the output, or if a byte of it is not counted.

#![allow(clippy::unwrap_used, reason = "a soak that cannot go on has failed, with the place")]

use std::{process::Command, time::Instant};

use bench::measure::machine::Machine;
use harness::{World, output::most_memory};
use serde_json::{Value, json};

/// Largest accepted growth of the memory, in KiB.
const MAX_GROWTH: u64 = 32 << 10;

/// Starts a world with an agent that runs `script`.
async fn world(script: &str) -> World {
    let argv = json!(["bash", "-c", script]);
    World::with(&format!(
        "[agents.'test:sh']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = {argv}\nprotocol = 'text'\nrun_timeout = '2h'\noutput_capture_limit = '2 MiB'\n"
    ))
    .await
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [file, bytes] = arguments.as_slice() else { panic!("usage: output-soak FILE BYTES") };
    let bytes: u64 = bytes.parse().unwrap();
    let quiet = most_memory(&world("true").await, "test:sh").await;
    let loud = world(&format!("echo BEGIN; head -c {bytes} /dev/zero | tr '\\0' x; echo; echo END")).await;
    let began = Instant::now();
    let most = most_memory(&loud, "test:sh").await;
    let seconds = began.elapsed().as_secs();
    let events = loud.sluice().run(&["runs", "events", "r1"]).await.events();
    let sum = |kind: &str, count: fn(&Value) -> u64| -> u64 {
        events.iter().filter(|event| event["type"] == kind).map(count).sum()
    };
    let cut = sum("log_cut", |event| event["bytes"].as_u64().unwrap());
    let kept = sum("log", |event| event["text"].as_str().unwrap().len() as u64);
    let commit = Command::new("git").args(["rev-parse", "HEAD"]).output().unwrap().stdout;
    let record = json!({
        "command": format!("cargo run -p tests --example output-soak {}", arguments.join(" ")),
        "commit": String::from_utf8_lossy(&commit).trim(),
        "machine": Machine::here(),
        "seconds": seconds,
        "bytes": bytes,
        "bytes_kept": kept,
        "bytes_cut": cut,
        "ended": events.last().map(|event| event["type"].clone()),
        "most_kib_without_output": quiet,
        "most_kib": most,
        "grown_kib": most.saturating_sub(quiet),
        "may_grow_kib": MAX_GROWTH,
    });
    std::fs::write(file, format!("{record:#}\n")).unwrap();
    assert_eq!(kept + cut, bytes + "BEGIN\n\nEND\n".len() as u64, "each byte is kept or counted");
    assert!(most < quiet + MAX_GROWTH, "grew from {quiet} to {most} KiB");
}
