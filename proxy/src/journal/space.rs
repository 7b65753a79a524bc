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
/// Lines that a thread reserves at a time.
const LINES_AHEAD: u64 = 16;
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

/// Space that one thread has reserved ahead, so that its calls share no counter with other threads.
#[derive(Debug)]
pub(super) struct SpacePool {
    space: Arc<Space>,
    /// Lines that are reserved and not given to a call.
    spare: AtomicU64,
}

/// Space for one line, and the call's mark. Given back on drop; the mark stays until its record is written.
#[derive(Debug)]
pub(crate) struct SpaceReservation {
    pool: Arc<SpacePool>,
    pub(super) slot: Option<LogSlot>,
}

/// Reservation of a line whose space is not allocated yet. Given up on drop.
#[derive(Debug)]
pub(super) struct UnbackedReservation {
    pool: Arc<SpacePool>,
    lines: u64,
}

impl SpacePool {
    pub(super) const fn new(space: Arc<Space>) -> Self {
        Self { space, spare: AtomicU64::new(0) }
    }

    /// Reserves space for one more line.
    ///
    /// # Errors
    /// If that space is not allocated yet.
    pub(super) fn reserve(self: &Arc<Self>) -> Result<SpaceReservation, UnbackedReservation> {
        let take_spare = |spare: u64| spare.checked_sub(1);
        if self.spare.try_update(Ordering::Relaxed, Ordering::Relaxed, take_spare).is_ok() {
            return Ok(self.reservation());
        }
        if self.space.reserve(LINES_AHEAD) {
            self.spare.fetch_add(LINES_AHEAD - 1, Ordering::Relaxed);
            return Ok(self.reservation());
        }
        // With less space than that, lines are reserved one by one.
        self.space.give_back(LINES_AHEAD - 1);
        let unbacked = UnbackedReservation { pool: Arc::clone(self), lines: 1 };
        if self.space.is_backed() { Ok(unbacked.into_backed()) } else { Err(unbacked) }
    }

    fn reservation(self: &Arc<Self>) -> SpaceReservation {
        SpaceReservation { pool: Arc::clone(self), slot: None }
    }
}

impl UnbackedReservation {
    /// Returns the reservation, whose space is allocated now.
    pub(super) fn into_backed(mut self) -> SpaceReservation {
        self.lines = 0;
        self.pool.reservation()
    }
}

impl Space {
    /// Reserves space for so many more lines. Returns whether it is allocated already.
    fn reserve(&self, lines: u64) -> bool {
        // Counts first and compares second: two concurrent reservations may both allocate more, but never share the
        // space of one.
        self.reserved.fetch_add(lines * MAX_LINE, Ordering::SeqCst);
        self.is_backed()
    }

    fn is_backed(&self) -> bool {
        let reserved = self.reserved.load(Ordering::SeqCst);
        self.is_unsupported.load(Ordering::Relaxed) || reserved <= self.allocated.load(Ordering::SeqCst)
    }

    fn give_back(&self, lines: u64) {
        self.reserved.fetch_sub(lines * MAX_LINE, Ordering::SeqCst);
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
        let spare = self.pool.spare.fetch_add(1, Ordering::Relaxed) + 1;
        if spare >= 2 * LINES_AHEAD {
            self.pool.spare.fetch_sub(LINES_AHEAD, Ordering::Relaxed);
            self.pool.space.give_back(LINES_AHEAD);
        }
    }
}

impl Drop for UnbackedReservation {
    fn drop(&mut self) {
        self.pool.space.give_back(self.lines);
    }
}

impl Drop for SpacePool {
    fn drop(&mut self) {
        self.space.give_back(*self.spare.get_mut());
    }
}
