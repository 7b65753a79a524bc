//! Reports the progress of a run's calls to the watchers of its trace. Without a watcher a step costs one relaxed
//! load; with one it is bounded. A watcher that does not keep up misses steps, gets their number, and slows nothing.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use platform_core::{
    id::CallId,
    trace::{Step, TraceEvent},
};
use tokio::sync::broadcast;

use crate::run::Run;

/// Most events held for a watcher that does not keep up.
const BACKLOG: usize = 256;

/// Interval between two reports of a growing answer, in microseconds.
const PROGRESS: u64 = 250_000;

/// Sender of a run's trace.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    watchers: AtomicUsize,
    /// Made for the first watcher: most runs never have one.
    events: OnceLock<broadcast::Sender<TraceEvent>>,
}

/// Watcher of a run's trace, until dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    pub(crate) events: broadcast::Receiver<TraceEvent>,
    run: Arc<Run>,
}

/// Reported progress of one call's answer.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pieces: u64,
    told_us: u64,
}

impl Trace {
    /// Returns whether the trace has watchers.
    pub(crate) fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::Relaxed) > 0
    }

    /// Reports that `call` came to `step`, at so many microseconds after its beginning.
    pub(crate) fn tell(&self, call: CallId, at_us: u64, step: Step) {
        if let Some(events) = self.events.get() {
            // The last watcher may just have left.
            drop(events.send(TraceEvent::Step { call, at_us, step }));
        }
    }
}

impl Watcher {
    /// Watches `run` from now on.
    pub(crate) fn of(run: Arc<Run>) -> Self {
        let events = run.trace.events.get_or_init(|| broadcast::Sender::new(BACKLOG)).subscribe();
        run.trace.watchers.fetch_add(1, Ordering::Relaxed);
        Self { events, run }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.run.trace.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Progress {
    /// Counts another piece that was passed on, `at_us`; returns the step to report now, with `bytes` in all.
    pub(crate) fn piece(&mut self, at_us: u64, (bytes, is_stream): (u64, bool)) -> Option<Step> {
        self.pieces += 1;
        let step = match self.pieces {
            1 if is_stream => Step::FirstEvent,
            _ if at_us < self.told_us + PROGRESS => return None,
            pieces => Step::Progress { bytes, pieces },
        };
        self.told_us = at_us;
        Some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_told_of_at_its_first_piece_and_then_now_and_then() {
        let mut progress = Progress::default();
        let told: Vec<_> = (1..=10).map(|n| progress.piece(n * PROGRESS / 4, (n * 100, true))).collect();
        let progress = |pieces| Some(Step::Progress { bytes: pieces * 100, pieces });
        let mut expected = vec![None; 10];
        (expected[0], expected[4], expected[8]) = (Some(Step::FirstEvent), progress(5), progress(9));
        assert_eq!(told, expected);
    }

    #[test]
    fn an_answer_in_one_piece_is_not_told_of_before_its_end() {
        assert_eq!(Progress::default().piece(1000, (100, false)), None);
    }
}
