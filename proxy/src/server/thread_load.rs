//! Counts the work of data-plane threads.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Work of one data-plane thread.
#[derive(Debug, Default)]
pub(crate) struct ThreadLoad {
    connections: AtomicU64,
    listeners: AtomicU64,
}

/// Part of a thread's work: a connection, or the listener of a run or gateway. Ends on drop.
#[derive(Debug)]
pub(crate) struct LoadShare {
    thread: Arc<ThreadLoad>,
    of: fn(&ThreadLoad) -> &AtomicU64,
}

impl ThreadLoad {
    /// Adds a connection.
    pub(super) fn add_connection(self: &Arc<Self>) -> LoadShare {
        self.add(|load| &load.connections)
    }

    /// Adds a listener.
    pub(crate) fn add_listener(self: &Arc<Self>) -> LoadShare {
        self.add(|load| &load.listeners)
    }

    /// Returns the load that counts where a listener is opened. One without connections counts as well: it is going to
    /// have some.
    pub(crate) fn total(&self) -> u64 {
        self.connections.load(Ordering::Relaxed) + self.listeners.load(Ordering::Relaxed)
    }

    /// Returns the number of connections.
    pub(super) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    fn add(self: &Arc<Self>, of: fn(&Self) -> &AtomicU64) -> LoadShare {
        of(self).fetch_add(1, Ordering::Relaxed);
        LoadShare { thread: Arc::clone(self), of }
    }
}

impl Drop for LoadShare {
    fn drop(&mut self) {
        (self.of)(&self.thread).fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_count_where_the_next_one_opens() {
        let load = Arc::new(ThreadLoad::default());
        let shares = (load.add_listener(), load.add_connection());
        assert_eq!(load.total(), 2);
        drop(shares);
        assert_eq!(load.total(), 0);
    }
}
