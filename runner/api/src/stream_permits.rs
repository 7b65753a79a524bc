//! Bounds the streams that each caller holds open.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// Most streams of a caller at a time.
pub(crate) const MAX_STREAMS: usize = 32;

/// Numbers of open streams, by caller. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamPermits(Arc<Mutex<HashMap<String, usize>>>);

/// Permit for a stream, which is given back on drop.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    permits: StreamPermits,
    caller: String,
}

impl StreamPermits {
    /// Returns a permit for a stream of `caller`; `None` if it has as many as it may.
    pub(crate) fn acquire(&self, caller: String) -> Option<StreamPermit> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(caller.clone()).or_default();
        if *count >= MAX_STREAMS {
            return None;
        }
        *count += 1;
        drop(open);
        Some(StreamPermit { permits: self.clone(), caller })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.permits.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_has_permits_of_its_own() {
        let permits = StreamPermits::default();
        let acquire = |caller: &str| permits.acquire(caller.to_owned());
        let held: Vec<_> = (0..MAX_STREAMS).map(|_| acquire("ann").unwrap()).collect();
        assert!(acquire("ann").is_none());
        assert!(acquire("bob").is_some());
        drop(held);
        assert!(acquire("ann").is_some());
        assert!(permits.0.lock().unwrap().is_empty(), "no caller is remembered without a stream");
    }
}
