//! Measures steps in which threads share something, on one thread and on more, up to one per core.
//!
//! Each figure is the time of one step on one thread, while all other threads do the same. What grows from one thread to
//! two is the wait for each other.

use std::{
    hint::black_box,
    iter,
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use platform_core::{
    budget::{Budget, Price},
    money::NanoDollars,
    record::{ExchangeRecord, JournalLine},
};
use proxy::fuzzing::{CallSize, Records, RunLimits};

use crate::measure::{Amount, measure_batches};

/// Amount that no measurement uses up, so that every limit is kept and none refuses a call.
const PLENTY: u64 = 1 << 50;

const BUDGET: Budget = Budget {
    requests: Some(PLENTY),
    requests_per_minute: Some(PLENTY),
    calls_in_flight: Some(PLENTY),
    input_tokens: Some(PLENTY),
    output_tokens: Some(PLENTY),
    total_tokens: Some(PLENTY),
    cost_nanodollars: Some(NanoDollars(PLENTY)),
};

/// Steps of a call that write to the journal.
#[derive(Clone, Copy)]
enum JournalStep {
    Mark,
    Append,
}

/// Runs of the threads, and the accounts that pay for them.
#[derive(Clone, Copy)]
enum Accounts {
    Own,
    Shared,
}

/// Measures the mark and the line of a call, each in its own turn. Threads share the journal and its chain.
pub(crate) fn journal() {
    let line: JournalLine =
        serde_json::from_str(include_str!("../../tests/golden/journal-line.json")).unwrap();
    let record = line.record;
    for (name, step) in [("journal: mark", JournalStep::Mark), ("journal: append", JournalStep::Append)] {
        by_threads(name, |threads| {
            let dir = tempfile::tempdir().unwrap();
            let writers = Records::open(dir.path(), threads).unwrap();
            let record = &record;
            move |iterations| {
                let _kept_until_the_end = &dir;
                on_threads(&writers, |writer| (0..iterations).map(|_| journaled(writer, record, step)).sum())
            }
        });
    }
}

/// Journals a call, and returns the time that `step` of it took.
fn journaled(writer: &Records, record: &ExchangeRecord, step: JournalStep) -> Duration {
    let began = Instant::now();
    let call = writer.mark(black_box(record)).unwrap().expect("there is space for the record");
    let marked = began.elapsed();
    let record = record.clone();
    let began = Instant::now();
    writer.append(black_box(record), call);
    match step {
        JournalStep::Mark => marked,
        JournalStep::Append => began.elapsed(),
    }
}

/// Measures the reservation and settlement of a call. Each thread has its own run, as in the proxy.
pub(crate) fn budget() {
    let size = CallSize { input: 1000, output: 500, answers: 1 };
    let price = Price { input: NanoDollars(250), output: NanoDollars(1000), ..Price::default() };
    for (name, accounts) in [
        ("budget: reserve, settle, accounts of their own", Accounts::Own),
        ("budget: reserve, settle, one account", Accounts::Shared),
    ] {
        by_threads(name, |threads| {
            let runs = runs(threads, accounts);
            move |iterations| {
                on_threads(&runs, |run| {
                    let began = Instant::now();
                    (0..iterations).for_each(|_| assert!(run.call(black_box(size), price).is_some()));
                    began.elapsed()
                })
            }
        });
    }
}

fn runs(threads: usize, accounts: Accounts) -> Vec<RunLimits> {
    let first = RunLimits::new(&BUDGET);
    let next = |_| match accounts {
        Accounts::Own => RunLimits::new(&BUDGET),
        Accounts::Shared => first.another_run(&BUDGET),
    };
    (0..threads).map(next).collect()
}

/// Measures what `setup` returns for each number of threads.
fn by_threads<M: FnMut(u32) -> Duration>(name: &str, setup: impl Fn(usize) -> M) {
    for threads in thread_counts() {
        let unit = if threads == 1 { "thread" } else { "threads" };
        measure_batches(&format!("{name}, {threads} {unit}"), Amount::Items(1), setup(threads));
    }
}

/// Returns the powers of two below the number of cores, and that number.
fn thread_counts() -> impl Iterator<Item = usize> {
    let cores = thread::available_parallelism().unwrap().get();
    iter::successors(Some(1), |count| Some(count * 2)).take_while(move |count| *count < cores).chain([cores])
}

/// Runs `work` for each subject on its own thread, all at the same time. Returns the mean of their times.
fn on_threads<S: Sync>(subjects: &[S], work: impl Fn(&S) -> Duration + Sync) -> Duration {
    let start = Barrier::new(subjects.len());
    let timed = |subject| {
        start.wait();
        work(subject)
    };
    let total: Duration = thread::scope(|scope| {
        let threads: Vec<_> = subjects.iter().map(|subject| scope.spawn(|| timed(subject))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    total / u32::try_from(subjects.len()).unwrap()
}
