//! Generates load: connections that send prepared requests and measure the answers.
//!
//! In *closed* load, each connection sends its next request after the last answer. This measures throughput and CPU
//! time, and its latencies are service times. In *paced* load, each request has a due time, whether or not the one
//! before is answered. Latency counts from the due time, so that a stalled peer cannot hide the requests it delayed
//! (coordinated omission).

mod closed;
mod connection;
mod paced;
mod spinner;
mod streams;

use std::{io, net::SocketAddr, path::PathBuf};

use tokio::task::JoinHandle;

pub use self::{
    closed::{Client, closed},
    connection::{Connection, Received},
    paced::paced,
    spinner::Spinner,
    streams::streams,
};

/// Destination of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An address.
    Tcp(SocketAddr),
    /// A unix socket.
    Unix(PathBuf),
}

/// Results of a round of load. Times in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Round {
    /// Requests answered.
    pub requests: u64,
    /// Duration of the round.
    pub elapsed_ns: u64,
    /// Time from sending, or from the due time, to the last byte of the answer; per request.
    pub latency: Vec<u64>,
    /// Time to the first byte of the answer; per request.
    pub first_byte: Vec<u64>,
    /// Time from an event's writing at the upstream to its arrival here; per event.
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

    /// Adds the results of other clients that ran at the same time.
    pub fn absorb(&mut self, other: Self) {
        self.requests += other.requests;
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        self.latency.extend(other.latency);
        self.first_byte.extend(other.first_byte);
        self.event_delay.extend(other.event_delay);
    }
}

/// Returns the value below which `per_mille` thousandths of `values` lie; 0 if there are none.
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
