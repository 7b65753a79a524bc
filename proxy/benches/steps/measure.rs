//! Measures a step in batches, and prints a row of a table for it.
//!
//! A batch repeats the step often enough for the clock. The least time of all batches is what the step costs; the median
//! tells how far other work on the machine disturbed the measurement.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// Least time of a batch. The batches that find its size warm up caches and branch predictors.
const MIN_BATCH_TIME: Duration = Duration::from_millis(20);
const BATCHES: usize = 50;

/// Amount that a step handles, from which its throughput follows.
#[derive(Clone, Copy)]
pub(crate) enum Amount {
    Bytes(usize),
    Items(u32),
}

/// Prints the head of the table.
pub(crate) fn print_head() {
    println!("{:<64}{:>12}{:>12}{:>18}", "step", "least", "median", "throughput");
}

/// Measures `step` on this thread.
pub(crate) fn measure<T>(name: &str, amount: Amount, mut step: impl FnMut() -> T) {
    measure_batches(name, amount, |iterations| {
        let began = Instant::now();
        for _ in 0..iterations {
            black_box(step());
        }
        began.elapsed()
    });
}

/// Measures `batch`, which takes a step as often as it is told, and returns the time of all together.
pub(crate) fn measure_batches(name: &str, amount: Amount, mut batch: impl FnMut(u32) -> Duration) {
    let iterations = iterations_of(&mut batch);
    let mut times: Vec<_> =
        (0..BATCHES).map(|_| batch(iterations).as_secs_f64() / f64::from(iterations)).collect();
    times.sort_by(f64::total_cmp);
    let (least, median) = (times[0], times[BATCHES / 2]);
    println!("{name:<64}{:>9.1} ns{:>9.1} ns{:>18}", least * 1e9, median * 1e9, throughput(amount, median));
}

/// Returns the number of steps that fill a batch.
fn iterations_of(batch: &mut impl FnMut(u32) -> Duration) -> u32 {
    let mut iterations = 1;
    while batch(iterations) < MIN_BATCH_TIME && iterations < u32::MAX / 2 {
        iterations *= 2;
    }
    iterations
}

fn throughput(amount: Amount, seconds: f64) -> String {
    match amount {
        Amount::Bytes(bytes) => format!("{:.1} MB/s", bytes as f64 / seconds / 1e6),
        Amount::Items(items) => format!("{:.1} k/s", f64::from(items) / seconds / 1e3),
    }
}
