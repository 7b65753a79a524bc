//! Reserves space for the records of calls that are let through, so that a full disk stops admission and never
//! settlement.
//!
//! A call that is let through holds a [`Room`]. The file's space is allocated ahead of its end, in large pieces, and
//! always covers all rooms. Each write of a line holds a room for it, also for refused calls: so they never use what is
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

use super::marks::Slot;

/// Size of a room: the longest line there can be, and some more: its names and ids, all texts at their longest, 32
/// tools.
pub(super) const ROOM: u64 = 8 << 10;
/// Bytes that are allocated at a time.
const PIECE: u64 = 1 << 20;

/// Space that is allocated, and what rooms need of it.
#[derive(Debug, Default)]
pub(super) struct Space {
    /// Bytes that rooms need together.
    held: AtomicU64,
    /// Bytes that are allocated.
    free: AtomicU64,
    /// True if the file system cannot allocate ahead.
    is_unknown: AtomicBool,
    /// True if the last attempt to allocate more has failed.
    is_full: AtomicBool,
}

/// Space for one line, and the call's mark. Given back on drop; the mark stays until its record is written.
#[derive(Debug)]
pub(crate) struct Room {
    space: Arc<Space>,
    pub(super) slot: Option<Slot>,
}

impl Space {
    /// Reserves space for one more line, if it is allocated already. Otherwise the room comes as an error.
    pub(super) fn room(self: &Arc<Self>) -> Result<Room, Room> {
        // Counted first, compared second: of two at once both may be sent for more, and never both pass on one's space.
        let held = self.held.fetch_add(ROOM, Ordering::SeqCst) + ROOM;
        let room = Room { space: Arc::clone(self), slot: None };
        if self.is_unknown.load(Ordering::Relaxed) || held <= self.free.load(Ordering::SeqCst) {
            Ok(room)
        } else {
            Err(room)
        }
    }

    /// Allocates what rooms need, and more, behind `end` in `file`; returns how many bytes behind it are allocated
    /// then.
    ///
    /// # Errors
    /// If there is not enough.
    pub(super) fn set_aside(&self, file: &File, end: u64) -> io::Result<u64> {
        let held = self.held.load(Ordering::SeqCst).max(ROOM);
        let mut outcome = Ok(());
        for wanted in [held.next_multiple_of(PIECE) + PIECE, held] {
            outcome = fallocate(file, FallocateFlags::KEEP_SIZE, end, wanted);
            if outcome.is_ok() {
                self.is_full.store(false, Ordering::Relaxed);
                return Ok(wanted);
            }
        }
        match outcome {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                if !self.is_unknown.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        "the journal's file system cannot set space aside: on a full disk records may be lost"
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
    pub(super) fn is_set_aside(&self, bytes: u64) -> u64 {
        self.free.swap(bytes, Ordering::SeqCst)
    }

    /// Subtracts bytes that were written.
    pub(super) fn used(&self, bytes: u64) {
        // Only the holder of the tail's lock writes this.
        let free = self.free.load(Ordering::SeqCst);
        self.free.store(free.saturating_sub(bytes), Ordering::SeqCst);
    }

    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.space.held.fetch_sub(ROOM, Ordering::SeqCst);
    }
}
