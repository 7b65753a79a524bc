//! Measures the lag of a data-plane thread: a sleeper on each thread records by how much it overslept.
//!
//! A thread serves all its calls in turns, so this is the time by which any of them may be held up by the others.
//! Timers have whole milliseconds: up to two are nothing.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use platform_runtime::metrics::{Bound, Distribution, Histograms};

/// Interval between two measurements. Waking up costs some 4,000 instructions, more than all counting of a call.
const MEASUREMENT_INTERVAL: Duration = Duration::from_millis(250);
/// Number of measurements in a window, which lasts a minute.
const WINDOW_MEASUREMENTS: u32 = 240;

const BOUNDS: [Bound; 9] = [
    (2_000, "0.002"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
];

/// The lag of one thread.
#[derive(Debug)]
pub(super) struct Lag {
    all: Histograms,
    /// Largest lag of the present window and of the one before, in microseconds.
    largest: [AtomicU64; 2],
}

impl Lag {
    pub(super) fn new() -> Self {
        Self { all: Histograms::new(1, &BOUNDS), largest: [AtomicU64::new(0), AtomicU64::new(0)] }
    }

    /// Watches the thread it is polled on, for ever.
    pub(super) async fn watch(&self) {
        loop {
            for _ in 0..WINDOW_MEASUREMENTS {
                let asleep = Instant::now();
                tokio::time::sleep(MEASUREMENT_INTERVAL).await;
                self.record(asleep.elapsed().saturating_sub(MEASUREMENT_INTERVAL));
            }
            self.begin_window();
        }
    }

    pub(super) fn record(&self, lag: Duration) {
        let lag = u64::try_from(lag.as_micros()).unwrap_or(u64::MAX);
        self.all.observe(0, lag);
        self.largest[0].fetch_max(lag, Ordering::Relaxed);
    }

    /// Begins a new window.
    pub(super) fn begin_window(&self) {
        let [present, before] = &self.largest;
        before.store(present.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Distribution {
        self.all.read(0)
    }

    /// Returns the largest lag of the last one to two minutes, in microseconds.
    pub(super) fn largest(&self) -> u64 {
        self.largest.iter().map(|window| window.load(Ordering::Relaxed)).max().unwrap_or_default()
    }
}
