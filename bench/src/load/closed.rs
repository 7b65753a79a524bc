//! Generates closed load: one request at a time on each connection, each after the last answer.

use std::{io, sync::Arc, time::Duration};

use super::{Connection, Round, Target};
use crate::{measure::clock, spawn_result};

/// A connection's destination and request.
#[derive(Debug, Clone)]
pub struct Client {
    /// Destination.
    pub target: Target,
    /// Request that is sent again and again.
    pub request: Arc<[u8]>,
}

impl Client {
    /// Returns `count` clients of `target` that send the same request.
    #[must_use]
    pub fn many(target: &Target, request: &Arc<[u8]>, count: usize) -> Vec<Self> {
        vec![Self { target: target.clone(), request: Arc::clone(request) }; count]
    }
}

/// Opens a connection for each client, and sends its request again and again for `span`.
///
/// # Errors
/// The first failure of any connection.
pub async fn closed(clients: Vec<Client>, span: Duration) -> io::Result<Round> {
    let mut running = Vec::new();
    for Client { target, request } in clients {
        let mut connection = Connection::open(&target).await?;
        running.push(spawn_result(async move {
            let mut round = Round::default();
            let began = clock::nanos();
            let until = began + u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
            while clock::nanos() < until {
                let sent = clock::nanos();
                let received = connection.exchange(&request).await?;
                round.requests += 1;
                round.latency.push(received.last_byte_ns - sent);
                round.first_byte.push(received.first_byte_ns - sent);
                round.event_delay.extend(received.event_delay);
            }
            round.elapsed_ns = clock::nanos() - began;
            Ok(round)
        }));
    }
    Round::of_all(running).await
}
