//! Limits the connections of one run, on the shared listener, and of all. Descriptors are left for the
//! upstream, the journal and control. One listener never has more connections than are left for all others.
//! So a run without any finds one, however low the limit is.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use platform_core::limit::ByteSize;
use platform_runtime::settings::Connections;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::head_memory::{HeadMemory, HeadPermit};

/// A number of things that there may be at a time.
#[derive(Debug)]
pub(crate) struct Room {
    most: u64,
    taken: AtomicU64,
}

/// Room for some of them. Given back on drop.
#[derive(Debug)]
pub(crate) struct Place {
    room: Arc<Room>,
    taken: u64,
}

impl Room {
    pub(crate) const fn new(most: u64) -> Self {
        Self { most, taken: AtomicU64::new(0) }
    }

    /// Room for `count` more, if there is.
    pub(crate) fn enter(self: &Arc<Self>, count: u64) -> Option<Place> {
        let fits = |taken: u64| taken.checked_add(count).filter(|sum| *sum <= self.most);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(Place { room: Arc::clone(self), taken: count })
    }

    /// The same, where there may be `most` at the moment.
    fn enter_below(self: &Arc<Self>, most: u64) -> Option<Place> {
        let fits = |taken: u64| (taken < self.most.min(most)).then_some(taken + 1);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(Place { room: Arc::clone(self), taken: 1 })
    }

    fn left(&self) -> u64 {
        self.most.saturating_sub(self.taken.load(Ordering::Relaxed))
    }

    /// The same for what is there whether or not there is room.
    pub(crate) fn count(self: &Arc<Self>, count: u64) -> Place {
        self.taken.fetch_add(count, Ordering::Relaxed);
        Place { room: Arc::clone(self), taken: count }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(self.taken, Ordering::Relaxed);
    }
}

/// Descriptors for a connection: its own and one to the upstream.
const PER_CONNECTION: u64 = 2;
/// Descriptors that are never for connections: the journal, control, state, metrics.
const RESERVE: u64 = 64;
/// The same for each thread: event queues, idle connections to the upstream.
const RESERVE_PER_THREAD: u64 = 8;
/// Connections that there may always be.
const LEAST: u64 = 16;

/// Limits that all connections of this process share.
#[derive(Debug, Clone)]
pub(crate) struct Rooms {
    /// Counted in descriptors; listeners of runs take some of it.
    descriptors: Arc<Room>,
    connections: Arc<Room>,
    shared: ListenerLimits,
    of_a_run: u64,
    heads: Arc<HeadMemory>,
    heads_of_listener: ByteSize,
    complaints: Arc<Complaints>,
}

/// Limits of the connections of one listener.
#[derive(Debug, Clone)]
pub(crate) struct ListenerLimits {
    connections: Arc<Room>,
    heads: Arc<HeadMemory>,
}

/// Permits of one connection, given back on drop.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) connection: [Place; 3],
    pub(super) heads: HeadPermit,
}

impl Rooms {
    /// Creates the limits for `threads` threads under this process's limit of descriptors.
    pub(crate) fn new(caps: Connections, threads: usize) -> Self {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let reserve = RESERVE + RESERVE_PER_THREAD * threads as u64;
        let descriptors = limit.saturating_sub(reserve).max(LEAST * PER_CONNECTION);
        let all = caps.all.map_or(u64::MAX, u64::from).min(descriptors / PER_CONNECTION);
        Self {
            descriptors: Arc::new(Room::new(descriptors)),
            connections: Arc::new(Room::new(all)),
            shared: ListenerLimits {
                // Clients of that listener must not be able to shut out those with a socket of their own.
                connections: Arc::new(Room::new(u64::from(caps.listen).min(all.div_ceil(2)))),
                heads: Arc::new(HeadMemory::new(caps.listener_heads)),
            },
            of_a_run: caps.run.into(),
            heads: Arc::new(HeadMemory::new(caps.all_heads)),
            heads_of_listener: caps.listener_heads,
            complaints: Arc::default(),
        }
    }

    /// Returns the memory of the unfinished heads of all connections.
    pub(crate) fn heads(&self) -> Arc<HeadMemory> {
        Arc::clone(&self.heads)
    }

    /// Returns limits for the connections of one run.
    pub(super) fn of_a_run(&self) -> ListenerLimits {
        ListenerLimits {
            connections: Arc::new(Room::new(self.of_a_run)),
            heads: Arc::new(HeadMemory::new(self.heads_of_listener)),
        }
    }

    /// Takes a descriptor for a listener.
    pub(super) fn listener(&self) -> Place {
        self.descriptors.count(1)
    }

    /// Room for a connection on the shared listener.
    pub(super) fn enter_shared(&self) -> Option<Places> {
        self.enter(&self.shared)
    }

    /// Room for a connection of a listener that has so many at most, and no more than are left for all others.
    pub(super) fn enter(&self, own: &ListenerLimits) -> Option<Places> {
        let left = self.connections.left().min(self.descriptors.left() / PER_CONNECTION);
        let places = || {
            let own = own.connections.enter_below(left)?;
            Some([own, self.connections.enter(1)?, self.descriptors.enter(PER_CONNECTION)?])
        };
        let heads = || HeadPermit::new(Arc::clone(&own.heads), Arc::clone(&self.heads));
        let places = places().map(|connection| Places { connection, heads: heads() });
        if places.is_none() {
            self.complaints
                .tell(|untold| tracing::warn!(untold, "as many connections are open as there may be"));
        }
        places
    }

    /// Waits after an accept that failed: without descriptors it would fail again at once. What waits to be accepted
    /// stays with the kernel.
    pub(super) async fn wait_after(&self, error: &io::Error, failures: u32) {
        self.complaints.tell(|untold| tracing::warn!(untold, %error, "cannot accept"));
        tokio::time::sleep(pause(failures)).await;
    }
}

/// Returns how long to wait after so many failures in a row, instead of spinning.
pub(crate) fn pause(failures: u32) -> Duration {
    Duration::from_millis(50 << failures.min(4))
}

/// Complaints that come once a second at most, however many there are to make.
#[derive(Debug)]
pub(crate) struct Complaints {
    began: Instant,
    /// In seconds since then, counted from 1.
    last: AtomicU64,
    untold: AtomicU64,
}

impl Default for Complaints {
    fn default() -> Self {
        Self { began: Instant::now(), last: AtomicU64::new(0), untold: AtomicU64::new(0) }
    }
}

impl Complaints {
    /// Makes one, and says how many were not made since the last.
    pub(crate) fn tell(&self, complain: impl FnOnce(u64)) {
        let now = self.began.elapsed().as_secs() + 1;
        if self.last.swap(now, Ordering::Relaxed) == now {
            self.untold.fetch_add(1, Ordering::Relaxed);
        } else {
            complain(self.untold.swap(0, Ordering::Relaxed));
        }
    }
}

/// Raises this process's limit of descriptors as far as it may.
pub(crate) fn raise_descriptor_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::warn!(%error, ?current, "the limit of open files cannot be raised");
    }
}

#[cfg(test)]
mod tests {
    use platform_core::limit::Millis;

    use super::*;

    fn rooms(all: u32, run: u32) -> Rooms {
        let (header_read, keep_alive) = (Millis::seconds(1), Millis::seconds(1));
        let (all_heads, listener_heads) = (ByteSize::mib(1), ByteSize::mib(1));
        let caps = Connections {
            all: Some(all),
            run,
            listen: 4096,
            header_read,
            keep_alive,
            all_heads,
            listener_heads,
        };
        Rooms::new(caps, 2)
    }

    fn fill(rooms: &Rooms, own: &ListenerLimits) -> Vec<Places> {
        std::iter::from_fn(|| rooms.enter(own)).collect()
    }

    #[test]
    fn there_are_never_more_than_there_is_room_for() {
        let rooms = rooms(6, 3);
        let (one, other) = (rooms.of_a_run(), rooms.of_a_run());
        let of_one = fill(&rooms, &one);
        let of_other = fill(&rooms, &other);
        assert_eq!((of_one.len(), of_other.len()), (3, 2), "and one is left for a third");
        drop(of_one);
        let shared: Vec<_> = std::iter::from_fn(|| rooms.enter_shared()).collect();
        assert_eq!(shared.len(), 2, "as many as are left");
        drop(of_other);
        let more: Vec<_> = std::iter::from_fn(|| rooms.enter_shared()).collect();
        assert_eq!(more.len(), 1, "half of all");
        drop((shared, more));
        let of_listeners = [&rooms.shared, &one, &other].map(|limits| &limits.connections);
        for room in of_listeners.into_iter().chain([&rooms.connections, &rooms.descriptors]) {
            assert_eq!(room.taken.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn many_greedy_runs_leave_one_for_another() {
        let rooms = rooms(88, 512);
        let greedy: Vec<_> = (0..5).map(|_| fill(&rooms, &rooms.of_a_run())).collect();
        let counts: Vec<_> = greedy.iter().map(Vec::len).collect();
        assert_eq!(counts, [44, 22, 11, 6, 3]);
        assert!(rooms.enter(&rooms.of_a_run()).is_some());
    }

    #[test]
    fn listeners_leave_less_room_for_connections() {
        let room = Arc::new(Room::new(5));
        let listeners: Vec<_> = (0..6).map(|_| room.count(1)).collect();
        assert!(room.enter(2).is_none());
        drop(listeners);
        assert!(room.enter(5).is_some());
    }

    #[test]
    fn complaints_come_once_a_second() {
        let complaints = Complaints::default();
        let mut made = 0;
        for _ in 0..1000 {
            complaints.tell(|_| made += 1);
        }
        assert!((1..100).contains(&made), "{made}");
    }
}
