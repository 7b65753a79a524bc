//! Implements durability `disk`: written data is on the disk before any caller relies on it.
//!
//! One thread calls `fdatasync` for all calls that wait at that moment; they wait without blocking their threads. A
//! mark is cleared when its record is on the disk, never before: a machine may reorder the two writes.

use std::{
    fs::File,
    io,
    path::Path,
    sync::{
        Arc, Condvar,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use platform_runtime::{
    report,
    sync::{Mutex, wait_while},
};

use super::{
    Error,
    in_flight::{InFlightLog, LogSlot},
    turn::{Commit, Turn},
};

/// Handle of the thread that syncs. When it is dropped, the thread ends after a last sync.
#[derive(Debug)]
pub(super) struct SyncThread {
    queue: Arc<SyncQueue>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Debug)]
struct SyncQueue {
    pending: Mutex<PendingSync>,
    wake: Condvar,
    /// True once the journal has stopped; nothing is durable any more.
    stopped: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct PendingSync {
    /// Number of requests so far.
    requests: u64,
    files: Vec<Arc<File>>,
    /// Written turns that end after the next sync.
    turns: Vec<WrittenTurn>,
    is_last: bool,
}

/// Turn with marks and lines that are written, but not synced.
#[derive(Debug)]
pub(super) struct WrittenTurn {
    pub(super) turn: Arc<Turn>,
    /// Result of the writes.
    pub(super) commit: Commit,
    /// Slots of calls that have their record now.
    pub(super) slots: Vec<LogSlot>,
    /// File of these slots.
    pub(super) marks: Arc<InFlightLog>,
}

impl SyncThread {
    pub(super) fn start(stopped: Arc<AtomicBool>) -> io::Result<Self> {
        let queue = Arc::new(SyncQueue { pending: Mutex::default(), wake: Condvar::new(), stopped });
        let served = Arc::clone(&queue);
        let thread = thread::Builder::new().name("journal-sync".to_owned()).spawn(move || served.serve())?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Requests that `files` are synced, and `written` ended after that.
    pub(super) fn request(&self, files: impl IntoIterator<Item = Arc<File>>, written: WrittenTurn) {
        let mut pending = self.queue.pending.lock();
        pending.requests += 1;
        for file in files {
            if !pending.files.iter().any(|other| Arc::ptr_eq(other, &file)) {
                pending.files.push(file);
            }
        }
        pending.turns.push(written);
        drop(pending);
        self.queue.wake.notify_one();
    }

    /// Prepares for a new file in `dir`: the data in the file `before` must be synced as well.
    pub(super) fn note_rotation(&self, before: &Arc<File>, dir: &Path) {
        let dir = File::open(dir).inspect_err(|error| {
            tracing::error!(error = report::chain(error), "cannot sync the journal's directory")
        });
        let mut pending = self.queue.pending.lock();
        pending.files.push(Arc::clone(before));
        pending.files.extend(dir.map(Arc::new));
    }
}

impl SyncQueue {
    fn serve(&self) {
        let mut done = 0;
        loop {
            let is_idle = |pending: &mut PendingSync| pending.requests == done && !pending.is_last;
            let mut pending = wait_while(&self.wake, self.pending.lock(), is_idle);
            let files = std::mem::take(&mut pending.files);
            let turns = std::mem::take(&mut pending.turns);
            let is_last = pending.is_last && pending.requests == done;
            done = pending.requests;
            drop(pending);
            if is_last {
                return;
            }
            let synced = files.iter().try_for_each(|file| file.sync_data());
            if let Err(error) = &synced {
                tracing::error!(
                    error = report::chain(error),
                    "the journal cannot be written to the disk: new calls are refused"
                );
                self.stopped.store(true, Ordering::Relaxed);
            }
            let is_durable = synced.is_ok() && !self.stopped.load(Ordering::Relaxed);
            turns.into_iter().for_each(if is_durable { WrittenTurn::end } else { WrittenTurn::fail });
        }
    }
}

impl WrittenTurn {
    /// Frees the slots of recorded calls, and ends the turn.
    pub(super) fn end(self) {
        self.slots.into_iter().for_each(|slot| self.marks.release(slot));
        self.turn.end(self.commit);
    }

    /// Ends the turn, none of which is durable.
    fn fail(self) {
        self.turn.end(Commit::all(&Err(Arc::new(Error::Stopped))));
    }
}

impl Drop for SyncThread {
    fn drop(&mut self) {
        self.queue.pending.lock().is_last = true;
        self.queue.wake.notify_one();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that syncs the journal panicked");
        }
    }
}
