//! Maintains the journal in its own thread.
//!
//! The thread writes the sums of refused calls, clears stale marks, retries failed ones, makes checkpoints, and ends and
//! removes old segments, once a second. It prepares the journal's growth whenever that is wanted.

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

use super::{Error, Journal, attempt_usage::IsClosed, refusals::Flush};

/// Interval between two rounds of maintenance.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);
/// Interval between checkpoints: if a crash loses the end of the journal, the usage of this time is lost, too.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(5);

/// Handle of the thread. Ends on [`Maintenance::stop`].
#[derive(Debug)]
pub(crate) struct Maintenance {
    signals: SyncSender<Signal>,
    thread: thread::JoinHandle<()>,
}

/// Reason to wake the thread before its next round.
#[derive(Debug, Clone, Copy)]
pub(super) enum Signal {
    /// The journal's growth is to be prepared.
    Prepare,
    /// The journal ends.
    Stop,
}

struct MaintenanceThread {
    journal: Arc<Journal>,
    is_closed: Box<IsClosed>,
    /// Last line that is summed up on the disk; 0 before the first checkpoint.
    summed: u64,
    /// Time of the next checkpoint.
    due: Instant,
}

impl Maintenance {
    /// Prepares the journal's growth, and starts the thread. No usage is kept for attempts of runs that are `is_closed`.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn start(
        journal: Arc<Journal>,
        is_closed: impl Fn(&RunId, u32) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let (signals, received) = sync_channel(1);
        journal.space.demand().serve(signals.clone());
        journal.prepare();
        let maintenance =
            MaintenanceThread { journal, is_closed: Box::new(is_closed), summed: 0, due: Instant::now() };
        let thread =
            thread::Builder::new().name("journal".to_owned()).spawn(move || maintenance.run(&received))?;
        Ok(Self { signals, thread })
    }

    /// Writes what was counted, clears all marks except those of calls in flight, and ends the thread. Blocks for a
    /// moment.
    pub(crate) fn stop(self) {
        // Fails only if the thread has ended, by a panic.
        self.signals.send(Signal::Stop).ok();
        if self.thread.join().is_err() {
            tracing::error!("the journal's maintenance thread panicked");
        }
    }
}

impl MaintenanceThread {
    fn run(mut self, received: &Receiver<Signal>) {
        let mut next_round = Instant::now() + MAINTENANCE_INTERVAL;
        loop {
            let left = next_round.saturating_duration_since(Instant::now());
            match received.recv_timeout(left) {
                Ok(Signal::Prepare) | Err(RecvTimeoutError::Timeout) => self.journal.prepare(),
                Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => break,
            }
            if Instant::now() >= next_round {
                next_round = Instant::now() + MAINTENANCE_INTERVAL;
                if let Err(error) = self.run_once(SystemTime::now()) {
                    tracing::warn!(error = report::chain(&error), "maintenance of the journal failed");
                }
            }
        }
        self.journal.flush_refusals(Flush::All);
        self.journal.clear_stale_marks();
        if let Err(error) = self.journal.make_checkpoint(&self.is_closed) {
            tracing::warn!(error = report::chain(&error), "last checkpoint of the journal failed");
        }
        self.journal.end_preparation();
    }

    fn run_once(&mut self, now: SystemTime) -> Result<(), Error> {
        let journal = &self.journal;
        journal.flush_refusals(Flush::Due);
        journal.clear_stale_marks();
        journal.retry_marks();
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
