//! Counts how long the store takes to answer, how often it was asked again, and what failed.

use std::time::Duration;

use platform_runtime::metrics::{Bound, Cells, Distribution, Histograms};

use super::{Error, ErrorClass};

/// Bounds of the histogram, from a row that is in memory to a lock that is waited for to the last.
const DURATION_BOUNDS: [Bound; 13] = [
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (1_000_000, "1"),
    (2_500_000, "2.5"),
    (10_000_000, "10"),
    (60_000_000, "60"),
];

/// The counters.
#[derive(Debug)]
pub(super) struct Meter {
    durations: Histograms,
    retries: Cells,
    /// Failures, by class.
    errors: Cells,
}

/// Values of the counters up to now.
#[derive(Debug)]
pub struct StoreMetrics {
    /// Time from a request to its answer, retries included.
    pub durations: Distribution,
    /// Tries after the first one.
    pub retries: u64,
    /// Requests that failed in the end, by class.
    pub errors: [(ErrorClass, u64); ErrorClass::ALL.len()],
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            durations: Histograms::new(1, &DURATION_BOUNDS),
            retries: Cells::new(1),
            errors: Cells::new(ErrorClass::ALL.len()),
        }
    }
}

impl Meter {
    /// Records a request that took `took`, and its failure, if it failed.
    pub(super) fn record(&self, took: Duration, failed: Option<&Error>) {
        self.durations.observe(0, u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        if let Some(error) = failed {
            self.errors.add(error.class() as usize, 1);
        }
    }

    /// Records a retry.
    pub(super) fn count_retry(&self) {
        self.retries.add(0, 1);
    }

    pub(super) fn read(&self) -> StoreMetrics {
        StoreMetrics {
            durations: self.durations.read(0),
            retries: self.retries.get(0),
            errors: ErrorClass::ALL.map(|class| (class, self.errors.get(class as usize))),
        }
    }
}
