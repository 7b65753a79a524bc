//! Opens many connections that each send an unfinished request head.

use std::{
    fs,
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use tokio::io::AsyncWriteExt;

use crate::{
    agent::{Agent, Wire},
    eventually::{eventually, settled},
    world::World,
};

/// Interval in which the proxy's memory no longer changes.
const SETTLING_INTERVAL: Duration = Duration::from_millis(100);

/// Figures of the proxy under a flood of unfinished heads.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Flooded {
    /// Connections that were opened.
    pub connections: usize,
    /// Bytes of head sent on each connection.
    pub head_bytes: usize,
    /// Resident memory before, KiB.
    pub rss_before_kib: u64,
    /// Resident memory while all were open, KiB.
    pub rss_after_kib: u64,
    /// Growth for each connection that was opened, KiB.
    pub kib_per_connection: u64,
    /// Bytes that the proxy counted at the end.
    pub counted_bytes: u64,
    /// Time until all heads were sent, milliseconds.
    pub milliseconds: u128,
}

/// Opens `connections` at `agent`'s address, each with `bytes` of an unfinished head, and measures the proxy. Returns
/// the figures and the open connections.
///
/// # Panics
/// If the proxy does not settle.
pub async fn flood(
    world: &World,
    agent: &Agent,
    connections: usize,
    bytes: usize,
) -> (Flooded, Vec<Box<dyn Wire>>) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let head = half_a_head(bytes);
    let (rss_before_kib, began) = (rss_kib(world), Instant::now());
    let mut open = Vec::new();
    for _ in 0..connections {
        let mut wire = agent.connect().await.unwrap();
        // The proxy may already have answered and closed this connection.
        drop(wire.write_all(&head).await);
        open.push(wire);
    }
    let milliseconds = began.elapsed().as_millis();
    eventually("heads are counted", || head_bytes(world), |bytes| *bytes > 0).await;
    let memory = || async { (rss_kib(world), head_bytes(world).await) };
    let (rss_after_kib, counted_bytes) = settled("memory", SETTLING_INTERVAL, memory).await;
    let grown = rss_after_kib.saturating_sub(rss_before_kib);
    let kib_per_connection = grown / connections as u64;
    let flooded = Flooded {
        connections,
        head_bytes: bytes,
        rss_before_kib,
        rss_after_kib,
        kib_per_connection,
        counted_bytes,
        milliseconds,
    };
    (flooded, open)
}

/// Returns an unfinished head of `bytes` bytes.
#[must_use]
pub fn half_a_head(bytes: usize) -> Vec<u8> {
    let mut head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nx-padding: ".to_vec();
    head.resize(bytes, b'x');
    head
}

/// Returns the header memory that the proxy reports, in bytes.
///
/// # Panics
/// If the metric is missing.
pub async fn head_bytes(world: &World) -> u64 {
    let metrics = world.control.send(http::Method::GET, "/v1/metrics", String::new()).await.text();
    let value = metrics.lines().find_map(|line| line.strip_prefix("sluicegate_header_memory_bytes "));
    value.unwrap().parse().unwrap()
}

fn rss_kib(world: &World) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", world.proxy_pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
