//! Reports the progress of a run's calls to the watchers of its trace. Without a watcher a step costs one relaxed
//! load; with one it is bounded. A watcher that does not keep up misses steps, gets their number, and slows nothing.

use std::sync::{
    OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use platform_core::{
    id::CallId,
    record::ExchangeRecord,
    trace::{Step, TraceEvent},
};
use tokio::sync::broadcast;

/// Most events held for a watcher that does not keep up.
const MAX_BACKLOG: usize = 256;

/// Interval between two reports of a growing answer, in microseconds.
const PROGRESS_INTERVAL_US: u64 = 250_000;

/// Sender of a run's trace.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    watchers: AtomicUsize,
    /// Created for the first watcher: most runs never have one.
    events: OnceLock<broadcast::Sender<TraceEvent>>,
}

/// Reported progress of one call's answer.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pieces: u64,
    reported_us: u64,
}

/// Answer of a call as far as it was forwarded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerSoFar {
    bytes: u64,
    is_stream: bool,
}

impl AnswerSoFar {
    /// Returns the answer that `record` counts.
    pub(crate) const fn of(record: &ExchangeRecord) -> Self {
        Self { bytes: record.response_bytes, is_stream: record.stream }
    }
}

impl Trace {
    /// Returns whether the trace has watchers.
    pub(crate) fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::Relaxed) > 0
    }

    /// Adds a watcher, which sees what happens from now on. [`Trace::remove_watcher`] follows.
    pub(crate) fn add_watcher(&self) -> broadcast::Receiver<TraceEvent> {
        let events = self.events.get_or_init(|| broadcast::Sender::new(MAX_BACKLOG)).subscribe();
        self.watchers.fetch_add(1, Ordering::Relaxed);
        events
    }

    /// Removes a watcher.
    pub(crate) fn remove_watcher(&self) {
        self.watchers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Reports that `call` reached `step`, `at_us` microseconds after its beginning.
    pub(crate) fn report(&self, call: CallId, at_us: u64, step: Step) {
        if let Some(events) = self.events.get() {
            // The last watcher may just have left.
            drop(events.send(TraceEvent::Step { call, at_us, step }));
        }
    }
}

impl Progress {
    /// Counts another piece, forwarded `at_us`. Returns the step to report now, if one is due, with the `answer` so
    /// far.
    pub(crate) fn forwarded(&mut self, at_us: u64, answer: AnswerSoFar) -> Option<Step> {
        self.pieces += 1;
        let step = match self.pieces {
            1 if answer.is_stream => Step::FirstEvent,
            _ if at_us < self.reported_us + PROGRESS_INTERVAL_US => return None,
            pieces => Step::Progress { bytes: answer.bytes, pieces },
        };
        self.reported_us = at_us;
        Some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_reports_its_first_piece_and_progress() {
        let mut progress = Progress::default();
        let stream = |n| AnswerSoFar { bytes: n * 100, is_stream: true };
        let at_us = |n| n * PROGRESS_INTERVAL_US / 4;
        let reported: Vec<_> = (1..=10).map(|n| progress.forwarded(at_us(n), stream(n))).collect();
        let progress = |pieces| Some(Step::Progress { bytes: pieces * 100, pieces });
        let mut expected = vec![None; 10];
        (expected[0], expected[4], expected[8]) = (Some(Step::FirstEvent), progress(5), progress(9));
        assert_eq!(reported, expected);
    }

    #[test]
    fn an_answer_in_one_piece_reports_no_progress() {
        assert_eq!(Progress::default().forwarded(1000, AnswerSoFar { bytes: 100, is_stream: false }), None);
    }
}
