//! Generates many streams at once, and reads each to its end.

use std::{io, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until};

use super::{Connection, Round, Target};
use crate::{measure::clock, spawn_result};

/// Opens `count` connections, then sends `request` on each, the first and the last `stagger` apart, and reads all streams
/// to their ends.
///
/// # Errors
/// The first failure of any connection.
pub async fn streams(
    target: &Target,
    request: Arc<[u8]>,
    count: u32,
    stagger: Duration,
) -> io::Result<Round> {
    let mut connections = Vec::new();
    for _ in 0..count {
        connections.push(Connection::open(target).await?);
    }
    let began = clock::nanos();
    let mut running = Vec::new();
    let start = Instant::now();
    for (mut connection, index) in connections.into_iter().zip(0..) {
        let request = Arc::clone(&request);
        running.push(spawn_result(async move {
            sleep_until(start + stagger * index / count).await;
            let sent = clock::nanos();
            let received = connection.exchange(&request).await?;
            Ok(Round {
                requests: 1,
                elapsed_ns: 0,
                latency: vec![received.last_byte_ns - sent],
                first_byte: vec![received.first_byte_ns - sent],
                event_delay: received.event_delay,
            })
        }));
    }
    let mut all = Round::of_all(running).await?;
    all.elapsed_ns = clock::nanos() - began;
    Ok(all)
}
