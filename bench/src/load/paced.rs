//! Generates paced load: requests that are due at fixed times, whether or not the earlier ones are answered.

use std::{
    io,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use tokio::sync::mpsc::{self, Receiver, Sender};

use super::{Connection, Round, Target};
use crate::{measure::clock, spawn_result};

/// Sends `request` `per_second` times a second for `span`, over the connections in turn. A connection that is still
/// busy when its request is due sends late, and the lateness counts as latency.
///
/// # Errors
/// The first failure of any connection.
pub async fn paced(
    target: &Target,
    request: Arc<[u8]>,
    (connections, per_second): (u32, u32),
    span: Duration,
) -> io::Result<Round> {
    let gap = Duration::from_secs(1) / per_second.max(1);
    // The queue has space for all due times: the pacer must not wait for a connection.
    let capacity = usize::try_from(span.as_nanos() / gap.as_nanos().max(1)).unwrap_or(usize::MAX >> 4) + 1;
    let (mut running, mut dues) = (Vec::new(), Vec::new());
    for _ in 0..connections {
        let connection = Connection::open(target).await?;
        let (due, queue) = mpsc::channel(capacity);
        dues.push(due);
        running.push(spawn_result(send_when_due(connection, Arc::clone(&request), queue)));
    }
    let began = clock::nanos();
    let pacer = thread::spawn(move || pace(&dues, gap, span));
    let mut all = Round::of_all(running).await?;
    all.elapsed_ns = clock::nanos() - began;
    pacer.join().map_err(|_panicked| io::Error::other("the pacer panicked"))?;
    Ok(all)
}

/// Sends each connection in turn the due time of its next request. Runs in its own thread, because a runtime's
/// timer has a resolution of milliseconds.
fn pace(dues: &[Sender<u64>], gap: Duration, span: Duration) {
    let (start, start_ns) = (Instant::now(), clock::nanos());
    let mut due = Duration::ZERO;
    for connection in dues.iter().cycle() {
        if due >= span {
            return;
        }
        thread::sleep(due.saturating_sub(start.elapsed()));
        let due_ns = start_ns + u64::try_from(due.as_nanos()).unwrap_or(u64::MAX);
        if connection.try_send(due_ns).is_err() {
            return; // the connection has failed, and its task returns the error
        }
        due += gap;
    }
}

async fn send_when_due(
    mut connection: Connection,
    request: Arc<[u8]>,
    mut queue: Receiver<u64>,
) -> io::Result<Round> {
    let mut round = Round::default();
    while let Some(due_ns) = queue.recv().await {
        let received = connection.exchange(&request).await?;
        round.requests += 1;
        round.latency.push(received.last_byte_ns.saturating_sub(due_ns));
        round.first_byte.push(received.first_byte_ns.saturating_sub(due_ns));
        round.event_delay.extend(received.event_delay);
    }
    Ok(round)
}
