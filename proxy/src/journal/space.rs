//! Reserves space for the records of admitted calls, so that a full disk stops admission and never settlement.
//!
//! An admitted call holds a [`SpaceReservation`]. The file's space is allocated ahead of its end, in large pieces, and
//! always covers all reservations. Each write of a line holds one, also for refused calls: so they never use what is
//! allocated for others. On file systems that copy on write the promise is as good as theirs.

use std::{
    fs::File,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use rustix::{
    fs::{FallocateFlags, fallocate},
    io::Errno,
};

use super::in_flight::LogSlot;

/// Bytes of a reservation: more than the longest possible line, with all names, ids and texts at their longest and 32
/// tools.
pub(super) const MAX_LINE: u64 = 8 << 10;
/// Bytes that are allocated at a time.
const ALLOCATION_STEP: u64 = 1 << 20;

/// Allocated space, and the part of it that is reserved.
#[derive(Debug, Default)]
pub(super) struct Space {
    /// Bytes of all reservations.
    reserved: AtomicU64,
    /// Bytes that are allocated.
    allocated: AtomicU64,
    /// True if the file system cannot allocate ahead.
    is_unsupported: AtomicBool,
    /// True if the last attempt to allocate more has failed.
    is_full: AtomicBool,
}

/// Space for one line, and the call's mark. Given back on drop; the mark stays until its record is written.
#[derive(Debug)]
pub(crate) struct SpaceReservation {
    space: Arc<Space>,
    pub(super) slot: Option<LogSlot>,
}

impl Space {
    /// Reserves space for one more line, if it is allocated already. Otherwise the reservation comes as an error.
    pub(super) fn reserve(self: &Arc<Self>) -> Result<SpaceReservation, SpaceReservation> {
        // Counts first and compares second: two concurrent reservations may both allocate more, but never share the
        // space of one.
        let reserved = self.reserved.fetch_add(MAX_LINE, Ordering::SeqCst) + MAX_LINE;
        let reservation = SpaceReservation { space: Arc::clone(self), slot: None };
        if self.is_unsupported.load(Ordering::Relaxed) || reserved <= self.allocated.load(Ordering::SeqCst) {
            Ok(reservation)
        } else {
            Err(reservation)
        }
    }

    /// Allocates what reservations need, and more, behind `end` in `file`; returns how many bytes behind it are
    /// allocated then.
    ///
    /// # Errors
    /// If there is not enough.
    pub(super) fn preallocate(&self, file: &File, end: u64) -> io::Result<u64> {
        let reserved = self.reserved.load(Ordering::SeqCst).max(MAX_LINE);
        let mut outcome = Ok(());
        for wanted in [reserved.next_multiple_of(ALLOCATION_STEP) + ALLOCATION_STEP, reserved] {
            outcome = fallocate(file, FallocateFlags::KEEP_SIZE, end, wanted);
            if outcome.is_ok() {
                self.is_full.store(false, Ordering::Relaxed);
                return Ok(wanted);
            }
        }
        match outcome {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                if !self.is_unsupported.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        "the journal's file system cannot allocate space ahead: on a full disk records may be lost"
                    );
                }
                Ok(0)
            }
            _ => {
                self.is_full.store(true, Ordering::Relaxed);
                outcome.map(|()| 0).map_err(Into::into)
            }
        }
    }

    /// Sets the number of allocated bytes; returns the previous one.
    pub(super) fn set_allocated(&self, bytes: u64) -> u64 {
        self.allocated.swap(bytes, Ordering::SeqCst)
    }

    /// Subtracts bytes that were written.
    pub(super) fn note_written(&self, bytes: u64) {
        // Only the holder of the tail's lock writes this.
        let allocated = self.allocated.load(Ordering::SeqCst);
        self.allocated.store(allocated.saturating_sub(bytes), Ordering::SeqCst);
    }

    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }
}

impl Drop for SpaceReservation {
    fn drop(&mut self) {
        self.space.reserved.fetch_sub(MAX_LINE, Ordering::SeqCst);
    }
}
