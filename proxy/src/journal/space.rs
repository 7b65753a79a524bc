//! Reserves space for the records of admitted calls, so that a full disk stops admission and never settlement.
//!
//! An admitted call holds a [`SpaceReservation`]. The file's space is allocated ahead of its end, in large pieces, and
//! always covers all reservations. The maintenance thread allocates more before a call would have to. Each write of a
//! line holds a reservation, also for refused calls: so they never use space that is allocated for others. On file
//! systems that copy on write the promise is as good as theirs.

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

use super::{demand::Demand, in_flight::LogSlot};

/// Bytes of a reservation: more than the longest possible line, with all names, ids and texts at their longest and 32
/// tools.
pub(super) const MAX_LINE: u64 = 8 << 10;
/// Lines that a thread reserves at a time.
const LINES_AHEAD: u64 = 16;
/// Bytes that are allocated at a time ahead of all reservations.
const AHEAD: u64 = 4 << 20;
/// Bytes ahead of all reservations below which more are allocated.
const LOW_WATER: u64 = AHEAD / 2;
/// Bytes that are allocated ahead if there are no more.
const LESS_AHEAD: u64 = 1 << 20;
/// Unit of allocation: no two allocations share a page.
const PAGE: u64 = 4096;

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
    /// Raised when little is left ahead of all reservations.
    demand: Demand,
}

/// Ends of a file's parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// End of the lines.
    pub(super) length: u64,
    /// End of what is allocated.
    pub(super) end: u64,
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

/// Reservation of a line before its space is allocated. Given up on drop.
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
            // Lines that were written since may have used its space.
            if self.space.is_backed() {
                return Ok(self.reservation());
            }
            self.space.give_back(self.spare.swap(0, Ordering::Relaxed));
        } else if self.space.reserve(LINES_AHEAD) {
            self.spare.fetch_add(LINES_AHEAD - 1, Ordering::Relaxed);
            return Ok(self.reservation());
        } else {
            self.space.give_back(LINES_AHEAD - 1);
        }
        // With less space than that, lines are reserved one by one.
        let unbacked = UnbackedReservation { pool: Arc::clone(self), lines: 1 };
        if self.space.is_backed() { Ok(unbacked.into_backed()) } else { Err(unbacked) }
    }

    fn reservation(self: &Arc<Self>) -> SpaceReservation {
        SpaceReservation { pool: Arc::clone(self), slot: None }
    }
}

impl UnbackedReservation {
    /// Returns the reservation, now that its space is allocated.
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
        self.raise_if_low();
        self.is_backed()
    }

    /// Returns whether all reservations have allocated space.
    pub(super) fn is_backed(&self) -> bool {
        let reserved = self.reserved.load(Ordering::SeqCst);
        self.is_unsupported.load(Ordering::Relaxed) || reserved <= self.allocated.load(Ordering::SeqCst)
    }

    fn give_back(&self, lines: u64) {
        self.reserved.fetch_sub(lines * MAX_LINE, Ordering::SeqCst);
    }

    /// Returns the demand for more allocated space.
    pub(super) const fn demand(&self) -> &Demand {
        &self.demand
    }

    /// Returns whether little is allocated ahead of all reservations.
    pub(super) fn is_low(&self) -> bool {
        !self.is_ahead(self.allocated())
    }

    /// Returns whether `allocated` bytes are enough for all reservations and for some time.
    pub(super) fn is_ahead(&self, allocated: u64) -> bool {
        self.is_unsupported.load(Ordering::Relaxed)
            || allocated >= self.reserved.load(Ordering::SeqCst) + LOW_WATER
    }

    fn raise_if_low(&self) {
        if self.is_low() {
            self.demand.raise();
        }
    }

    /// Allocates what reservations and one more line need, and more, behind `extent` of `file`; returns the end of what
    /// is allocated then. No two threads do this with one file at the same time.
    ///
    /// # Errors
    /// If there is not enough.
    pub(super) fn extend(&self, file: &File, extent: Extent) -> io::Result<u64> {
        let mut end = Ok(extent.end);
        for ahead in [AHEAD, LESS_AHEAD, MAX_LINE] {
            end = self.extend_by(file, extent, ahead);
            if end.is_ok() {
                break;
            }
        }
        self.is_full.store(end.is_err(), Ordering::Relaxed);
        end
    }

    /// Allocates all that is allocated ahead at best, as [`Space::extend`].
    ///
    /// # Errors
    /// If there is not as much.
    pub(super) fn extend_far(&self, file: &File, extent: Extent) -> io::Result<u64> {
        self.extend_by(file, extent, AHEAD)
    }

    /// Allocates what reservations need and `ahead` bytes. Begins behind what is allocated: some file systems undo an
    /// allocation that fails, with all in its range that is not written yet.
    fn extend_by(&self, file: &File, extent: Extent, ahead: u64) -> io::Result<u64> {
        let reserved = self.reserved.load(Ordering::SeqCst);
        let end = (extent.length + reserved + ahead).next_multiple_of(PAGE);
        if end > extent.end {
            self.allocate(file, extent.end, end - extent.end)?;
        }
        Ok(end.max(extent.end))
    }

    /// Returns how many bytes are allocated in an empty `file`, where `allocated` are already: at least what all
    /// reservations need.
    ///
    /// # Errors
    /// If there is not enough.
    pub(super) fn cover(&self, file: &File, allocated: u64) -> io::Result<u64> {
        let is_covered = allocated >= self.reserved.load(Ordering::SeqCst).max(MAX_LINE);
        if is_covered { Ok(allocated) } else { self.extend(file, Extent { length: 0, end: allocated }) }
    }

    /// Allocates `wanted` bytes behind `end` in `file`, if the file system can do that.
    fn allocate(&self, file: &File, end: u64, wanted: u64) -> io::Result<()> {
        if self.is_unsupported.load(Ordering::Relaxed) {
            return Ok(());
        }
        match fallocate(file, FallocateFlags::KEEP_SIZE, end, wanted) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                if !self.is_unsupported.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        "the journal's file system cannot allocate space ahead: on a full disk records may be lost"
                    );
                }
                Ok(())
            }
            outcome => outcome.map_err(Into::into),
        }
    }

    /// Returns the number of allocated bytes.
    pub(super) fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::SeqCst)
    }

    /// Sets the number of allocated bytes; returns the previous one.
    pub(super) fn set_allocated(&self, bytes: u64) -> u64 {
        self.allocated.swap(bytes, Ordering::SeqCst)
    }

    /// Notes that at least so many bytes are allocated.
    pub(super) fn note_allocated(&self, bytes: u64) {
        self.allocated.fetch_max(bytes, Ordering::SeqCst);
    }

    /// Subtracts bytes that were written.
    pub(super) fn note_written(&self, bytes: u64) {
        // Only the holder of the tail's lock writes this.
        let allocated = self.allocated.load(Ordering::SeqCst);
        self.allocated.store(allocated.saturating_sub(bytes), Ordering::SeqCst);
        self.raise_if_low();
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
