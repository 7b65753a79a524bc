//! Writes the journal: one line per call, appended before the call's last bytes leave.
//!
//! The journal is NDJSON in files in its own directory. Lines are sequenced and hash-chained over all files: each
//! line holds the SHA-256 of the one before it. [`platform_core::record`] defines the fields of a line.
//!
//! A call takes a [`SpaceReservation`] before it is admitted, and marks itself before its first byte goes upstream. It
//! then appends its record, after which the mark means nothing. A proxy that is killed in between leaves the mark, and
//! the next one writes the record. Each data-plane thread writes through its own [`Committer`], once per turn of its
//! event loop; only the chain is shared. [`Maintenance`] does all other work.

mod ahead;
mod appended;
mod attempt_usage;
mod checkpoint;
mod committer;
mod consumers;
mod corrections;
mod demand;
mod end;
mod error;
mod follow;
mod gaps;
mod in_flight;
mod line_ends;
mod lines;
mod maintenance;
mod recovery;
mod refusals;
mod retention;
mod segments;
mod slot_set;
mod space;
mod sync;
mod tail;
#[cfg(test)]
pub(crate) mod tests;
mod turn;

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Instant, SystemTime},
};

use crossbeam_utils::CachePadded;
use platform_core::{
    control::JournalState,
    id::RunId,
    record::{ExchangeRecord, Lost},
};
use platform_runtime::{
    report,
    settings::{self, Durability},
    socket,
    sync::Mutex,
};

pub(crate) use self::error::Error;
use self::{
    ahead::Allocation,
    appended::LastLine,
    checkpoint::{Checkpoint, LineTotals},
    consumers::Consumers,
    gaps::Gaps,
    in_flight::InFlightLog,
    refusals::{Flush, RefusalAggregator},
    space::{Space, SpacePool},
    sync::SyncThread,
    tail::{Appended, Tail},
};
pub(crate) use self::{
    checkpoint::UsageTotals, committer::Committer, consumers::AcknowledgeError, corrections::Corrected,
    follow::Follower, maintenance::Maintenance, space::SpaceReservation, turn::Durable,
};
use crate::{clock, output_rates::OutputRates};

/// Journal of one proxy. Shared by all its threads.
#[derive(Debug)]
pub(crate) struct Journal {
    id: String,
    dir: PathBuf,
    settings: settings::Journal,
    /// Padded, as [`Journal::sent`] is: threads read the other fields for every call.
    tail: CachePadded<Mutex<Tail>>,
    /// Marks of all threads, for maintenance.
    marks: Mutex<Vec<Arc<InFlightLog>>>,
    /// Sums over the lines of all threads, since they were last taken.
    totals: Mutex<Vec<Arc<Mutex<LineTotals>>>>,
    space: Arc<Space>,
    allocation: Mutex<Allocation>,
    /// Space for lines that no thread of the data plane writes.
    own_space: Arc<SpacePool>,
    refusals: RefusalAggregator,
    /// Bytes of records of calls that were sent, since maintenance last took them.
    sent: CachePadded<AtomicU64>,
    consumers: Consumers,
    /// Syncing thread, at durability `disk` only.
    sync: Option<SyncThread>,
    /// True once a write has failed.
    stopped: Arc<AtomicBool>,
    /// Bytes of all segments at the last check.
    size: AtomicU64,
    /// True if they exceed the budget.
    is_over_budget: AtomicBool,
    /// True if they exceed it by so much that no call is admitted.
    is_closed: AtomicBool,
    /// Last line, for followers.
    last: Arc<LastLine>,
    /// Lines that were missing when the journal was opened.
    gaps: Gaps,
    /// Rates of models, which checkpoints keep.
    output_rates: Arc<OutputRates>,
    /// Usage up to some line; the tail counts the later lines.
    checkpoint: Mutex<Option<Checkpoint>>,
    /// Lock that is held so that no other proxy writes here.
    _lock: File,
}

impl Journal {
    /// Opens the journal in `state_dir`, or begins one. An unfinished last line, left by a crash in mid-write, is cut
    /// off: its call was never released to its client. Calls that were in flight then get their record now.
    ///
    /// # Errors
    /// If the directory cannot be used, or holds something that is not a journal.
    pub(crate) fn open(state_dir: &Path, settings: settings::Journal) -> Result<Self, Error> {
        let dir = state_dir.join("journal");
        socket::private_dir(&dir, 0o700)?;
        let lock = segments::lock(&dir)?;
        let id = segments::journal_id(&dir)?;
        let expected = checkpoint::expected(&dir, &id)?;
        ahead::clean_up(&dir)?;
        let end = end::open_at_end(&dir, expected.as_ref())?;
        let unsent = expected.as_ref().map_or(0, |expected| expected.unsent);
        let gaps = Gaps::find(&dir, expected.map_or(0, |expected| expected.oldest))?;
        let space = Arc::new(Space::default());
        let mut tail = Tail::new(dir.clone(), end, settings.segment_size.0, Arc::clone(&space));
        tail.report_lost(gaps.all());
        let stopped = Arc::new(AtomicBool::new(false));
        let sync = (settings.durability == Durability::Disk)
            .then(|| SyncThread::start(Arc::clone(&stopped)))
            .transpose()
            .map_err(Error::io("sync", &dir))?;
        let journal = Self {
            id,
            refusals: RefusalAggregator::new(&settings, unsent),
            sent: AtomicU64::new(0).into(),
            settings,
            marks: Mutex::default(),
            totals: Mutex::default(),
            own_space: Arc::new(SpacePool::new(Arc::clone(&space))),
            space,
            consumers: Consumers::open(state_dir.join("consumers"))?,
            sync,
            stopped,
            allocation: Mutex::default(),
            size: AtomicU64::new(0),
            is_over_budget: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            last: LastLine::new(tail.seq()),
            tail: Mutex::new(tail).into(),
            dir,
            gaps,
            output_rates: Arc::default(),
            checkpoint: Mutex::default(),
            _lock: lock,
        };
        recovery::recover(&journal)?;
        Ok(journal)
    }

    /// Returns the id of this journal: sequence numbers only compare within one.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the sequence number of the last line.
    pub(crate) fn last_seq(&self) -> u64 {
        self.last.seq()
    }

    /// Returns the rates of models: those that earlier proxies have learned, once [`Journal::usage_totals`] has read them.
    pub(crate) const fn output_rates(&self) -> &Arc<OutputRates> {
        &self.output_rates
    }

    /// Returns the lines that were missing when the journal was opened, although they were never removed.
    pub(crate) fn lost(&self) -> &[Lost] {
        self.gaps.all()
    }

    /// Returns the bytes of all its files, as of the last second.
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    /// Returns whether calls are admitted, and if not, why.
    pub(crate) fn state(&self) -> JournalState {
        if self.stopped.load(Ordering::Relaxed) {
            JournalState::Stopped
        } else if self.is_closed.load(Ordering::Relaxed) {
            JournalState::Closed
        } else if self.space.is_full() {
            JournalState::Full
        } else if self.marks.lock().iter().any(|log| log.is_failing()) {
            JournalState::Unmarked
        } else if self.is_over_budget.load(Ordering::Relaxed) {
            JournalState::OverBudget
        } else {
            JournalState::Open
        }
    }

    /// Opens the file of marks of data-plane thread `index`.
    fn open_marks(&self, index: usize) -> Result<Arc<InFlightLog>, Error> {
        let (marks, _) = InFlightLog::open(&in_flight::path(&self.dir, index))?;
        let marks = Arc::new(marks);
        self.marks.lock().push(Arc::clone(&marks));
        Ok(marks)
    }

    /// Clears all marks of calls that have their record.
    fn clear_stale_marks(&self) {
        let logs = self.marks.lock().clone();
        logs.iter().for_each(|log| log.clear_stale());
    }

    /// Tries to write marks again where that has failed.
    fn retry_marks(&self) {
        let logs = self.marks.lock().clone();
        logs.iter().for_each(|log| log.retry());
    }

    /// Clears them on the disk, too: without its record a mark would be taken for that of a call that was interrupted.
    fn sync_cleared_marks(&self) -> Result<(), Error> {
        self.clear_stale_marks();
        let logs = self.marks.lock().clone();
        logs.iter().try_for_each(|log| log.file().sync_data().map_err(Error::io("sync", log.path())))
    }

    /// Adds the sums of one more thread.
    fn add_totals(&self) -> Arc<Mutex<LineTotals>> {
        let totals = Arc::default();
        self.totals.lock().push(Arc::clone(&totals));
        totals
    }

    /// Returns whether new calls may be admitted.
    fn is_admitting(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed) && !self.is_closed.load(Ordering::Relaxed)
    }

    /// Reserves space for a line in `pool`. `None`: the space is used up, or writing has stopped.
    fn reserve_from(&self, pool: &Arc<SpacePool>) -> Option<SpaceReservation> {
        if !self.is_admitting() {
            return None;
        }
        // The reservation is held while more space is allocated.
        let unbacked = match pool.reserve() {
            Ok(reservation) => return Some(reservation),
            Err(unbacked) => unbacked,
        };
        match self.allocate_now() {
            Ok(()) => Some(unbacked.into_backed()),
            Err(error) => {
                tracing::debug!(error = report::chain(&error), "no space for records");
                None
            }
        }
    }

    /// Appends `record`; when this returns, it has been handed to the kernel. Returns the length of its line.
    ///
    /// # Errors
    /// If it could not be written whole. The journal then stops for good: calls are refused, not forgotten.
    fn write(&self, record: &ExchangeRecord) -> Result<u64, Error> {
        Ok(self.append(|tail| tail.append(record))?.bytes)
    }

    /// Appends what `append` writes to the tail.
    ///
    /// # Errors
    /// As [`Journal::write`].
    fn append(&self, append: impl FnOnce(&mut Tail) -> io::Result<Appended>) -> Result<Appended, Error> {
        let mut tail = self.tail();
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        let before = self.sync.as_ref().map(|_| Arc::clone(tail.file()));
        let appended = append(&mut tail).map_err(|source| {
            self.stopped.store(true, Ordering::Relaxed);
            Error::io("append to", &tail.segment().0.path)(source)
        })?;
        // Syncs the old file too, so that no line in the new file is durable before those in the old one.
        if let (Some(sync), Some(before)) = (&self.sync, before)
            && !Arc::ptr_eq(&before, tail.file())
        {
            sync.note_rotation(&before, &self.dir);
        }
        drop(tail);
        self.last.advance(appended.seq);
        Ok(appended)
    }

    /// Writes the sums of refused calls of the run `run_id`, which ends.
    pub(crate) fn flush_run(&self, run_id: &RunId) {
        self.flush_refusals(Flush::Run(run_id));
    }

    /// Writes the sums of refused calls; sums without space stay counted.
    fn flush_refusals(&self, flush: Flush<'_>) {
        let now = clock::uptime(Instant::now());
        self.refusals.give_back(self.sent.swap(0, Ordering::Relaxed), now);
        for record in self.refusals.take(flush, now) {
            let Some(_space) = self.reserve_from(&self.own_space) else {
                self.refusals.count(&record, now);
                continue;
            };
            match self.write(&record) {
                Ok(bytes) => self.refusals.note_written(&record.run_id, bytes),
                Err(error) => tracing::error!(
                    calls = record.calls,
                    error = report::chain(&error),
                    "sums of refused calls not written to the journal"
                ),
            }
        }
    }

    /// Lets the next line begin a new segment if the last segment is too old at `now`.
    fn end_old_segment(&self, now: SystemTime) -> Result<(), Error> {
        let mut tail = self.tail();
        let began = match tail.began() {
            Some(began) => began,
            None => segments::began(&tail.segment().0.path)?,
        };
        if now.duration_since(began).unwrap_or_default() >= self.settings.segment_age.duration() {
            tail.end_segment();
        }
        Ok(())
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock()
    }
}
