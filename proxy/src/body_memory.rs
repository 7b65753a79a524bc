//! Limits the memory for request bodies, of one run and of all together. Bytes count as they arrive, so that many slow
//! uploads cannot use more than the limit together.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use platform_core::{limit::ByteSize, refusal::Refusal};

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

    /// Returns the bytes that are held now.
    pub(crate) fn used(&self) -> u64 {
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

/// Memory that one call holds, counted against its run's limit and the common one. Released on drop.
#[derive(Debug)]
pub(crate) struct BodyPermit {
    of_run: Arc<BodyMemory>,
    of_all: Arc<BodyMemory>,
    bytes: u64,
}

impl BodyPermit {
    pub(crate) const fn empty(of_run: Arc<BodyMemory>, of_all: Arc<BodyMemory>) -> Self {
        Self { of_run, of_all, bytes: 0 }
    }

    /// Takes `bytes` more, or nothing.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), Refusal> {
        if !self.of_run.take(bytes) {
            return Err(Refusal::BodyMemoryExhausted);
        }
        if !self.of_all.take(bytes) {
            self.of_run.give_back(bytes);
            return Err(Refusal::BodyMemoryExhausted);
        }
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for BodyPermit {
    fn drop(&mut self) {
        self.of_run.give_back(self.bytes);
        self.of_all.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_memory_is_bounded_per_run_and_overall() {
        let all = Arc::new(BodyMemory::new(ByteSize(10)));
        let run = || Arc::new(BodyMemory::new(ByteSize(6)));
        let (one, other) = (run(), run());
        let mut first = BodyPermit::empty(Arc::clone(&one), Arc::clone(&all));
        assert_eq!(first.grow(6), Ok(()));
        assert_eq!(first.grow(1), Err(Refusal::BodyMemoryExhausted), "the run's own");
        let mut second = BodyPermit::empty(Arc::clone(&other), Arc::clone(&all));
        assert_eq!(second.grow(5), Err(Refusal::BodyMemoryExhausted), "all together");
        assert_eq!(second.grow(4), Ok(()));
        drop(first);
        assert_eq!(second.grow(2), Ok(()));
        drop(second);
        assert_eq!([&one, &other, &all].map(|allowance| allowance.used()), [0, 0, 0]);
    }
}
