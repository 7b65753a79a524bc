//! Computes a row of the report: one peer under one workload, over interleaved rounds.

use serde::Serialize;

use super::Quartiles;
use crate::{load::percentile, session::Samples, workload::Sample};

/// Reported figures, medians over rounds unless it says otherwise. Rounds during which processor time was stolen do not
/// count, unless there are no others.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The peer.
    pub peer: &'static str,
    /// The workload.
    pub workload: &'static str,
    /// CPU time of the peer per request; for streams per stream.
    pub cpu_us_per_request: f64,
    /// Its distribution over rounds.
    pub cpu_us: Quartiles,
    /// CPU time in the peer's program per request.
    pub user_us: f64,
    /// CPU time in the kernel per request.
    pub system_us: f64,
    /// Number of times per request that a thread of the peer went to sleep.
    pub switches: f64,
    /// CPU time per event of a stream; absent where nothing is streamed.
    pub cpu_us_per_event: Option<f64>,
    /// Requests a second.
    pub rps: f64,
    /// Its distribution over rounds.
    pub requests_per_second: Quartiles,
    /// Median latency.
    pub p50_us: f64,
    /// 99th percentile of latency.
    pub p99_us: f64,
    /// Latency that one request of a thousand exceeds.
    pub p999_us: f64,
    /// Median time to the first byte.
    pub ttfb_us: f64,
    /// Median delay of an event; absent where nothing is streamed.
    pub event_delay_us: Option<f64>,
    /// Memory of the peer before any load.
    pub idle_mib: f64,
    /// Highest memory of the peer during a round.
    pub peak_mib: f64,
    /// Memory of the peer at the end of a round.
    pub rss_mib: f64,
    /// Memory of the peer at the end of the last round. If it is far above `rss_mib`, the peer leaks.
    pub plateau_mib: f64,
    /// Growth of memory by each listener or connection that is held; absent where none are.
    pub held: Option<HeldKib>,
    /// Number of rounds that count.
    pub rounds: usize,
    /// Number of rounds that do not count, because processor time was stolen during them.
    pub discarded: usize,
}

/// Memory of each listener or connection that is held.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HeldKib {
    /// Number of them.
    pub count: u64,
    /// KiB of the peer for each.
    pub peer: f64,
    /// KiB of the kernel for each, both ends.
    pub kernel: f64,
}

/// Kept form of a round.
#[derive(Debug, Serialize)]
pub struct Raw {
    peer: &'static str,
    workload: &'static str,
    round: usize,
    requests: u64,
    elapsed_ns: u64,
    cpu_ns: u64,
    user_ns: u64,
    system_ns: u64,
    switches: u64,
    stolen_ns: u64,
    rss: u64,
    peak: u64,
    /// 50th, 90th, 99th, 99.9th and 100th percentile, nanoseconds.
    latency_ns: [u64; 5],
    first_byte_ns: [u64; 5],
    event_delay_ns: [u64; 5],
}

impl Samples {
    /// Returns the row of these samples.
    #[must_use]
    pub fn row(&mut self) -> Row {
        let measured = self.rounds.len();
        let mut rounds = Rounds::that_count(&mut self.rounds);
        let cpu_us = rounds.per_request(|sample| micro(sample.cpu_ns));
        let requests_per_second = rounds
            .quartiles(|sample| sample.round.requests as f64 / (sample.round.elapsed_ns.max(1) as f64 / 1e9));
        let cpu_per_event =
            rounds.median(|sample| micro(sample.cpu_ns) / sample.round.event_delay.len().max(1) as f64);
        let event_delay = rounds.median(|sample| micro(percentile(&mut sample.round.event_delay, 500)));
        let streams = rounds.0.iter().any(|sample| !sample.round.event_delay.is_empty());
        let held = rounds.held();
        let mut latency =
            |per_mille| rounds.median(|sample| micro(percentile(&mut sample.round.latency, per_mille)));
        Row {
            peer: self.peer.name,
            workload: self.workload.name,
            p50_us: latency(500),
            p99_us: latency(990),
            p999_us: latency(999),
            cpu_us_per_request: cpu_us.median,
            cpu_us,
            user_us: rounds.per_request(|sample| micro(sample.user_ns)).median,
            system_us: rounds.per_request(|sample| micro(sample.system_ns)).median,
            switches: rounds.per_request(|sample| sample.switches as f64).median,
            cpu_us_per_event: Some(cpu_per_event).filter(|_| streams),
            rps: requests_per_second.median,
            requests_per_second,
            ttfb_us: rounds.median(|sample| micro(percentile(&mut sample.round.first_byte, 500))),
            event_delay_us: Some(event_delay).filter(|_| streams),
            idle_mib: mib(self.idle),
            peak_mib: rounds.median(|sample| mib(sample.peak)),
            rss_mib: rounds.median(|sample| mib(sample.rss)),
            plateau_mib: rounds.0.last().map_or(0.0, |sample| mib(sample.rss)),
            held,
            rounds: rounds.0.len(),
            discarded: measured - rounds.0.len(),
        }
    }

    /// Returns the rounds in their kept form.
    #[must_use]
    pub fn raw(&mut self) -> Vec<Raw> {
        let all =
            |values: &mut Vec<u64>| [500, 900, 990, 999, 1000].map(|per_mille| percentile(values, per_mille));
        let (peer, workload) = (self.peer.name, self.workload.name);
        let raw = |(round, sample): (usize, &mut Sample)| Raw {
            peer,
            workload,
            round,
            requests: sample.round.requests,
            elapsed_ns: sample.round.elapsed_ns,
            cpu_ns: sample.cpu_ns,
            user_ns: sample.user_ns,
            system_ns: sample.system_ns,
            switches: sample.switches,
            stolen_ns: sample.stolen_ns,
            rss: sample.rss,
            peak: sample.peak,
            latency_ns: all(&mut sample.round.latency),
            first_byte_ns: all(&mut sample.round.first_byte),
            event_delay_ns: all(&mut sample.round.event_delay),
        };
        (1..).zip(&mut self.rounds).map(raw).collect()
    }
}

/// Rounds that count.
struct Rounds<'s>(Vec<&'s mut Sample>);

impl<'s> Rounds<'s> {
    fn that_count(all: &'s mut [Sample]) -> Self {
        let is_clean = |sample: &Sample| sample.stolen_ns == 0;
        let any_clean = all.iter().any(is_clean);
        Self(all.iter_mut().filter(|sample| is_clean(sample) || !any_clean).collect())
    }

    fn quartiles(&mut self, value: impl Fn(&mut Sample) -> f64) -> Quartiles {
        Quartiles::of(self.0.iter_mut().map(|sample| value(sample)).collect())
    }

    fn median(&mut self, value: impl Fn(&mut Sample) -> f64) -> f64 {
        self.quartiles(value).median
    }

    fn held(&mut self) -> Option<HeldKib> {
        let count = self.0.iter().map(|sample| sample.held.count).max().filter(|count| *count > 0)?;
        let each = |bytes: u64| bytes as f64 / 1024.0 / count as f64;
        let peer = self.median(|sample| each(sample.held.rss));
        let kernel = self.median(|sample| each(sample.held.slab));
        Some(HeldKib { count, peer, kernel })
    }

    fn per_request(&mut self, value: impl Fn(&Sample) -> f64) -> Quartiles {
        self.quartiles(|sample| value(sample) / sample.round.requests.max(1) as f64)
    }
}

fn micro(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{load::Round, peer, workload};

    fn rounds(all: &[(u64, u64)]) -> Row {
        let sample = |(cpu_ns, stolen_ns): &(u64, u64)| Sample {
            cpu_ns: *cpu_ns,
            stolen_ns: *stolen_ns,
            round: Round { requests: 1, ..Round::default() },
            ..Sample::default()
        };
        let (peer, workload) = (peer::ALL[0], workload::ALL[0]);
        Samples { peer, workload, idle: 0, rounds: all.iter().map(sample).collect() }.row()
    }

    #[test]
    fn rounds_with_stolen_time_do_not_count() {
        let row = rounds(&[(9000, 1), (3000, 0), (9000, 1), (5000, 0)]);
        assert_eq!((row.rounds, row.discarded, row.cpu_us_per_request), (2, 2, 4.0));
        let row = rounds(&[(9000, 1), (7000, 1)]);
        assert_eq!((row.rounds, row.discarded, row.cpu_us_per_request), (2, 0, 8.0), "there are no others");
    }
}
