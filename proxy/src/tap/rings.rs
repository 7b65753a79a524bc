//! Bounds the memory of all rings together, and releases that of unwatched ones.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use platform_core::limit::{
    ByteSize,
    data_plane::{TAP_DELTA, TAP_REST, TAP_RING, TAP_RINGS},
};
use platform_runtime::sync::Mutex;

use super::{Ring, State};

/// All rings, with their common bound.
#[derive(Debug)]
pub(crate) struct Rings {
    held: AtomicU64,
    most: ByteSize,
    /// Number of rings.
    count: AtomicU64,
    all: Mutex<Vec<Weak<Ring>>>,
}

impl Default for Rings {
    fn default() -> Self {
        Self::of(TAP_RINGS)
    }
}

impl Rings {
    /// Creates a bound of `most` bytes for all rings together.
    pub(super) const fn of(most: ByteSize) -> Self {
        Self { held: AtomicU64::new(0), most, count: AtomicU64::new(0), all: Mutex::new(Vec::new()) }
    }

    /// Returns the bytes that all rings hold.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Returns the most bytes that one ring may hold.
    pub(super) fn share(&self) -> u64 {
        TAP_RING.0.min(self.most.0 / self.count.load(Ordering::Relaxed).max(1))
    }

    /// Takes `bytes` from the common bound, if so many are left.
    pub(super) fn take(&self, bytes: u64) -> bool {
        let fits = |held: u64| Some(held + bytes).filter(|sum| *sum <= self.most.0);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    pub(super) fn give_back(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Adds `ring` to the rings that share the bound.
    pub(super) fn register(&self, ring: &Arc<Ring>) {
        let mut all = self.all.lock();
        if !all.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(ring))) {
            all.retain(|known| known.strong_count() > 0);
            all.push(Arc::downgrade(ring));
            self.count.store(all.len() as u64, Ordering::Relaxed);
        }
    }

    /// Empties the rings that had no watcher for long, and shrinks those that hold more than their share. Called now
    /// and then: a silent run releases nothing by itself.
    pub(crate) fn release_unwatched(&self, now: Instant) {
        let all: Vec<_> = {
            let mut all = self.all.lock();
            all.retain(|known| known.strong_count() > 0);
            self.count.store(all.len() as u64, Ordering::Relaxed);
            all.iter().filter_map(Weak::upgrade).collect()
        };
        let share = self.share();
        for ring in all {
            let mut contents = ring.contents();
            match contents.state {
                State::Left(since) if now.saturating_duration_since(since) >= TAP_REST.duration() => {
                    contents.state = State::Counting;
                    contents.shrink(0);
                }
                _ if contents.held > share => contents.shrink(share),
                _ => {}
            }
        }
    }
}

/// A ring smaller than one piece would keep no line.
const _: () = assert!(TAP_RING.0 > ByteSize::kib(16).0 && TAP_DELTA < 8192);
