//! `api-soak FILE STORED STREAMS SECONDS` loads the HTTP API as `harness::api_soak` says, and writes its figures as JSON.
//! It fails if lists or events are late, if claims are later with slow readers than without them, or if memory is kept.

#![allow(clippy::unwrap_used, reason = "a soak that cannot go on has failed, with the place")]

use std::{process::Command, time::Duration};

use bench::measure::machine::Machine;
use harness::api_soak::{ApiSoak, Figures};
use serde_json::json;

/// Largest accepted 99th percentile of lists.
const MAX_LIST_US: u64 = 20_000;
/// Largest accepted 99th percentile of the delay of events.
const MAX_EVENT_DELAY_US: u64 = 50_000;
/// Largest accepted growth of the median of claims by slow readers: the interval at which the queue is polled.
const MAX_CLAIM_GROWTH_US: u64 = 25_000;
/// Largest accepted memory of a slow reader, in bytes.
const MAX_READER: u64 = 512 << 10;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [file, stored, streams, seconds] = arguments.as_slice() else {
        panic!("usage: api-soak FILE STORED STREAMS SECONDS")
    };
    let streams: usize = streams.parse().unwrap();
    let span = Duration::from_secs(seconds.parse().unwrap());
    let outcome = ApiSoak { stored: stored.parse().unwrap(), streams, span }.run().await;
    let commit = Command::new("git").args(["rev-parse", "HEAD"]).output().unwrap().stdout;
    let record = json!({
        "command": format!("cargo run --release -p tests --example api-soak {}", arguments.join(" ")),
        "commit": String::from_utf8_lossy(&commit).trim(),
        "machine": Machine::here(),
        "streams": streams,
        "seconds": span.as_secs(),
        "max_list_p99_us": MAX_LIST_US,
        "max_event_delay_p99_us": MAX_EVENT_DELAY_US,
        "max_claim_growth_us": MAX_CLAIM_GROWTH_US,
        "max_bytes_of_a_reader": MAX_READER,
        "outcome": outcome,
    });
    std::fs::write(file, format!("{record:#}\n")).unwrap();
    let Figures { list, event_delay, claim_delay, peak, .. } = &outcome.with_streams;
    assert!(list.p99_us <= MAX_LIST_US, "lists are late: {list:?}");
    assert!(event_delay.p99_us <= MAX_EVENT_DELAY_US, "events are late: {event_delay:?}");
    let before = &outcome.without_streams;
    let allowed = before.claim_delay.p50_us + MAX_CLAIM_GROWTH_US;
    assert!(claim_delay.p50_us <= allowed, "claims are late: {claim_delay:?} and {:?}", before.claim_delay);
    let allowed = before.peak + streams as u64 * MAX_READER;
    assert!(*peak <= allowed, "{peak} bytes of memory, more than {allowed}");
}
