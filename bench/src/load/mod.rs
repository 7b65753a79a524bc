//! The load generator: connections that send prepared requests and measure what comes back.
//!
//! Two ways to send. *Closed*: each connection sends its next request when the last answer is there; this
//! finds throughput and CPU time, and its latencies are service times. *Paced*: requests have a moment at
//! which they are due, whether or not the one before is answered, and latency counts from that moment, so
//! that a peer which stalls cannot hide the requests it kept from being sent (coordinated omission).

mod closed;
mod connection;
mod paced;
mod streams;

use std::{io, net::SocketAddr, path::PathBuf};

use tokio::task::JoinHandle;

pub use self::{
    closed::closed,
    connection::{Connection, Received},
    paced::paced,
    streams::streams,
};

/// Where requests go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An address.
    Tcp(SocketAddr),
    /// A unix socket.
    Unix(PathBuf),
}

/// What a round of load brought to light. Times in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Round {
    /// Requests answered.
    pub requests: u64,
    /// How long the round took.
    pub elapsed_ns: u64,
    /// From sending, or from being due, to the last byte of the answer; per request.
    pub latency: Vec<u64>,
    /// To the first byte of the answer; per request.
    pub first_byte: Vec<u64>,
    /// From an event's writing at the upstream to its arrival here; per event.
    pub event_delay: Vec<u64>,
}

impl Round {
    async fn of_all(tasks: Vec<JoinHandle<io::Result<Self>>>) -> io::Result<Self> {
        let mut all = Self::default();
        for task in tasks {
            all.absorb(task.await.map_err(io::Error::other)??);
        }
        Ok(all)
    }

    fn absorb(&mut self, other: Self) {
        self.requests += other.requests;
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        self.latency.extend(other.latency);
        self.first_byte.extend(other.first_byte);
        self.event_delay.extend(other.event_delay);
    }
}

/// The value below which so many thousandths of `values` lie; 0 if there are none.
#[must_use]
pub fn percentile(values: &mut [u64], per_mille: usize) -> u64 {
    values.sort_unstable();
    let at = (values.len() * per_mille).div_ceil(1000);
    values.get(at.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let mut values: Vec<u64> = (1..=1000).rev().collect();
        let of = |per_mille| percentile(&mut values.clone(), per_mille);
        assert_eq!([of(500), of(990), of(999), of(1000)], [500, 990, 999, 1000]);
        assert_eq!(percentile(&mut values[..1], 500), 1000);
        assert_eq!(percentile(&mut [], 500), 0);
    }
}
