//! Commits what the calls of one data-plane thread hand in, once per turn of its event loop.
//!
//! Calls hand in marks and lines and wait. The first of a turn wakes the committer's task, which the runtime polls
//! behind the tasks that are ready already. It writes the turn's marks with one write and its lines with another, and
//! then wakes the calls: requests go upstream and last bytes leave. No call relies on that order: each waits for its own
//! turn to end.
//!
//! A batch that is full is committed by the call that fills it.

use std::{
    fs::File,
    num::NonZeroU64,
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use platform_core::{record::ExchangeRecord, record_text};
use platform_runtime::{report, sync::Mutex};
use tokio::sync::Notify;

use super::{
    Error, Journal, SpaceReservation,
    checkpoint::LineTotals,
    in_flight::{InFlightLog, LogSlot, MarkBatch},
    space::SpacePool,
    sync::WrittenTurn,
    turn::{Commit, Durable, Held, Part, Turn},
};
use crate::clock;

/// Most marks and lines of a batch.
const MAX_EFFECTS: usize = 16;
/// Most bytes of the lines in a batch.
const MAX_BATCH_BYTES: usize = 64 << 10;

/// Writer of one data-plane thread's marks and lines.
#[derive(Debug)]
pub(crate) struct Committer {
    pub(super) journal: Arc<Journal>,
    marks: Arc<InFlightLog>,
    space: Arc<SpacePool>,
    /// Sums over its lines since they were last taken. Locked before the journal's tail.
    totals: Arc<Mutex<LineTotals>>,
    batch: Mutex<TurnBatch>,
    is_waiting: Notify,
}

/// Marks and lines of one turn.
#[derive(Debug, Default)]
struct TurnBatch {
    marks: MarkBatch,
    /// Fields of the lines' records, one behind the other.
    fields: Vec<u8>,
    lines: Vec<BatchedLine>,
    effects: usize,
    turn: Arc<Turn>,
}

#[derive(Debug)]
struct BatchedLine {
    /// End of its fields.
    end: usize,
    record: ExchangeRecord,
    /// Held until the line is written.
    space: SpaceReservation,
}

/// Files that a turn has written to, at durability `disk` only.
type FilesToSync = Option<Vec<Arc<File>>>;

impl Committer {
    /// Creates the writer of thread `index` of `journal`.
    ///
    /// # Errors
    /// If its file of marks cannot be opened.
    pub(crate) fn new(journal: Arc<Journal>, index: usize) -> Result<Self, Error> {
        let marks = journal.open_marks(index)?;
        let totals = journal.add_totals();
        let space = Arc::new(SpacePool::new(Arc::clone(&journal.space)));
        Ok(Self { journal, marks, space, totals, batch: Mutex::default(), is_waiting: Notify::new() })
    }

    /// Reserves space for a call's record. `None`: the space is used up, or writing has stopped; the call must not be
    /// admitted.
    pub(crate) fn reserve_space(&self) -> Option<SpaceReservation> {
        self.journal.reserve_from(&self.space)
    }

    /// Marks the call of `space`; its record would be `record` if the proxy died now. The returned future is ready when
    /// bytes of the call may go upstream.
    ///
    /// # Errors
    /// If no slot is free for the mark: then the call must not be sent.
    pub(crate) fn mark(
        &self,
        space: &mut SpaceReservation,
        record: &ExchangeRecord,
    ) -> Result<Durable, Error> {
        let mut batch = self.batch.lock();
        let marked = self.marks.mark(&mut batch.marks, self.journal.last_seq(), record);
        space.slot = Some(marked.map_err(Error::io("write", self.marks.path()))?);
        Ok(self.hand_in(&mut batch, Part::Mark, None))
    }

    /// Hands in the `record` of a call that has ended. A call without a mark was not sent: it may instead be counted,
    /// and summed up with others. The returned future is ready when the answer's last bytes may leave. `held` is
    /// dropped with it, and not before it is ready.
    pub(crate) fn append(
        &self,
        record: ExchangeRecord,
        space: Option<SpaceReservation>,
        held: impl Send + 'static,
    ) -> Durable {
        let is_sent = space.as_ref().is_some_and(|space| space.slot.is_some());
        let space = if is_sent { space } else { self.admit_unsent(&record, space) };
        let Some(space) = space else { return Durable::Now };
        let mut batch = self.batch.lock();
        record_text::write_fields(&record, &mut batch.fields);
        let end = batch.fields.len();
        batch.lines.push(BatchedLine { end, record, space });
        self.hand_in(&mut batch, Part::Line, Some(Box::new(held)))
    }

    /// Commits each turn of the event loop that calls have something to commit in. Never returns.
    pub(crate) async fn run(&self) {
        loop {
            self.is_waiting.notified().await;
            self.end_turn();
        }
    }

    /// Commits what was handed in so far.
    pub(crate) fn end_turn(&self) {
        self.commit(&mut self.batch.lock());
    }

    /// Returns the space for the line of a call that was not sent; `None` if the call is counted instead.
    fn admit_unsent(
        &self,
        record: &ExchangeRecord,
        space: Option<SpaceReservation>,
    ) -> Option<SpaceReservation> {
        let now = clock::uptime(Instant::now());
        if !self.journal.refusals.admit_or_count(record, now) {
            return None;
        }
        let space = space.or_else(|| self.reserve_space());
        if space.is_none() {
            self.journal.refusals.count(record, now);
        }
        space
    }

    /// Returns the wait for what a call has just added, of which the commit is due at the end of this turn, or now.
    fn hand_in(&self, batch: &mut TurnBatch, part: Part, held: Option<Held>) -> Durable {
        let durable = batch.turn.wait(part, held);
        batch.effects += 1;
        if batch.effects >= MAX_EFFECTS || batch.fields.len() >= MAX_BATCH_BYTES {
            self.commit(batch);
        } else if batch.effects == 1 {
            self.is_waiting.notify_one();
        }
        durable
    }

    fn commit(&self, batch: &mut TurnBatch) {
        if batch.effects == 0 {
            return;
        }
        let mut files = self.journal.sync.is_some().then(Vec::new);
        let marks = self.write_marks(batch, &mut files);
        let written = self.write_lines(batch, &mut files);
        let slots = self.finish_lines(batch, &written);
        let lines = written.map(drop);
        batch.marks.clear();
        batch.fields.clear();
        batch.effects = 0;
        let turn = std::mem::take(&mut batch.turn);
        let commit = Commit { marks, lines };
        let written = WrittenTurn { turn, commit, slots, marks: Arc::clone(&self.marks) };
        match (&self.journal.sync, files) {
            (Some(sync), Some(files)) => sync.request(files, written),
            _ => written.end(),
        }
    }

    fn write_marks(&self, batch: &TurnBatch, files: &mut FilesToSync) -> Result<(), Arc<Error>> {
        if batch.marks.is_empty() {
            return Ok(());
        }
        if let Some(files) = files {
            files.push(Arc::clone(self.marks.file()));
        }
        self.marks
            .write(&batch.marks)
            .map_err(|source| Arc::new(Error::io("write", self.marks.path())(source)))
    }

    /// Writes the lines. Returns the length of what each has besides its fields.
    fn write_lines(&self, batch: &TurnBatch, files: &mut FilesToSync) -> Result<u64, Arc<Error>> {
        let Some(count) = NonZeroU64::new(batch.lines.len() as u64) else { return Ok(0) };
        let mut start = 0;
        let fields = batch.lines.iter().map(|line| {
            let fields = &batch.fields[start..line.end];
            start = line.end;
            fields
        });
        let mut totals = self.totals.lock();
        let appended = self.journal.append(|tail| {
            let appended = tail.append_all(fields)?;
            if let Some(files) = files {
                files.push(Arc::clone(tail.file()));
            }
            Ok(appended)
        })?;
        let first = appended.seq + 1 - count.get();
        (first..).zip(&batch.lines).for_each(|(seq, line)| totals.add(seq, &line.record));
        Ok((appended.bytes - batch.fields.len() as u64) / count)
    }

    /// Counts what was written, and returns the slots of calls that have their record now. The mark of a call without a
    /// record stays for the next start.
    fn finish_lines(&self, batch: &mut TurnBatch, written: &Result<u64, Arc<Error>>) -> Vec<LogSlot> {
        let mut slots = Vec::with_capacity(batch.lines.len());
        let mut start = 0;
        let mut sent = 0;
        for BatchedLine { end, record, mut space } in batch.lines.drain(..) {
            let fields = (end - start) as u64;
            start = end;
            let slot = space.slot.take();
            match (written, slot) {
                (Ok(rest), Some(slot)) => {
                    sent += fields + rest;
                    slots.push(slot);
                }
                (Ok(rest), None) => self.journal.refusals.note_written(&record.run_id, fields + rest),
                (Err(error), _) => {
                    let error = report::chain(error);
                    tracing::error!(call = %record.litellm_call_id, error, "call not recorded in the journal");
                }
            }
        }
        self.journal.sent.fetch_add(sent, Ordering::Relaxed);
        slots
    }
}

impl Drop for Committer {
    /// Commits what the last calls of an ending thread have handed in.
    fn drop(&mut self) {
        self.end_turn();
    }
}
