//! Remembers closed runs, also across restarts, so that no attempt of a run is opened twice and exceeds its limits.

use std::{
    collections::{HashMap, VecDeque},
    io,
    path::Path,
    sync::MutexGuard,
};

use platform_core::{control::RunView, id::RunId};
use platform_runtime::sync::Mutex;

use crate::log::Log;

/// Number of runs that are remembered. The oldest are forgotten first: control never gives an id twice.
const MAX_REMEMBERED: usize = 100_000;
/// Number of runs to keep the last state of, so that a late request still gets it.
const MAX_VIEWS: usize = 1024;

/// Runs that were closed.
#[derive(Debug)]
pub(crate) struct ClosedRuns {
    closed: Mutex<Closed>,
    views: Mutex<VecDeque<RunView>>,
}

#[derive(Debug)]
struct Closed {
    log: Log,
    /// Latest attempt of each run that was closed. Earlier ones are closed, too.
    attempts: HashMap<RunId, u32>,
    /// All runs, those first that were closed first.
    order: VecDeque<RunId>,
}

/// Attempt of a run that was closed, as a line of the log has it.
struct ClosedAttempt {
    run_id: RunId,
    attempt: u32,
}

impl ClosedAttempt {
    /// Parses a line. The first attempt has no number there.
    fn parse(line: &str) -> Option<Self> {
        let (run_id, attempt) = match line.split_once(' ') {
            Some((run_id, attempt)) => (run_id, attempt.parse().ok().filter(|attempt| *attempt > 0)?),
            None => (line, 0),
        };
        Some(Self { run_id: RunId::parse(run_id).ok()?, attempt })
    }

    fn line(run_id: &RunId, attempt: u32) -> String {
        if attempt == 0 { format!("{run_id}\n") } else { format!("{run_id} {attempt}\n") }
    }
}

impl Closed {
    /// Notes that an attempt of a run is closed; returns when that became known.
    fn note(&mut self, run_id: &RunId, attempt: u32) -> Noted {
        match self.attempts.get_mut(run_id) {
            Some(known) if *known >= attempt => return Noted::Before,
            Some(known) => {
                *known = attempt;
                // A later attempt is as new as any other run.
                self.order.retain(|other| other != run_id);
            }
            None => {
                self.attempts.insert(run_id.clone(), attempt);
            }
        }
        self.order.push_back(run_id.clone());
        Noted::Now
    }

    /// Forgets the oldest runs beyond those that are remembered.
    fn forget_oldest(&mut self) {
        let surplus = self.order.len().saturating_sub(MAX_REMEMBERED);
        for run_id in self.order.drain(..surplus) {
            self.attempts.remove(&run_id);
        }
    }
}

/// Time at which an attempt was noted as closed.
#[derive(Debug, PartialEq, Eq)]
enum Noted {
    Before,
    Now,
}

impl ClosedRuns {
    /// Reads the closed runs from `file`.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub(crate) fn open(file: &Path) -> io::Result<Self> {
        let (log, text) = Log::open(file, |line| ClosedAttempt::parse(line).is_some())?;
        let mut closed = Closed { log, attempts: HashMap::new(), order: VecDeque::new() };
        for ClosedAttempt { run_id, attempt } in text.lines().filter_map(ClosedAttempt::parse) {
            closed.note(&run_id, attempt);
        }
        let has_grown = text.lines().count() > 2 * MAX_REMEMBERED;
        closed.forget_oldest();
        if has_grown {
            let Closed { log, attempts, order } = &mut closed;
            let lines = order
                .iter()
                .map(|run_id| ClosedAttempt::line(run_id, attempts.get(run_id).copied().unwrap_or_default()));
            log.compact(&lines.collect::<String>());
        }
        Ok(Self { closed: Mutex::new(closed), views: Mutex::default() })
    }

    /// Returns whether this attempt of a run was closed, or a later one.
    pub(crate) fn contains(&self, run_id: &RunId, attempt: u32) -> bool {
        self.closed().attempts.get(run_id).is_some_and(|closed| *closed >= attempt)
    }

    /// Records that an attempt of the run `run_id` is closed. The record survives if this process is killed.
    ///
    /// # Errors
    /// If the record is not stored: a restart would forget it. [`ClosedRuns::store`] tries again.
    pub(crate) fn add(&self, run_id: &RunId, attempt: u32) -> io::Result<()> {
        let mut closed = self.closed();
        if closed.note(run_id, attempt) == Noted::Before {
            return Ok(());
        }
        closed.forget_oldest();
        closed.log.append(&ClosedAttempt::line(run_id, attempt))
    }

    /// Stores the closed runs that are not stored yet.
    ///
    /// # Errors
    /// If the disk rejects it.
    pub(crate) fn store(&self) -> io::Result<()> {
        self.closed().log.store()
    }

    /// Returns whether every closed run would be closed after a restart, too.
    pub(crate) fn is_stored(&self) -> bool {
        self.closed().log.is_stored()
    }

    /// Returns the last state of a run that was closed not long ago.
    pub(crate) fn view(&self, run_id: &RunId) -> Option<RunView> {
        self.views().iter().find(|view| view.grant.run_id == *run_id).cloned()
    }

    /// Returns the epoch in which a run was closed; 0 if it is forgotten.
    pub(crate) fn epoch(&self, run_id: &RunId) -> u64 {
        self.views().iter().find(|view| view.grant.run_id == *run_id).map_or(0, |view| view.epoch)
    }

    /// Raises the epoch of a run to `epoch`, if the run is remembered.
    pub(crate) fn raise(&self, run_id: &RunId, epoch: u64) {
        if let Some(view) = self.views().iter_mut().find(|view| view.grant.run_id == *run_id) {
            view.epoch = epoch;
        }
    }

    /// Drops the last state of a run, of which a later attempt is opened.
    pub(crate) fn drop_view(&self, run_id: &RunId) {
        self.views().retain(|view| view.grant.run_id != *run_id);
    }

    /// Keeps the last state of a run; returns the run that loses its state for it.
    pub(crate) fn keep_view(&self, view: RunView) -> Option<RunId> {
        let mut views = self.views();
        views.push_front(view);
        if views.len() <= MAX_VIEWS {
            return None;
        }
        views.pop_back().map(|oldest| oldest.grant.run_id)
    }

    fn closed(&self) -> MutexGuard<'_, Closed> {
        self.closed.lock()
    }

    fn views(&self) -> MutexGuard<'_, VecDeque<RunView>> {
        self.views.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> RunId {
        RunId::parse(text).unwrap()
    }

    #[test]
    fn closed_attempts_outlive_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("closed");
        // As an earlier program wrote it.
        std::fs::write(&file, "r1\nr2\n").unwrap();
        let closed = ClosedRuns::open(&file).unwrap();
        assert!(closed.contains(&id("r1"), 0) && !closed.contains(&id("r1"), 1));
        for attempt in [2, 1, 2] {
            closed.add(&id("r1"), attempt).unwrap();
        }
        closed.add(&id("r3"), 0).unwrap();
        drop(closed);
        let again = ClosedRuns::open(&file).unwrap();
        for (run, attempt, is_closed) in [
            ("r1", 0, true),
            ("r1", 2, true),
            ("r1", 3, false),
            ("r2", 1, false),
            ("r3", 0, true),
            ("r4", 0, false),
        ] {
            assert_eq!(again.contains(&id(run), attempt), is_closed, "{run} {attempt}");
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap().trim_end_matches('\0'), "r1\nr2\nr1 2\nr3\n");
    }
}
