//! Measures the duration of the store's operations, and counts their retries and failures.

use std::time::Duration;

use platform_runtime::metrics::{Bound, Cells, Distribution, Histograms};

use super::{Error, ErrorClass};

/// Upper bounds of the histogram, in microseconds: from a row in memory to a lock that times out.
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

/// Counters of a store's operations.
#[derive(Debug)]
pub(super) struct Meter {
    durations: Histograms,
    retries: Cells,
    /// Failed operations, by class.
    errors: Cells,
}

/// Values of the counters at one moment.
#[derive(Debug)]
pub struct StoreMetrics {
    /// Durations of operations, including their retries.
    pub durations: Distribution,
    /// Number of retries.
    pub retries: u64,
    /// Number of operations that failed after all retries, by class.
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
    /// Records the `duration` of an operation and its failure, if there is one.
    pub(super) fn record(&self, duration: Duration, failed: Option<&Error>) {
        self.durations.observe(0, u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
        if let Some(error) = failed {
            self.errors.add(error.class() as usize, 1);
        }
    }

    /// Counts a retry.
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
