//! One peer under one workload: medians over interleaved rounds.

use serde::Serialize;

use crate::{load::percentile, workload::Sample};

/// All rounds of one peer under one workload.
#[derive(Debug, Default)]
pub struct Samples(pub Vec<Sample>);

/// What is reported. Medians over rounds; `spread` is the widest round's distance from the median CPU time,
/// or from the median throughput where there is no process to count, in percent.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The peer.
    pub peer: &'static str,
    /// The workload.
    pub workload: &'static str,
    /// CPU time of the peer per request; for streams per stream.
    pub cpu_us_per_request: f64,
    /// Requests a second.
    pub rps: f64,
    /// Median latency.
    pub p50_us: f64,
    /// 99th percentile of latency.
    pub p99_us: f64,
    /// Median time to the first byte.
    pub ttfb_us: f64,
    /// Median time of an event on its way; absent where nothing is streamed.
    pub event_delay_us: Option<f64>,
    /// Memory of the peer at the end of a round.
    pub rss_mib: f64,
    /// How many rounds.
    pub rounds: usize,
    /// See above.
    pub spread: f64,
}

impl Samples {
    /// The row of these samples.
    #[must_use]
    pub fn row(&mut self, peer: &'static str, workload: &'static str) -> Row {
        let micro = |nanos: u64| nanos as f64 / 1e3;
        let per_request = |sample: &Sample| micro(sample.cpu_ns) / sample.round.requests.max(1) as f64;
        let rate =
            |sample: &Sample| sample.round.requests as f64 / (sample.round.elapsed_ns.max(1) as f64 / 1e9);
        let cpu: Vec<f64> = self.0.iter().map(per_request).collect();
        let rps: Vec<f64> = self.0.iter().map(rate).collect();
        let mut of_rounds =
            |value: &dyn Fn(&mut Sample) -> u64| micro_median(self.0.iter_mut().map(value).collect());
        let p50_us = of_rounds(&|sample| percentile(&mut sample.round.latency, 50));
        let p99_us = of_rounds(&|sample| percentile(&mut sample.round.latency, 99));
        let ttfb_us = of_rounds(&|sample| percentile(&mut sample.round.first_byte, 50));
        let event_delay = of_rounds(&|sample| percentile(&mut sample.round.event_delay, 50));
        let rss = of_rounds(&|sample| sample.rss) * 1e3;
        let steady = if median(cpu.clone()) > 0.0 { &cpu } else { &rps };
        Row {
            peer,
            workload,
            spread: spread(steady),
            cpu_us_per_request: median(cpu),
            rps: median(rps),
            p50_us,
            p99_us,
            ttfb_us,
            event_delay_us: Some(event_delay).filter(|delay| *delay > 0.0),
            rss_mib: rss / f64::from(1 << 20),
            rounds: self.0.len(),
        }
    }
}

fn micro_median(nanos: Vec<u64>) -> f64 {
    median(nanos.into_iter().map(|nanos| nanos as f64 / 1e3).collect())
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
