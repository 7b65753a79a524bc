//! Limits the memory for request bodies, of one run and of all together. Bytes count as they arrive, so that many slow
//! uploads cannot use more than the limit together.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use platform_core::{limit::ByteSize, refusal::Refusal};
use platform_runtime::sync::Mutex;

/// Most bytes that a thread takes ahead.
const MOST_AHEAD: u64 = 256 << 10;
/// Share of the limit that a thread takes ahead at most, so that others are not refused for it.
const AHEAD_SHARE: u64 = 1024;

/// Amount of memory that many calls share.
#[derive(Debug)]
pub(crate) struct BodyMemory {
    limit: AtomicU64,
    used: AtomicU64,
}

impl BodyMemory {
    pub(crate) const fn new(limit: ByteSize) -> Self {
        Self { limit: AtomicU64::new(limit.0), used: AtomicU64::new(0) }
    }

    /// Replaces the limit. Held memory stays.
    pub(crate) fn set_limit(&self, limit: ByteSize) {
        self.limit.store(limit.0, Ordering::Relaxed);
    }

    /// Returns the bytes that are taken now.
    #[cfg(test)]
    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: u64) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Part of the memory of all runs that one data-plane thread has taken ahead, so that its calls share no counter with
/// other threads while several of them are in flight. Holds nothing while they hold nothing.
#[derive(Debug)]
pub(crate) struct BodyMemoryPool {
    all: Arc<BodyMemory>,
    taken: Mutex<Taken>,
}

/// Bytes that a pool has taken from all.
#[derive(Debug, Default)]
struct Taken {
    /// Bytes that calls hold.
    held: u64,
    /// Bytes that no call holds.
    spare: u64,
}

impl BodyMemoryPool {
    pub(crate) fn new(all: Arc<BodyMemory>) -> Self {
        Self { all, taken: Mutex::default() }
    }

    /// Returns the bytes that the thread's calls hold now.
    pub(crate) fn held(&self) -> u64 {
        self.taken.lock().held
    }

    fn take(&self, bytes: u64) -> bool {
        let mut taken = self.taken.lock();
        if taken.spare < bytes {
            let missing = bytes - taken.spare;
            let ahead = self.most_ahead();
            if self.all.take(missing + ahead) {
                taken.spare += missing + ahead;
            } else if self.all.take(missing) {
                taken.spare += missing;
            } else {
                return false;
            }
        }
        taken.spare -= bytes;
        taken.held += bytes;
        true
    }

    fn give_back(&self, bytes: u64) {
        let mut taken = self.taken.lock();
        taken.held -= bytes;
        taken.spare += bytes;
        let kept = if taken.held == 0 { 0 } else { self.most_ahead() };
        if taken.spare > 2 * kept {
            self.all.give_back(taken.spare - kept);
            taken.spare = kept;
        }
    }

    fn most_ahead(&self) -> u64 {
        MOST_AHEAD.min(self.all.limit.load(Ordering::Relaxed) / AHEAD_SHARE)
    }
}

/// Memory that one call holds, counted against its run's limit and the common one. Released on drop.
#[derive(Debug)]
pub(crate) struct BodyPermit {
    of_run: Arc<BodyMemory>,
    of_thread: Arc<BodyMemoryPool>,
    bytes: u64,
}

impl BodyPermit {
    pub(crate) const fn empty(of_run: Arc<BodyMemory>, of_thread: Arc<BodyMemoryPool>) -> Self {
        Self { of_run, of_thread, bytes: 0 }
    }

    /// Takes `bytes` more, or nothing.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), Refusal> {
        if !self.of_run.take(bytes) {
            return Err(Refusal::BodyMemoryExhausted);
        }
        if !self.of_thread.take(bytes) {
            self.of_run.give_back(bytes);
            return Err(Refusal::BodyMemoryExhausted);
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Takes or gives back what makes it `bytes` in all. If there is not as much, it stays as it was.
    pub(crate) fn resize(&mut self, bytes: u64) -> Result<(), Refusal> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.grow(more),
            None => {
                let less = self.bytes - bytes;
                self.of_run.give_back(less);
                self.of_thread.give_back(less);
                self.bytes = bytes;
                Ok(())
            }
        }
    }
}

impl Drop for BodyPermit {
    fn drop(&mut self) {
        self.of_run.give_back(self.bytes);
        self.of_thread.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_memory_is_bounded_per_run_and_overall() {
        let all = Arc::new(BodyMemory::new(ByteSize(10)));
        let run = || Arc::new(BodyMemory::new(ByteSize(6)));
        let pool = || Arc::new(BodyMemoryPool::new(Arc::clone(&all)));
        let (one, other) = (run(), run());
        let mut first = BodyPermit::empty(Arc::clone(&one), pool());
        assert_eq!(first.grow(6), Ok(()));
        assert_eq!(first.grow(1), Err(Refusal::BodyMemoryExhausted), "the run's own");
        let mut second = BodyPermit::empty(Arc::clone(&other), pool());
        assert_eq!(second.grow(5), Err(Refusal::BodyMemoryExhausted), "all together");
        assert_eq!(second.grow(4), Ok(()));
        drop(first);
        assert_eq!(second.grow(2), Ok(()));
        drop(second);
        assert_eq!([&one, &other, &all].map(|allowance| allowance.used()), [0, 0, 0]);
    }

    #[test]
    fn a_permit_follows_what_a_call_holds() {
        let (run, all) = (Arc::new(BodyMemory::new(ByteSize(10))), Arc::new(BodyMemory::new(ByteSize(20))));
        let mut permit = BodyPermit::empty(Arc::clone(&run), Arc::new(BodyMemoryPool::new(Arc::clone(&all))));
        for bytes in [4, 9, 3, 10] {
            assert_eq!(permit.resize(bytes), Ok(()));
            assert_eq!((run.used(), all.used()), (bytes, bytes));
        }
        assert_eq!(permit.resize(11), Err(Refusal::BodyMemoryExhausted));
        assert_eq!(run.used(), 10, "it stays as it was");
        drop(permit);
        assert_eq!((run.used(), all.used()), (0, 0));
    }

    #[test]
    fn a_thread_takes_ahead_and_gives_all_back() {
        let all = Arc::new(BodyMemory::new(ByteSize(1 << 30)));
        let run = Arc::new(BodyMemory::new(ByteSize(1 << 30)));
        let pool = Arc::new(BodyMemoryPool::new(Arc::clone(&all)));
        let held = |bytes| {
            let mut permit = BodyPermit::empty(Arc::clone(&run), Arc::clone(&pool));
            assert_eq!(permit.grow(bytes), Ok(()));
            permit
        };
        let first = held(1000);
        assert_eq!(all.used(), 1000 + MOST_AHEAD);
        let second = held(2000);
        assert_eq!(all.used(), 1000 + MOST_AHEAD, "taken from what was taken ahead");
        let large = held(8 << 20);
        drop(large);
        assert!(all.used() <= 3000 + 2 * MOST_AHEAD, "{}", all.used());
        drop((first, second));
        assert_eq!((all.used(), run.used()), (0, 0));
    }
}
