//! Paced load: requests that are due at fixed moments, whatever became of the ones before.

use std::{io, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until};

use super::{Connection, Round, Target};
use crate::{measure::clock, spawn_result};

/// Sends `request` `rate` times a second for `span`, over `connections` connections in turn. A connection that
/// is still busy when its request is due sends late, and the lateness counts as latency.
///
/// # Errors
/// The first failure of any connection.
pub async fn paced(
    target: &Target,
    request: Arc<[u8]>,
    connections: u32,
    rate: u32,
    span: Duration,
) -> io::Result<Round> {
    let gap = Duration::from_secs(1) * connections / rate.max(1);
    let mut running = Vec::new();
    for index in 0..connections {
        let mut connection = Connection::open(target).await?;
        let request = Arc::clone(&request);
        let first = gap * index / connections;
        running.push(spawn_result(async move {
            let mut round = Round::default();
            let (start, start_ns) = (Instant::now(), clock::nanos());
            let mut due = first;
            while due < span {
                sleep_until(start + due).await;
                let due_ns = start_ns + u64::try_from(due.as_nanos()).unwrap_or(u64::MAX);
                let received = connection.exchange(&request).await?;
                round.requests += 1;
                round.latency.push(received.last_byte_ns.saturating_sub(due_ns));
                round.first_byte.push(received.first_byte_ns.saturating_sub(due_ns));
                due += gap;
            }
            round.elapsed_ns = clock::nanos() - start_ns;
            Ok(round)
        }));
    }
    Round::of_all(running).await
}
