//! Wakes the maintenance thread for what the journal will need next.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
    mpsc::SyncSender,
};

use super::maintenance::Signal;

/// Wakes the maintenance thread when something must be prepared, once until it is.
#[derive(Debug, Default)]
pub(super) struct Demand {
    is_raised: AtomicBool,
    maintenance: OnceLock<SyncSender<Signal>>,
}

impl Demand {
    /// Wakes the thread behind `maintenance` from now on.
    pub(super) fn serve(&self, maintenance: SyncSender<Signal>) {
        // A journal is maintained by one thread.
        self.maintenance.set(maintenance).ok();
    }

    pub(super) fn raise(&self) {
        if self.is_raised() || self.is_raised.swap(true, Ordering::SeqCst) {
            return;
        }
        if let Some(maintenance) = self.maintenance.get() {
            // If a signal waits already, the thread is about to look.
            maintenance.try_send(Signal::Prepare).ok();
        }
    }

    pub(super) fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::SeqCst)
    }

    /// Lets the next demand wake the thread again.
    pub(super) fn clear(&self) {
        self.is_raised.store(false, Ordering::SeqCst);
    }

    /// Lets no demand wake the thread until the next round.
    pub(super) fn suppress(&self) {
        self.is_raised.store(true, Ordering::SeqCst);
    }
}
