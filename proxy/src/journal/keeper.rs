//! Maintains the journal in a thread of its own.
//!
//! The thread writes the sums of floods, sweeps marks, ends old segments, makes checkpoints, and removes old segments.

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

use super::{Error, Journal, flood::Flush};

/// Interval between two rounds of maintenance.
const TICK: Duration = Duration::from_secs(1);
/// Interval between checkpoints: if a crash loses the end of the journal, the usage of this time is lost, too.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(5);

/// Handle of the thread. Ends on [`Keeper::stop`].
#[derive(Debug)]
pub(crate) struct Keeper {
    stop: SyncSender<()>,
    thread: thread::JoinHandle<()>,
}

struct Duty {
    journal: Arc<Journal>,
    is_closed: Box<dyn Fn(&RunId) -> bool + Send>,
    /// Last line that is summed up on the disk; 0 before the first checkpoint.
    summed: u64,
    /// Time of the next checkpoint.
    due: Instant,
}

impl Keeper {
    /// Starts the thread. No usage is kept for runs that are `is_closed`.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn start(
        journal: Arc<Journal>,
        is_closed: impl Fn(&RunId) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = sync_channel(1);
        let duty = Duty { journal, is_closed: Box::new(is_closed), summed: 0, due: Instant::now() };
        let thread = thread::Builder::new().name("journal".to_owned()).spawn(move || duty.serve(&stopped))?;
        Ok(Self { stop, thread })
    }

    /// Writes what was counted, sweeps all marks except those of calls in flight, and ends the thread. Blocks for a
    /// moment.
    pub(crate) fn stop(self) {
        drop(self.stop);
        if self.thread.join().is_err() {
            tracing::error!("the journal's thread panicked");
        }
    }
}

impl Duty {
    fn serve(mut self, stopped: &Receiver<()>) {
        while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            if let Err(error) = self.tick(SystemTime::now()) {
                tracing::warn!(error = &error as &dyn std::error::Error, "the journal is not looked after");
            }
        }
        self.journal.sum_up(Flush::All);
        self.journal.marks.sweep();
        if let Err(error) = self.journal.make_checkpoint(&self.is_closed) {
            tracing::warn!(error = &error as &dyn std::error::Error, "what was spent is not summed up");
        }
    }

    fn tick(&mut self, now: SystemTime) -> Result<(), Error> {
        let journal = &self.journal;
        journal.sum_up(Flush::Due);
        journal.marks.sweep();
        journal.find_space();
        journal.end_old_segment(now)?;
        let mut made = Ok(());
        if Instant::now() >= self.due {
            self.due = Instant::now() + CHECKPOINT_INTERVAL;
            made = journal.make_checkpoint(&self.is_closed).map(|summed| self.summed = summed);
        }
        // This runs even if no sums can be written, as on a full disk: what is removed makes room for them.
        journal.remove_old(self.summed, now)?;
        made
    }
}
