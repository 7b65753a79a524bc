//! Limits the connections of one run, on the shared listener, and of all. Descriptors are left for the upstream, the
//! journal and control. One listener never has more connections than are left for all others. So a run without
//! connections always gets one, however low the limit is.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use platform_core::limit::ByteSize;
use platform_runtime::{accept::RateLimitedLog, report, settings::Connections};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::head_memory::{HeadMemory, HeadPermit};

/// Limit of connections, or of descriptors, that are open at a time.
#[derive(Debug)]
pub(crate) struct ConnectionLimit {
    max: u64,
    acquired: AtomicU64,
}

/// Counted part of a limit. Given back on drop.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    limit: Arc<ConnectionLimit>,
    count: u64,
}

impl ConnectionLimit {
    pub(crate) const fn new(max: u64) -> Self {
        Self { max, acquired: AtomicU64::new(0) }
    }

    /// Acquires `count`, if the limit allows it.
    pub(crate) fn acquire(self: &Arc<Self>, count: u64) -> Option<ConnectionPermit> {
        let fits = |acquired: u64| acquired.checked_add(count).filter(|sum| *sum <= self.max);
        self.acquired.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(ConnectionPermit { limit: Arc::clone(self), count })
    }

    /// Acquires one, if fewer than `max` are acquired at the moment.
    fn acquire_below(self: &Arc<Self>, max: u64) -> Option<ConnectionPermit> {
        let fits = |acquired: u64| (acquired < self.max.min(max)).then_some(acquired + 1);
        self.acquired.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(ConnectionPermit { limit: Arc::clone(self), count: 1 })
    }

    /// Acquires `count`, also beyond the limit.
    pub(crate) fn acquire_anyway(self: &Arc<Self>, count: u64) -> ConnectionPermit {
        self.acquired.fetch_add(count, Ordering::Relaxed);
        ConnectionPermit { limit: Arc::clone(self), count }
    }

    fn available(&self) -> u64 {
        self.max.saturating_sub(self.acquired.load(Ordering::Relaxed))
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.limit.acquired.fetch_sub(self.count, Ordering::Relaxed);
    }
}

/// Descriptors for a connection: its own and one to the upstream.
const DESCRIPTORS_PER_CONNECTION: u64 = 2;
/// Descriptors that connections never get: for the journal, control, state, metrics.
const RESERVED_DESCRIPTORS: u64 = 64;
/// Descriptors per thread that connections never get: for event queues, idle connections to the upstream.
const RESERVED_DESCRIPTORS_PER_THREAD: u64 = 8;
/// Connections that are allowed however few descriptors there are.
const MIN_CONNECTIONS: u64 = 16;

/// Limits that all connections of this process share.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionLimits {
    /// Counted in descriptors; listeners of runs take some of it.
    descriptors: Arc<ConnectionLimit>,
    connections: Arc<ConnectionLimit>,
    shared: ListenerLimits,
    max_per_run: u64,
    heads: Arc<HeadMemory>,
    max_heads_per_listener: ByteSize,
    log: Arc<RateLimitedLog>,
}

/// Limits of the connections of one listener.
#[derive(Debug, Clone)]
pub(crate) struct ListenerLimits {
    connections: Arc<ConnectionLimit>,
    heads: Arc<HeadMemory>,
}

/// Permits of one connection, given back on drop.
#[derive(Debug)]
pub(super) struct ConnectionPermits {
    pub(super) connection: [ConnectionPermit; 3],
    pub(super) head: HeadPermit,
}

impl ConnectionLimits {
    /// Creates the limits for `threads` threads under this process's limit of descriptors.
    pub(crate) fn new(caps: Connections, threads: usize) -> Self {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let reserved = RESERVED_DESCRIPTORS + RESERVED_DESCRIPTORS_PER_THREAD * threads as u64;
        let descriptors = limit.saturating_sub(reserved).max(MIN_CONNECTIONS * DESCRIPTORS_PER_CONNECTION);
        let all = caps.max.map_or(u64::MAX, u64::from).min(descriptors / DESCRIPTORS_PER_CONNECTION);
        Self {
            descriptors: Arc::new(ConnectionLimit::new(descriptors)),
            connections: Arc::new(ConnectionLimit::new(all)),
            shared: ListenerLimits {
                // Clients of that listener must not be able to shut out those with their own socket.
                connections: Arc::new(ConnectionLimit::new(u64::from(caps.max_shared).min(all.div_ceil(2)))),
                heads: Arc::new(HeadMemory::new(caps.max_header_memory_per_listener)),
            },
            max_per_run: caps.max_per_run.into(),
            heads: Arc::new(HeadMemory::new(caps.max_header_memory)),
            max_heads_per_listener: caps.max_header_memory_per_listener,
            log: Arc::default(),
        }
    }

    /// Returns the memory of the unfinished heads of all connections.
    pub(crate) fn heads(&self) -> Arc<HeadMemory> {
        Arc::clone(&self.heads)
    }

    /// Returns the log of failures to accept, which all listeners share.
    pub(super) fn accept_log(&self) -> Arc<RateLimitedLog> {
        Arc::clone(&self.log)
    }

    /// Returns limits for the connections of one run.
    pub(super) fn for_run(&self) -> ListenerLimits {
        ListenerLimits {
            connections: Arc::new(ConnectionLimit::new(self.max_per_run)),
            heads: Arc::new(HeadMemory::new(self.max_heads_per_listener)),
        }
    }

    /// Acquires a descriptor for a listener.
    pub(super) fn acquire_for_listener(&self) -> ConnectionPermit {
        self.descriptors.acquire_anyway(1)
    }

    /// Acquires the permits of a connection on the shared listener.
    pub(super) fn acquire_shared(&self) -> Option<ConnectionPermits> {
        self.acquire(&self.shared)
    }

    /// Acquires the permits of a connection on a listener with the limits `own`, and with no more connections than are
    /// left for all others.
    pub(super) fn acquire(&self, own: &ListenerLimits) -> Option<ConnectionPermits> {
        let available =
            self.connections.available().min(self.descriptors.available() / DESCRIPTORS_PER_CONNECTION);
        let acquire_all = || {
            let own = own.connections.acquire_below(available)?;
            let connection = self.connections.acquire(1)?;
            Some([own, connection, self.descriptors.acquire(DESCRIPTORS_PER_CONNECTION)?])
        };
        let Some(connection) = acquire_all() else {
            self.log.write(|suppressed| {
                tracing::warn!(suppressed, "connection rejected: as many are open as the limits allow");
            });
            return None;
        };
        let head = HeadPermit::new(Arc::clone(&own.heads), Arc::clone(&self.heads));
        Some(ConnectionPermits { connection, head })
    }
}

/// Raises this process's limit of descriptors as far as it may.
pub(crate) fn raise_descriptor_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::warn!(error = report::chain(&error), ?current, "the limit of open files cannot be raised");
    }
}

#[cfg(test)]
mod tests {
    use platform_core::limit::Millis;

    use super::*;

    fn connection_limits(all: u32, run: u32) -> ConnectionLimits {
        let caps = Connections {
            max: Some(all),
            max_per_run: run,
            max_shared: 4096,
            header_read_timeout: Millis::seconds(1),
            keep_alive_timeout: Millis::seconds(1),
            client_gone_timeout: Millis::seconds(1),
            max_header_memory: ByteSize::mib(1),
            max_header_memory_per_listener: ByteSize::mib(1),
        };
        ConnectionLimits::new(caps, 2)
    }

    fn fill(limits: &ConnectionLimits, own: &ListenerLimits) -> Vec<ConnectionPermits> {
        std::iter::from_fn(|| limits.acquire(own)).collect()
    }

    #[test]
    fn connections_never_exceed_a_limit() {
        let limits = connection_limits(6, 3);
        let one = limits.for_run();
        let other = limits.for_run();
        let of_one = fill(&limits, &one);
        let of_other = fill(&limits, &other);
        assert_eq!((of_one.len(), of_other.len()), (3, 2), "and one is left for a third");
        drop(of_one);
        let shared: Vec<_> = std::iter::from_fn(|| limits.acquire_shared()).collect();
        assert_eq!(shared.len(), 2, "as many as are left");
        drop(of_other);
        let more: Vec<_> = std::iter::from_fn(|| limits.acquire_shared()).collect();
        assert_eq!(more.len(), 1, "half of all");
        drop((shared, more));
        let of_listeners = [&limits.shared, &one, &other].map(|limits| &limits.connections);
        for limit in of_listeners.into_iter().chain([&limits.connections, &limits.descriptors]) {
            assert_eq!(limit.acquired.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn many_greedy_runs_leave_one_for_another() {
        let limits = connection_limits(88, 512);
        let greedy: Vec<_> = (0..5).map(|_| fill(&limits, &limits.for_run())).collect();
        let counts: Vec<_> = greedy.iter().map(Vec::len).collect();
        assert_eq!(counts, [44, 22, 11, 6, 3]);
        assert!(limits.acquire(&limits.for_run()).is_some());
    }

    #[test]
    fn listeners_leave_fewer_descriptors() {
        let limit = Arc::new(ConnectionLimit::new(5));
        let listeners: Vec<_> = (0..6).map(|_| limit.acquire_anyway(1)).collect();
        assert!(limit.acquire(2).is_none());
        drop(listeners);
        assert!(limit.acquire(5).is_some());
    }
}
