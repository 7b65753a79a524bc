//! Keeps counters and histograms in fixed arrays, without a lock, a hash or an allocation per call.
//!
//! The owner of an array assigns its indexes.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters, by index.
#[derive(Debug)]
pub struct Cells(Box<[AtomicU64]>);

impl Cells {
    /// Creates `count` counters, all zero.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self((0..count).map(|_| AtomicU64::new(0)).collect())
    }

    /// Adds to the counter at `index`, at most up to `u64::MAX`: a counter that wrapped would look like one that was
    /// reset. One thread writes and others read now and then, so they do not contend.
    pub fn add(&self, index: usize, amount: u64) {
        if amount > 0 {
            let sum = |counted: u64| counted.saturating_add(amount);
            self.0[index].update(Ordering::Relaxed, Ordering::Relaxed, sum);
        }
    }

    /// Returns the counter at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> u64 {
        self.0[index].load(Ordering::Relaxed)
    }

    /// Adds the counts of another thread.
    pub fn absorb(&self, other: &Self) {
        for (index, counted) in other.0.iter().enumerate() {
            self.add(index, counted.load(Ordering::Relaxed));
        }
    }
}

/// Upper bound of a histogram's bucket: in microseconds, and as the exposition writes it in seconds.
pub type Bound = (u64, &'static str);

/// Histograms of durations, by index, all with the same buckets.
#[derive(Debug)]
pub struct Histograms {
    bounds: &'static [Bound],
    /// Cells of each histogram: one bucket per bound, one for larger durations, and the sum in microseconds.
    cells: Cells,
}

/// Snapshot of one histogram.
#[derive(Debug, PartialEq, Eq)]
pub struct Distribution {
    /// Number of durations up to each bound.
    pub buckets: Vec<(&'static str, u64)>,
    /// Number of all durations.
    pub count: u64,
    /// Sum of all durations, in microseconds.
    pub sum_us: u64,
}

impl Histograms {
    /// Creates `count` histograms, all empty.
    #[must_use]
    pub fn new(count: usize, bounds: &'static [Bound]) -> Self {
        Self { bounds, cells: Cells::new(count * (bounds.len() + 2)) }
    }

    /// Counts a duration in the histogram at `index`.
    pub fn observe(&self, index: usize, duration_us: u64) {
        let start = self.start(index);
        let bucket = self.bounds.partition_point(|(bound, _)| *bound < duration_us);
        self.cells.add(start + bucket, 1);
        self.cells.add(start + self.bounds.len() + 1, duration_us);
    }

    /// Adds the counts of another thread.
    pub fn absorb(&self, other: &Self) {
        self.cells.absorb(&other.cells);
    }

    /// Returns the histogram at `index`. Its count is the sum of its buckets, even if another thread adds meanwhile.
    #[must_use]
    pub fn read(&self, index: usize) -> Distribution {
        let start = self.start(index);
        let mut count = 0;
        let buckets = self.bounds.iter().enumerate().map(|(bucket, (_, text))| {
            count = u64::saturating_add(count, self.cells.get(start + bucket));
            (*text, count)
        });
        let buckets = buckets.collect();
        count = count.saturating_add(self.cells.get(start + self.bounds.len()));
        Distribution { buckets, count, sum_us: self.cells.get(start + self.bounds.len() + 1) }
    }

    const fn start(&self, index: usize) -> usize {
        index * (self.bounds.len() + 2)
    }
}
