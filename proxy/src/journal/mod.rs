//! Writes the journal: one line per call, appended before the call's last bytes leave.
//!
//! It is NDJSON in files of a directory of its own. Lines are sequenced and hash-chained over all files: each line
//! holds the SHA-256 of the one before it. An append is a short write under a lock, made by the thread that serves the
//! call. So a call never waits for another thread. The fields of a line: [`platform_core::record`].
//!
//! A call takes a [`Room`] before it is let through, and marks itself before its first byte goes upstream. It then
//! appends its record, after which the mark means nothing. A proxy that is killed in between leaves the mark, and the
//! next one writes the record. [`Keeper`] does all other maintenance.

mod checkpoint;
mod consumers;
mod flood;
mod follow;
mod gaps;
mod keeper;
mod lines;
mod marks;
mod recovery;
mod retention;
mod segments;
mod space;
mod sync;
mod tail;
#[cfg(test)]
pub(crate) mod tests;

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Instant, SystemTime},
};

use platform_core::{
    control::JournalState,
    id::RunId,
    record::{ExchangeRecord, Lost, SCHEMA_VERSION},
};
use platform_runtime::{
    settings::{self, Durability},
    socket,
};
use tokio::sync::watch;

pub(crate) use self::{
    checkpoint::SoFar, consumers::Unacknowledged, follow::Follower, keeper::Keeper, space::Room, sync::Synced,
};
use self::{
    checkpoint::Sums,
    consumers::Consumers,
    flood::{Floods, Flush},
    gaps::Gaps,
    marks::Marks,
    space::Space,
    sync::Disk,
    tail::{Appended, Tail},
};
use crate::clock;

/// Reason why the journal cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// Operation that failed.
        action: &'static str,
        /// File or directory of the operation.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The content was not written by this program. Nothing was changed.
    #[error("{}: what is at byte {offset} is not what this program writes; restore the file, or move the directory away to start a new journal", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Position at which the line begins.
        offset: u64,
    },
    /// A line was written by a newer program. Nothing was changed.
    #[error("{}: the line at byte {offset} has schema version {version}, and this program reads up to {SCHEMA_VERSION}; start a newer one, or move the directory away to start a new journal", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Position at which the line begins.
        offset: u64,
        /// Version of the line.
        version: u32,
    },
    /// A line should be there and is not.
    #[error("line {seq} of the journal is missing: restore the file that it was in")]
    Missing {
        /// Number of the missing line.
        seq: u64,
    },
    /// A line was removed because it was old.
    #[error("these lines were removed; the oldest that is kept is {oldest}")]
    Removed {
        /// Oldest line that is kept.
        oldest: u64,
    },
    /// The cursor belongs to another journal, where its numbers mean something else.
    #[error("this is another journal: {present}")]
    Changed {
        /// Id of this journal.
        present: String,
    },
    /// Another proxy writes the journal.
    #[error("another proxy has the journal {} open: stop it, or use another proxy.state_dir", path.display())]
    InUse {
        /// Directory of the journal.
        path: PathBuf,
    },
    /// The directory cannot be reserved for this process alone.
    #[error(transparent)]
    Directory(#[from] socket::Error),
    /// An earlier write failed; nothing is appended after a gap.
    #[error("the journal stopped after a failed write")]
    Stopped,
}

impl Error {
    /// Returns why a `line`, which stands at `offset` of `path`, could not be read.
    fn unread(line: &[u8], path: &Path, offset: u64) -> Self {
        let path = path.to_owned();
        match serde_json::from_slice(line) {
            Ok(Version { v }) if v > SCHEMA_VERSION => Self::Newer { path, offset, version: v },
            _ => Self::Corrupt { path, offset },
        }
    }

    fn io<'p>(action: &'static str, path: &'p Path) -> impl FnOnce(io::Error) -> Self + use<'p> {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

/// Version of a line.
#[derive(serde::Deserialize)]
struct Version {
    v: u32,
}

/// Journal of one proxy. Shared by all its threads.
#[derive(Debug)]
pub(crate) struct Journal {
    id: String,
    dir: PathBuf,
    settings: settings::Journal,
    tail: Mutex<Tail>,
    marks: Arc<Marks>,
    space: Arc<Space>,
    floods: Floods,
    /// Bytes of records of calls that were sent, since maintenance last took them.
    sent: AtomicU64,
    consumers: Consumers,
    /// Syncing thread, at durability `disk` only.
    sync: Option<Disk>,
    /// True once a write has failed.
    stopped: Arc<AtomicBool>,
    /// Bytes of all segments at the last check.
    size: AtomicU64,
    /// True if they exceed the budget.
    is_over: AtomicBool,
    /// True if they exceed it by so much that no call is let through.
    is_shut: AtomicBool,
    /// Sequence number of the last line, for followers.
    last: watch::Sender<u64>,
    /// Lines that were missing when the journal was opened.
    gaps: Gaps,
    /// Usage up to some line; the tail counts on.
    sums: Mutex<Option<Sums>>,
    /// Lock that is held so that no other proxy writes here.
    _lock: File,
}

impl Journal {
    /// Opens the journal in `state_dir`, or begins one. An unfinished last line, left by a crash in mid-write, is cut off: its
    /// call was never released to its client. Calls that were in flight then get their record now.
    ///
    /// # Errors
    /// If the directory cannot be used, or holds something that is no journal.
    pub(crate) fn open(state_dir: &Path, settings: settings::Journal) -> Result<Self, Error> {
        let dir = state_dir.join("journal");
        socket::private_dir(&dir, 0o700)?;
        let lock = segments::lock(&dir)?;
        let id = segments::journal_id(&dir)?;
        let expected = checkpoint::expected(&dir, &id)?;
        let end = segments::open_at_end(&dir, expected.as_ref())?;
        let unsent = expected.as_ref().map_or(0, |expected| expected.unsent);
        let gaps = Gaps::find(&dir, expected.map_or(0, |expected| expected.oldest))?;
        let (marks, found) = Marks::open(&dir.join("marks"))?;
        let (marks, space) = (Arc::new(marks), Arc::new(Space::default()));
        let mut tail = Tail::new(dir.clone(), end, settings.segment_size.0, Arc::clone(&space));
        tail.tell_lost(gaps.all());
        let stopped = Arc::new(AtomicBool::new(false));
        let sync = (settings.durability == Durability::Disk)
            .then(|| Disk::start(Arc::clone(&marks), Arc::clone(&stopped)))
            .transpose()
            .map_err(Error::io("sync", &dir))?;
        let journal = Self {
            id,
            floods: Floods::new(&settings, unsent),
            sent: AtomicU64::new(0),
            settings,
            marks,
            space,
            consumers: Consumers::open(state_dir.join("consumers"))?,
            sync,
            stopped,
            size: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            is_shut: AtomicBool::new(false),
            last: watch::Sender::new(tail.seq()),
            tail: Mutex::new(tail),
            dir,
            gaps,
            sums: Mutex::default(),
            _lock: lock,
        };
        recovery::recover(&journal, found)?;
        Ok(journal)
    }

    /// Returns the id of this journal: sequence numbers only compare within one.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the sequence number of the last line.
    pub(crate) fn last_seq(&self) -> u64 {
        *self.last.borrow()
    }

    /// Returns the lines that were missing when the journal was opened, although they were never removed.
    pub(crate) fn lost(&self) -> &[Lost] {
        self.gaps.all()
    }

    /// Returns the bytes of all its files, as of the last second.
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    /// Returns whether calls are let through, and if not, why.
    pub(crate) fn state(&self) -> JournalState {
        if self.stopped.load(Ordering::Relaxed) {
            JournalState::Stopped
        } else if self.is_shut.load(Ordering::Relaxed) {
            JournalState::Closed
        } else if self.space.is_full() {
            JournalState::Full
        } else if self.is_over.load(Ordering::Relaxed) {
            JournalState::OverBudget
        } else {
            JournalState::Open
        }
    }

    /// Reserves space for a call's record. `None`: there is none, or writing has stopped; no call may be let through.
    pub(crate) fn room(&self) -> Option<Room> {
        if self.stopped.load(Ordering::Relaxed) || self.is_shut.load(Ordering::Relaxed) {
            return None;
        }
        // The second room is held while space for it is looked for.
        self.space.room().map_or_else(
            |room| match self.tail().set_aside() {
                Ok(()) => Some(room),
                Err(error) => {
                    tracing::debug!(%error, "no space for records");
                    None
                }
            },
            Some,
        )
    }

    /// Marks the call of `room`, whose record would be `record` if the proxy died now. The returned future is ready
    /// when bytes of the call may go upstream.
    ///
    /// # Errors
    /// If there is no mark: then the call must not be sent.
    pub(crate) fn mark(&self, room: &mut Room, record: &ExchangeRecord) -> Result<Synced, Error> {
        let slot = self.marks.mark(self.last_seq(), record).map_err(Error::io("write", self.marks.path()))?;
        room.slot = Some(slot);
        Ok(self.sync.as_ref().map_or(Synced::Now, |sync| sync.of(self.marks.file(), None)))
    }

    /// Appends `record`; when this returns, it has been handed to the kernel. Of a call without a mark nothing was
    /// sent: it may instead be counted, to be summed up with others. The returned future is ready when the answer's
    /// last bytes may leave.
    ///
    /// # Errors
    /// If it could not be written whole. The journal then stops for good: calls are refused, not forgotten.
    pub(crate) fn append(&self, record: &ExchangeRecord, mut room: Option<Room>) -> Result<Synced, Error> {
        let Some(slot) = room.as_mut().and_then(|room| room.slot.take()) else {
            let now = clock::uptime(Instant::now());
            if self.floods.passes(record, now) {
                match room.or_else(|| self.room()) {
                    Some(_room) => self.floods.wrote(&record.run_id, self.write(record)?.1),
                    None => self.floods.count(record, now),
                }
            }
            return Ok(Synced::Now);
        };
        let (file, bytes) = self.write(record)?;
        self.sent.fetch_add(bytes, Ordering::Relaxed);
        match &self.sync {
            None => {
                self.marks.release(slot);
                Ok(Synced::Now)
            }
            Some(sync) => Ok(sync.of(&file, Some(slot))),
        }
    }

    /// Appends `record` and returns the file that it is in, and how many bytes it has there.
    fn write(&self, record: &ExchangeRecord) -> Result<(Arc<File>, u64), Error> {
        let mut tail = self.tail();
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        let before = Arc::clone(tail.file());
        let Appended { seq, bytes } = tail.append(record).map_err(|source| {
            self.stopped.store(true, Ordering::Relaxed);
            Error::io("append to", &tail.segment().0.path)(source)
        })?;
        self.last.send_replace(seq);
        let file = Arc::clone(tail.file());
        // Syncs the old file too, so that no line in the new file is durable before those in the old one.
        if let Some(sync) = self.sync.as_ref().filter(|_| !Arc::ptr_eq(&before, &file)) {
            sync.rotated(&before, &self.dir);
        }
        Ok((file, bytes))
    }

    /// Writes the sums of calls of `run`, which ends.
    pub(crate) fn sum_up_run(&self, run: &RunId) {
        self.sum_up(Flush::Run(run));
    }

    /// Writes the sums of calls; sums without space stay counted.
    fn sum_up(&self, flush: Flush<'_>) {
        let now = clock::uptime(Instant::now());
        self.floods.give_back(self.sent.swap(0, Ordering::Relaxed), now);
        for record in self.floods.take(flush, now) {
            let Some(_room) = self.room() else {
                self.floods.count(&record, now);
                continue;
            };
            match self.write(&record) {
                Ok((_, bytes)) => self.floods.wrote(&record.run_id, bytes),
                Err(error) => tracing::error!(
                    calls = record.calls,
                    error = &error as &dyn std::error::Error,
                    "calls that were counted are not in the journal"
                ),
            }
        }
    }

    /// Looks for space if there was none: as calls are refused meanwhile, none of them would find out that there is
    /// some.
    fn find_space(&self) {
        if self.space.is_full() {
            drop(self.tail().set_aside());
        }
    }

    /// Lets the next line begin a new segment if the last segment is too old at `now`.
    fn end_old_segment(&self, now: SystemTime) -> Result<(), Error> {
        let mut tail = self.tail();
        let path = &tail.segment().0.path;
        let file = std::fs::metadata(path).map_err(Error::io("look at", path))?;
        // Some file systems know when a file was last changed and not when it was made.
        let began = file.created().or_else(|_unknown| file.modified()).map_err(Error::io("look at", path))?;
        if now.duration_since(began).unwrap_or_default() >= self.settings.segment_age.duration() {
            tail.end_segment();
        }
        Ok(())
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
