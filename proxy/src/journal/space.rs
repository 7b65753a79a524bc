//! Space for the records of calls that are let through, so that a full disk stops admission and never settlement.
//!
//! A call that is let through holds a [`Room`]. The file's space is set aside ahead of its end, in large pieces, and there is
//! always as much of it as the rooms need together. Whoever writes a line holds a room for it, refused calls too: what is set
//! aside for others they never use. On file systems that copy on write the promise is as good as theirs.

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

/// The longest line there can be, and some more: its names and ids, all texts at their longest, 32 tools.
pub(super) const ROOM: u64 = 8 << 10;
/// How much is set aside at a time.
const PIECE: u64 = 1 << 20;

/// What is set aside, and for whom.
#[derive(Debug, Default)]
pub(super) struct Space {
    /// Bytes that rooms need together.
    held: AtomicU64,
    /// Bytes that are set aside.
    free: AtomicU64,
    /// The file system has nothing to set aside with.
    is_unknown: AtomicBool,
    /// The last attempt to set more aside has failed.
    is_full: AtomicBool,
}

/// Space for one line, and the call's mark. Given back on drop; the mark stays until its record is written.
#[derive(Debug)]
pub(crate) struct Room {
    space: Arc<Space>,
    pub(super) slot: Option<Slot>,
}

impl Space {
    /// Space for one more line, if it is set aside already.
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

    /// Sets aside what rooms need, and more, behind `end` in `file`; returns how much behind it is set aside then.
    ///
    /// # Errors
    /// If there is not enough.
    pub(super) fn set_aside(&self, file: &File, end: u64) -> io::Result<u64> {
        let held = self.held.load(Ordering::SeqCst);
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

    /// So much is set aside now.
    pub(super) fn is_set_aside(&self, bytes: u64) {
        self.free.store(bytes, Ordering::SeqCst);
    }

    /// Bytes of it were written.
    pub(super) fn used(&self, bytes: u64) {
        // Written under the tail's lock alone.
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
