//! Computes a row of the report: one peer under one workload, medians over interleaved rounds.

use serde::Serialize;

use crate::{
    load::percentile,
    peer::Peer,
    workload::{Sample, Workload},
};

/// All rounds of one peer under one workload.
#[derive(Debug)]
pub struct Samples {
    /// The peer.
    pub peer: Peer,
    /// The workload.
    pub workload: Workload,
    /// Memory of the peer before any load, bytes.
    pub idle: u64,
    /// The rounds.
    pub rounds: Vec<Sample>,
}

/// Reported medians over rounds. `spread` is the largest distance of a round from the row's main median, in percent.
/// That is CPU time or, where there is no process to count, throughput.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The peer.
    pub peer: &'static str,
    /// The workload.
    pub workload: &'static str,
    /// CPU time of the peer per request; for streams per stream.
    pub cpu_us_per_request: f64,
    /// CPU time per event of a stream; absent where nothing is streamed.
    pub cpu_us_per_event: Option<f64>,
    /// Requests a second.
    pub rps: f64,
    /// Median latency.
    pub p50_us: f64,
    /// 99th percentile of latency.
    pub p99_us: f64,
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
    /// Growth of the kernel's own memory, where listeners are held.
    pub slab_mib: Option<f64>,
    /// Number of rounds.
    pub rounds: usize,
    /// Spread of the rounds, in percent; see [`Row`].
    pub spread: f64,
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
        let per = |count: fn(&Sample) -> usize| {
            move |sample: &Sample| micro(sample.cpu_ns) / count(sample).max(1) as f64
        };
        let cpu = self.each(per(|sample| usize::try_from(sample.round.requests).unwrap_or(usize::MAX)));
        let rps =
            self.each(|sample| sample.round.requests as f64 / (sample.round.elapsed_ns.max(1) as f64 / 1e9));
        let cpu_per_event = median(self.each(per(|sample| sample.round.event_delay.len())));
        let p50_us = median(self.each_mut(|sample| micro(percentile(&mut sample.round.latency, 500))));
        let p99_us = median(self.each_mut(|sample| micro(percentile(&mut sample.round.latency, 990))));
        let ttfb_us = median(self.each_mut(|sample| micro(percentile(&mut sample.round.first_byte, 500))));
        let event_delay =
            median(self.each_mut(|sample| micro(percentile(&mut sample.round.event_delay, 500))));
        let streams = self.rounds.iter().any(|sample| !sample.round.event_delay.is_empty());
        let has_process = self.rounds.iter().any(|sample| sample.cpu_ns > 0);
        Row {
            peer: self.peer.name,
            workload: self.workload.name,
            spread: spread(if has_process { &cpu } else { &rps }),
            cpu_us_per_request: median(cpu),
            cpu_us_per_event: Some(cpu_per_event).filter(|_| streams),
            rps: median(rps),
            p50_us,
            p99_us,
            ttfb_us,
            event_delay_us: Some(event_delay).filter(|_| streams),
            idle_mib: mib(self.idle),
            peak_mib: median(self.each(|sample| mib(sample.peak))),
            rss_mib: median(self.each(|sample| mib(sample.rss))),
            plateau_mib: self.rounds.last().map_or(0.0, |sample| mib(sample.rss)),
            slab_mib: Some(median(self.each(|sample| mib(sample.slab)))).filter(|slab| *slab > 0.0),
            rounds: self.rounds.len(),
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
            rss: sample.rss,
            peak: sample.peak,
            latency_ns: all(&mut sample.round.latency),
            first_byte_ns: all(&mut sample.round.first_byte),
            event_delay_ns: all(&mut sample.round.event_delay),
        };
        (1..).zip(&mut self.rounds).map(raw).collect()
    }

    fn each(&self, value: impl Fn(&Sample) -> f64) -> Vec<f64> {
        self.rounds.iter().map(value).collect()
    }

    fn each_mut(&mut self, value: impl Fn(&mut Sample) -> f64) -> Vec<f64> {
        self.rounds.iter_mut().map(value).collect()
    }
}

fn micro(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[count / 2],
        count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}

fn spread(values: &[f64]) -> f64 {
    let middle = median(values.to_vec());
    let widest = values.iter().map(|value| (value - middle).abs()).fold(0.0, f64::max);
    if middle > 0.0 { widest / middle * 100.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_spread() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(spread(&[9.0, 10.0, 12.0]), 20.0);
    }
}
