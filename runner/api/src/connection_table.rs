//! Bounds the open connections, and decides which one gives way to the next if the table is full.
//!
//! A connection counts for the address of its client, or for the principal that its latest request names. Of those that
//! wait for their clients, the oldest of the holder with most of them gives way. Only if none waits, one with a request
//! that is being answered gives way: first without a principal, then with one. So a client without a credential cannot
//! keep others out, and one with a credential loses its own first.
//!
//! Does not limit what a request may do: `stream_permits` and `fair_permits` do.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use platform_core::id::PrincipalId;
use platform_runtime::{accept::RateLimitedLog, settings::IpNetwork};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Bits of an IPv6 address that its client cannot choose: a host has a network of 64 bits.
const IPV6_PREFIX: u8 = 64;

/// Open connections. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionTable(Arc<SharedTable>);

#[derive(Debug)]
struct SharedTable {
    permits: Arc<Semaphore>,
    open: Mutex<OpenConnections>,
    log: RateLimitedLog,
}

#[derive(Debug, Default)]
struct OpenConnections {
    /// Number of the next connection, and age of the next request.
    next: u64,
    by_number: BTreeMap<u64, TrackedConnection>,
}

#[derive(Debug)]
struct TrackedConnection {
    holder: ConnectionHolder,
    stage: Stage,
    /// Age of its request: lower is older. A connection without one waits for its first.
    age: u64,
    eviction: CancellationToken,
}

/// Party for which a connection counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ConnectionHolder {
    Client(IpNetwork),
    Principal(PrincipalId),
}

/// Progress of a connection's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The client has to send something: a handshake, a head, or the rest of a body.
    Waiting,
    /// The request is whole.
    Answering,
}

/// Connections that give way before others: the lower ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Precedence {
    Waiting,
    Unidentified,
    Identified,
}

/// Connection that is open until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    entry: ConnectionEntry,
    eviction: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

/// Entry of a connection, to which its requests report their progress. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionEntry {
    table: ConnectionTable,
    number: u64,
}

impl ConnectionTable {
    /// Creates a table with room for `most` connections.
    pub(crate) fn new(most: usize) -> Self {
        let permits = Arc::new(Semaphore::new(most));
        Self(Arc::new(SharedTable { permits, open: Mutex::default(), log: RateLimitedLog::default() }))
    }

    /// Adds a connection from `address`. If the table is full, another gives way, and this waits for its end. Cancel
    /// safe.
    ///
    /// Returns `None` never in practice: the semaphore is not closed.
    pub(crate) async fn enter(&self, address: IpAddr) -> Option<OpenConnection> {
        let permits = &self.0.permits;
        let permit = match Arc::clone(permits).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_none_left) => {
                self.evict_one();
                Arc::clone(permits).acquire_owned().await.ok()?
            }
        };
        let eviction = CancellationToken::new();
        let mut open = self.open();
        let number = open.take_next();
        let state = TrackedConnection {
            holder: ConnectionHolder::at(address),
            stage: Stage::Waiting,
            age: number,
            eviction: eviction.clone(),
        };
        open.by_number.insert(number, state);
        drop(open);
        Some(OpenConnection {
            entry: ConnectionEntry { table: self.clone(), number },
            eviction,
            _permit: permit,
        })
    }

    fn evict_one(&self) {
        let mut open = self.open();
        let victim = open.victim().and_then(|number| open.by_number.remove(&number));
        drop(open);
        let Some(TrackedConnection { holder, eviction, .. }) = victim else { return };
        eviction.cancel();
        self.0.log.write(|suppressed| {
            tracing::warn!(
                suppressed,
                %holder,
                "an API connection gave way: as many are open as may be, and its holder has most of those that wait"
            );
        });
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connections of one holder that may give way. The greatest has to.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Share {
    connections: usize,
    /// Age and number of the oldest.
    oldest: Reverse<(u64, u64)>,
}

impl OpenConnections {
    const fn take_next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Returns the number of the connection that gives way.
    fn victim(&self) -> Option<u64> {
        let precedence = self.by_number.values().map(TrackedConnection::precedence).min()?;
        let mut shares: HashMap<&ConnectionHolder, Share> = HashMap::new();
        for (number, connection) in &self.by_number {
            if connection.precedence() == precedence {
                let own = Reverse((connection.age, *number));
                let share = shares.entry(&connection.holder).or_insert(Share { connections: 0, oldest: own });
                share.connections += 1;
                share.oldest = share.oldest.max(own);
            }
        }
        shares.into_values().max().map(|Share { oldest: Reverse((_, number)), .. }| number)
    }
}

impl TrackedConnection {
    const fn precedence(&self) -> Precedence {
        match (self.stage, &self.holder) {
            (Stage::Waiting, _) => Precedence::Waiting,
            (Stage::Answering, ConnectionHolder::Client(_)) => Precedence::Unidentified,
            (Stage::Answering, ConnectionHolder::Principal(_)) => Precedence::Identified,
        }
    }
}

impl ConnectionHolder {
    /// Returns the holder at `address`. All addresses of the loopback are one host.
    fn at(address: IpAddr) -> Self {
        let address = address.to_canonical();
        let prefix = match address {
            IpAddr::V4(address) if address.is_loopback() => 8,
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => IPV6_PREFIX,
        };
        Self::Client(IpNetwork::around(address, prefix))
    }
}

impl fmt::Display for ConnectionHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(network) => network.fmt(f),
            Self::Principal(id) => id.fmt(f),
        }
    }
}

impl OpenConnection {
    pub(crate) fn entry(&self) -> ConnectionEntry {
        self.entry.clone()
    }

    /// Waits until the connection has to give way. Cancel safe.
    pub(crate) async fn evicted(&self) {
        self.eviction.cancelled().await;
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.entry.table.open().by_number.remove(&self.entry.number);
    }
}

impl ConnectionEntry {
    /// Counts the connection for the client at `address`, which begins a request.
    pub(crate) fn begin(&self, address: IpAddr) {
        self.update(|state| state.holder = ConnectionHolder::at(address));
    }

    /// Counts the connection for the principal that sends the request.
    pub(crate) fn identify(&self, principal: &PrincipalId) {
        self.update(|state| state.holder = ConnectionHolder::Principal(principal.clone()));
    }

    /// Notes that the request is whole.
    pub(crate) fn receive(&self) {
        self.update(|state| state.stage = Stage::Answering);
    }

    /// Notes that the request is answered, and that the client may send another. The holder stays until then.
    pub(crate) fn finish(&self) {
        let age = self.table.open().take_next();
        self.update(|state| (state.stage, state.age) = (Stage::Waiting, age));
    }

    /// Changes the state of a connection that has not given way.
    fn update(&self, change: impl FnOnce(&mut TrackedConnection)) {
        if let Some(state) = self.table.open().by_number.get_mut(&self.number) {
            change(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// Table without room, with the connections that have not given way.
    struct FullTable {
        table: ConnectionTable,
        open: Vec<(&'static str, OpenConnection)>,
    }

    impl FullTable {
        /// Fills a table with connections from these addresses, the oldest first.
        fn of(addresses: &[&'static str]) -> Self {
            let mut full = Self { table: ConnectionTable::new(addresses.len()), open: Vec::new() };
            for address in addresses {
                let entered = full.table.enter(address.parse().unwrap()).now_or_never();
                full.open.push((address, entered.expect("there is room").unwrap()));
            }
            full
        }

        fn entry(&self, index: usize) -> ConnectionEntry {
            self.open[index].1.entry()
        }

        /// Enters another connection; returns the index of that which gave way.
        fn enter(&mut self, address: &'static str) -> usize {
            let mut entering = Box::pin(self.table.enter(address.parse().unwrap()));
            assert!(entering.as_mut().now_or_never().is_none(), "it waits for the end of another");
            let gone = self.open.iter().position(|(_, open)| open.eviction.is_cancelled());
            let gone = gone.expect("one gives way");
            self.open.remove(gone);
            let entered = entering.now_or_never().expect("there is room").unwrap();
            self.open.push((address, entered));
            gone
        }
    }

    fn principal(name: &str) -> PrincipalId {
        PrincipalId::parse(name).unwrap()
    }

    #[test]
    fn the_holder_of_most_gives_way() {
        let mut full = FullTable::of(&["10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.2"]);
        assert_eq!(full.enter("10.0.0.3"), 1, "the oldest of the second client");
        assert_eq!(full.enter("10.0.0.2"), 1);
        assert_eq!(full.enter("10.0.0.4"), 1);
        let left: Vec<_> = full.open.iter().map(|(address, _)| *address).collect();
        assert_eq!(
            left,
            ["10.0.0.1", "10.0.0.3", "10.0.0.2", "10.0.0.4"],
            "the first client keeps its only one"
        );
    }

    #[test]
    fn a_client_has_many_addresses() {
        for (of_one, other) in [
            (["127.0.0.1", "127.9.9.9"], "10.0.0.1"),
            (["2001:db8::1", "2001:db8::ffff:2"], "2001:db8:0:1::1"),
        ] {
            let mut full = FullTable::of(&[other, of_one[0], of_one[1]]);
            assert_eq!(full.enter(other), 1, "{other}");
        }
    }

    #[test]
    fn slow_bodies_of_a_principal_are_its_own() {
        let mut full = FullTable::of(&["10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3"]);
        for index in [0, 2, 3] {
            full.entry(index).identify(&principal("slow"));
        }
        assert_eq!(full.enter("10.0.0.1"), 0, "its addresses do not matter");
        assert_eq!(full.enter("10.0.0.4"), 0, "two of an address and two of a principal: the oldest");
    }

    #[test]
    fn answers_go_on_while_a_client_waits() {
        let mut full = FullTable::of(&["10.0.0.1", "10.0.0.1", "10.0.0.2"]);
        full.entry(0).receive();
        full.entry(1).receive();
        assert_eq!(full.enter("10.0.0.3"), 2, "the only one that waits");
        full.entry(2).identify(&principal("app"));
        full.entry(2).receive();
        full.entry(0).identify(&principal("app"));
        assert_eq!(full.enter("10.0.0.4"), 1, "all are answered, and this one names no principal");
        full.entry(2).identify(&principal("other"));
        full.entry(2).receive();
        assert_eq!(full.enter("10.0.0.5"), 0, "the oldest of the principal with two");
    }

    #[test]
    fn an_answered_connection_is_young_again() {
        let mut full = FullTable::of(&["10.0.0.1", "10.0.0.1"]);
        let first = full.entry(0);
        first.receive();
        first.finish();
        assert_eq!(full.enter("10.0.0.1"), 1);
    }

    #[test]
    fn a_request_may_be_forwarded_for_another() {
        let mut full = FullTable::of(&["10.0.0.1", "10.0.0.1", "10.0.0.1"]);
        full.entry(0).begin("192.0.2.1".parse().unwrap());
        assert_eq!(full.enter("10.0.0.1"), 1, "two are of the proxy itself");
    }

    #[test]
    fn a_closed_connection_is_forgotten() {
        let full = FullTable::of(&["10.0.0.1", "10.0.0.1"]);
        let (table, entry) = (full.table.clone(), full.entry(0));
        drop(full);
        entry.receive();
        entry.finish();
        assert!(table.open().by_number.is_empty());
        let entered = table.enter("10.0.0.1".parse().unwrap()).now_or_never();
        assert!(entered.is_some(), "and has left its room");
    }
}
