//! Selects the headline figures of a run, for plot and README.

use super::Row;

/// A question, the workload that answers it, and the figure.
pub(super) struct Headline {
    pub(super) title: &'static str,
    pub(super) workload: &'static str,
    pub(super) value: fn(&Row) -> Option<f64>,
}

impl Headline {
    /// Returns every peer's figure, in the order of `rows`.
    pub(super) fn figures<'r>(
        &self,
        rows: &'r [Row],
    ) -> impl Iterator<Item = (&'static str, f64)> + use<'r, '_> {
        let of_workload = rows.iter().filter(|row| row.workload == self.workload);
        of_workload.filter_map(|row| Some((row.peer, (self.value)(row).filter(|value| *value > 0.0)?)))
    }
}

pub(super) const ALL: [Headline; 6] = [
    Headline {
        title: "CPU µs per 1 KB request",
        workload: "small-32",
        value: |row| Some(row.cpu_us_per_request),
    },
    Headline {
        title: "CPU µs per 164 KB request, 64 events",
        workload: "big-stream",
        value: |row| Some(row.cpu_us_per_request),
    },
    Headline {
        title: "CPU µs per streamed event",
        workload: "paced-1000",
        value: |row| row.cpu_us_per_event,
    },
    Headline { title: "p50 µs, one connection", workload: "small-1", value: |row| Some(row.p50_us) },
    Headline { title: "p99 µs at 2,000 requests/s", workload: "rate-2000", value: |row| Some(row.p99_us) },
    Headline {
        title: "peak MiB, 64 × 1 MiB in flight",
        workload: "in-flight-64",
        value: |row| Some(row.peak_mib),
    },
];
