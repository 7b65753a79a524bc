//! Maintains the journal in a thread of its own.
//!
//! The thread writes the sums of refused calls, clears stale marks, ends old segments, makes checkpoints, and removes
//! old segments.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

use platform_core::id::RunId;
use platform_runtime::report;

use super::{Error, Journal, refusals::Flush};

/// Interval between two rounds of maintenance.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);
/// Interval between checkpoints: if a crash loses the end of the journal, the usage of this time is lost, too.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(5);

/// Handle of the thread. Ends on [`Maintenance::stop`].
#[derive(Debug)]
pub(crate) struct Maintenance {
    stop: SyncSender<()>,
    thread: thread::JoinHandle<()>,
}

struct MaintenanceThread {
    journal: Arc<Journal>,
    is_closed: Box<dyn Fn(&RunId) -> bool + Send>,
    /// Last line that is summed up on the disk; 0 before the first checkpoint.
    summed: u64,
    /// Time of the next checkpoint.
    due: Instant,
}

impl Maintenance {
    /// Starts the thread. No usage is kept for runs that are `is_closed`.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn start(
        journal: Arc<Journal>,
        is_closed: impl Fn(&RunId) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = sync_channel(1);
        let maintenance =
            MaintenanceThread { journal, is_closed: Box::new(is_closed), summed: 0, due: Instant::now() };
        let thread =
            thread::Builder::new().name("journal".to_owned()).spawn(move || maintenance.run(&stopped))?;
        Ok(Self { stop, thread })
    }

    /// Writes what was counted, clears all marks except those of calls in flight, and ends the thread. Blocks for a
    /// moment.
    pub(crate) fn stop(self) {
        drop(self.stop);
        if self.thread.join().is_err() {
            tracing::error!("the journal's maintenance thread panicked");
        }
    }
}

impl MaintenanceThread {
    fn run(mut self, stopped: &Receiver<()>) {
        while stopped.recv_timeout(MAINTENANCE_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            if let Err(error) = self.run_once(SystemTime::now()) {
                tracing::warn!(error = report::chain(&error), "maintenance of the journal failed");
            }
        }
        self.journal.flush_refusals(Flush::All);
        self.journal.clear_stale_marks();
        if let Err(error) = self.journal.make_checkpoint(&self.is_closed) {
            tracing::warn!(error = report::chain(&error), "last checkpoint of the journal failed");
        }
    }

    fn run_once(&mut self, now: SystemTime) -> Result<(), Error> {
        let journal = &self.journal;
        journal.flush_refusals(Flush::Due);
        journal.clear_stale_marks();
        journal.find_space();
        journal.end_old_segment(now)?;
        let mut made = Ok(());
        if Instant::now() >= self.due {
            self.due = Instant::now() + CHECKPOINT_INTERVAL;
            made = journal.make_checkpoint(&self.is_closed).map(|summed| self.summed = summed);
        }
        // This runs even if no sums can be written, as on a full disk: removed segments make space for them.
        journal.remove_old(self.summed, now)?;
        made
    }
}
