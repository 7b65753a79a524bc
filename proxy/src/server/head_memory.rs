//! Limits the memory that unfinished request heads use, of one listener's connections and of all.
//!
//! A head that comes in one piece never gets here. Beyond a limit the connections with the oldest unfinished heads are
//! closed first. So a flood of them costs later connections nothing. A connection closes when its thread polls it next.
//! If closing connections use as much memory again as the limit, new ones are closed, too. Bodies have limits of their
//! own, because they belong to a call, which is refused when memory for it runs out. One client's heads must not refuse
//! another's call.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Waker,
};

use platform_core::limit::ByteSize;
use platform_runtime::sync::Mutex;

/// Memory that many connections share.
#[derive(Debug)]
pub(crate) struct HeadMemory {
    limit: u64,
    /// Number of the next unfinished head.
    next: AtomicU64,
    unfinished: Mutex<Unfinished>,
}

#[derive(Debug, Default)]
struct Unfinished {
    bytes: u64,
    by_age: BTreeMap<u64, UnfinishedHead>,
    /// Bytes of connections that are to close, by number.
    closing: BTreeMap<u64, u64>,
    closing_bytes: u64,
}

impl Unfinished {
    /// Takes a connection that is to close out of the count.
    fn close(&mut self, number: u64) -> Option<Arc<Eviction>> {
        let UnfinishedHead { bytes, eviction } = self.by_age.remove(&number)?;
        self.bytes -= bytes;
        self.closing_bytes += bytes;
        self.closing.insert(number, bytes);
        Some(eviction)
    }
}

#[derive(Debug)]
struct UnfinishedHead {
    bytes: u64,
    eviction: Arc<Eviction>,
}

/// Order to a connection to close.
#[derive(Debug)]
struct Eviction {
    is_due: AtomicBool,
    connection: Waker,
    memories: MemoryPair,
}

/// Memory of a listener, and of all.
type MemoryPair = [Arc<HeadMemory>; 2];

impl Eviction {
    fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed)
    }

    /// Orders the connection to close. Its memory must not be the reason to close older ones.
    fn order(&self, number: u64) {
        self.is_due.store(true, Ordering::Relaxed);
        self.memories.iter().for_each(|memory| drop(memory.unfinished().close(number)));
        self.connection.wake_by_ref();
    }
}

impl HeadMemory {
    /// Creates memory of which nothing is used.
    pub(crate) fn new(limit: ByteSize) -> Self {
        Self { limit: limit.0, next: AtomicU64::new(0), unfinished: Mutex::default() }
    }

    /// Returns the bytes that unfinished heads use at the moment.
    pub(crate) fn used(&self) -> u64 {
        self.unfinished().bytes
    }

    /// Counts `share`. Returns the connections that have to close.
    fn set(&self, share: &HeadShare) -> Vec<(u64, Arc<Eviction>)> {
        let mut unfinished = self.unfinished();
        // Another thread has just taken it out of the count, and is about to set `is_due`.
        if unfinished.closing.contains_key(&share.number) {
            return Vec::new();
        }
        let entry = UnfinishedHead { bytes: share.bytes, eviction: Arc::clone(&share.eviction) };
        let before = unfinished.by_age.insert(share.number, entry).map_or(0, |entry| entry.bytes);
        unfinished.bytes = unfinished.bytes - before + share.bytes;
        let mut evicted = Vec::new();
        while unfinished.bytes > self.limit
            && let Some(number) = unfinished.by_age.keys().next().copied()
        {
            evicted.extend(unfinished.close(number).map(|eviction| (number, eviction)));
        }
        if unfinished.bytes + unfinished.closing_bytes > self.limit.saturating_mul(2) {
            evicted.extend(unfinished.close(share.number).map(|eviction| (share.number, eviction)));
        }
        evicted
    }

    /// Forgets a connection that is closed, or that has a whole head.
    fn remove(&self, number: u64) {
        let mut unfinished = self.unfinished();
        unfinished.close(number);
        let bytes = unfinished.closing.remove(&number).unwrap_or_default();
        unfinished.closing_bytes -= bytes;
    }

    fn unfinished(&self) -> MutexGuard<'_, Unfinished> {
        self.unfinished.lock()
    }
}

/// Share of one connection in the memory of its listener and of all. Given back on drop.
#[derive(Debug)]
pub(super) struct HeadPermit {
    memories: MemoryPair,
    share: Option<HeadShare>,
}

#[derive(Debug)]
struct HeadShare {
    number: u64,
    bytes: u64,
    eviction: Arc<Eviction>,
}

/// Decision on a connection that asks for memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadDecision {
    /// The connection may stay.
    Keep,
    /// Newer connections have no memory left: this one has to close.
    Evict,
}

impl HeadPermit {
    /// Creates a permit without a share.
    pub(super) const fn new(of_listener: Arc<HeadMemory>, of_all: Arc<HeadMemory>) -> Self {
        Self { memories: [of_listener, of_all], share: None }
    }

    /// Sets the share to `bytes`, of the connection that is polled with `waker`.
    pub(super) fn resize(&mut self, bytes: u64, waker: &Waker) -> HeadDecision {
        match &mut self.share {
            None if bytes == 0 => return HeadDecision::Keep,
            None => {
                let eviction = Eviction {
                    is_due: AtomicBool::new(false),
                    connection: waker.clone(),
                    memories: self.memories.clone(),
                };
                let [_, all] = &self.memories;
                let number = all.next.fetch_add(1, Ordering::Relaxed);
                self.share = Some(HeadShare { number, bytes, eviction: Arc::new(eviction) });
            }
            // A head that became whole at the last moment is whole.
            Some(_) if bytes == 0 => {
                self.release();
                return HeadDecision::Keep;
            }
            Some(share) if share.eviction.is_due() => return HeadDecision::Evict,
            Some(share) if share.bytes == bytes => return HeadDecision::Keep,
            Some(share) => share.bytes = bytes,
        }
        let Some(share) = &self.share else { return HeadDecision::Keep };
        for memory in &self.memories {
            // A connection for which its listener has no memory must not close others.
            if !share.eviction.is_due() {
                memory.set(share).iter().for_each(|(number, eviction)| eviction.order(*number));
            }
        }
        if share.eviction.is_due() { HeadDecision::Evict } else { HeadDecision::Keep }
    }

    fn release(&mut self) {
        if let Some(share) = self.share.take() {
            self.memories.iter().for_each(|memory| memory.remove(share.number));
        }
    }
}

impl Drop for HeadPermit {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(limit: u64) -> Arc<HeadMemory> {
        Arc::new(HeadMemory::new(ByteSize(limit)))
    }

    fn resize(permit: &mut HeadPermit, bytes: u64) -> HeadDecision {
        permit.resize(bytes, Waker::noop())
    }

    #[test]
    fn the_oldest_heads_give_way_to_newcomers() {
        let (all, listener) = (memory(1000), memory(30));
        let mut permits: Vec<_> =
            (0..5).map(|_| HeadPermit::new(Arc::clone(&listener), Arc::clone(&all))).collect();
        for permit in &mut permits {
            assert_eq!(resize(permit, 10), HeadDecision::Keep);
        }
        let decisions: Vec<_> = permits.iter_mut().map(|permit| resize(permit, 10)).collect();
        assert_eq!(decisions[..2], [HeadDecision::Evict; 2]);
        assert_eq!(decisions[2..], [HeadDecision::Keep; 3]);
        assert_eq!(listener.used(), 30);
        assert_eq!(resize(&mut permits[3], 0), HeadDecision::Keep, "its head is whole");
        assert_eq!(resize(&mut permits[3], 10), HeadDecision::Keep, "and its next one is new");
        assert_eq!(resize(&mut permits[4], 20), HeadDecision::Keep);
        assert_eq!(resize(&mut permits[2], 10), HeadDecision::Evict);
        drop(permits);
        assert_eq!((listener.used(), all.used()), (0, 0));
    }

    /// Threads are busy, and none of the connections that are to close has closed.
    #[test]
    fn closing_connections_are_bounded_too() {
        let (all, listener) = (memory(1000), memory(30));
        let mut permits: Vec<_> =
            (0..20).map(|_| HeadPermit::new(Arc::clone(&listener), Arc::clone(&all))).collect();
        let decisions: Vec<_> = permits.iter_mut().map(|permit| resize(permit, 10)).collect();
        assert_eq!(decisions[..6], [HeadDecision::Keep; 6]);
        assert_eq!(decisions[6..], [HeadDecision::Evict; 14]);
        permits.truncate(3);
        drop(permits);
        let mut next = HeadPermit::new(Arc::clone(&listener), Arc::clone(&all));
        assert_eq!(resize(&mut next, 10), HeadDecision::Keep, "there is memory again");
    }

    /// Another thread takes a connection out of the count while its own thread counts more bytes for it.
    #[test]
    fn a_connection_is_counted_once_while_it_closes() {
        let (all, listener) = (memory(1000), memory(30));
        let mut permit = HeadPermit::new(Arc::clone(&listener), Arc::clone(&all));
        resize(&mut permit, 10);
        let eviction = listener.unfinished().close(0).unwrap();
        assert_eq!(resize(&mut permit, 20), HeadDecision::Keep, "the order has not arrived yet");
        eviction.order(0);
        assert_eq!(resize(&mut permit, 30), HeadDecision::Evict);
        assert_eq!((listener.used(), all.used()), (0, 0));
        drop(permit);
        for memory in [listener, all] {
            let unfinished = memory.unfinished();
            assert!(unfinished.by_age.is_empty() && unfinished.closing.is_empty());
            assert_eq!((unfinished.bytes, unfinished.closing_bytes), (0, 0));
        }
    }

    #[test]
    fn a_listener_cannot_take_memory_of_another() {
        let all = memory(50);
        let (one, other) = (memory(30), memory(30));
        let mut slow = HeadPermit::new(other, Arc::clone(&all));
        resize(&mut slow, 10);
        let mut flood = Vec::new();
        for _ in 0..100 {
            let mut permit = HeadPermit::new(Arc::clone(&one), Arc::clone(&all));
            resize(&mut permit, 10);
            flood.push(permit);
            flood.retain_mut(|permit| resize(permit, 10) == HeadDecision::Keep);
        }
        assert_eq!(one.used(), 30);
        assert_eq!(resize(&mut slow, 20), HeadDecision::Keep, "older, and of another listener");
        assert_eq!(resize(&mut flood[2], 40), HeadDecision::Evict, "more than there is for one listener");
        drop(flood);
        assert_eq!(all.used(), 20);
    }
}
