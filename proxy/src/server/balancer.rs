//! Spreads connections over the data-plane threads: each goes to the thread that has the fewest.
//!
//! The thread that accepts a connection hands it over whole, which wakes the other thread once. All its calls are served
//! there, and wake no other thread.

use std::sync::Arc;

use tokio::sync::mpsc::{self, error::TrySendError};

use super::{
    accepted::AcceptedConnection,
    thread_load::{LoadShare, ThreadLoad},
};

/// Connections that other threads hand to one.
pub(crate) type ConnectionQueue = mpsc::Receiver<AcceptedConnection>;

/// Most connections that wait in such a queue. Where there are more, a thread does not keep up.
const MAX_QUEUED_CONNECTIONS: usize = 64;

/// The data-plane threads, as one of them sees them when it accepts a connection.
#[derive(Debug)]
pub(crate) struct ConnectionBalancer {
    threads: Arc<[HandoverTarget]>,
    own: usize,
}

/// Part of a thread in the spreading of connections.
#[derive(Debug)]
pub(crate) struct BalancedThread {
    pub(crate) balancer: ConnectionBalancer,
    /// Connections that other threads hand to this one.
    pub(crate) handed_over: ConnectionQueue,
}

/// A thread that connections can be handed to.
#[derive(Debug)]
struct HandoverTarget {
    load: Arc<ThreadLoad>,
    queue: mpsc::Sender<AcceptedConnection>,
}

impl ConnectionBalancer {
    /// Creates the parts of `count` threads.
    pub(crate) fn for_threads(count: usize) -> impl Iterator<Item = BalancedThread> {
        let (threads, queues): (Vec<_>, Vec<_>) = (0..count)
            .map(|_| {
                let (queue, connections) = mpsc::channel(MAX_QUEUED_CONNECTIONS);
                (HandoverTarget { load: Arc::default(), queue }, connections)
            })
            .unzip();
        let threads: Arc<[_]> = threads.into();
        queues.into_iter().enumerate().map(move |(own, handed_over)| {
            let balancer = Self { threads: Arc::clone(&threads), own };
            BalancedThread { balancer, handed_over }
        })
    }

    /// Returns the load of the thread itself.
    pub(crate) fn own_load(&self) -> &Arc<ThreadLoad> {
        &self.threads[self.own].load
    }

    /// Gives the connection that `accepted` makes to the thread with the fewest. Returns it if this thread has to serve
    /// it: as the one with the fewest, or because the other takes none.
    pub(super) fn place(
        &self,
        accepted: impl FnOnce(LoadShare) -> AcceptedConnection,
    ) -> Option<AcceptedConnection> {
        let index = self.least_loaded();
        let thread = &self.threads[index];
        let connection = accepted(thread.load.add_connection());
        if index == self.own {
            return Some(connection);
        }
        match thread.queue.try_send(connection) {
            Ok(()) => None,
            // That thread does not keep up, or has stopped before this one.
            Err(TrySendError::Full(connection) | TrySendError::Closed(connection)) => {
                Some(AcceptedConnection { load: self.own_load().add_connection(), ..connection })
            }
        }
    }

    /// Returns the thread with the fewest connections; itself if no other has fewer.
    fn least_loaded(&self) -> usize {
        let connections = |index: &usize| self.threads[*index].load.connections();
        (0..self.threads.len())
            .min_by_key(|index| (connections(index), *index != self.own))
            .unwrap_or(self.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_spread_evenly_and_stay_on_ties() {
        let balancers: Vec<_> = ConnectionBalancer::for_threads(4).map(|thread| thread.balancer).collect();
        let place = |own: usize| {
            let index = balancers[own].least_loaded();
            (index, balancers[own].threads[index].load.add_connection())
        };
        let mut placed: Vec<_> = (0..16).map(|_| place(2)).collect();
        assert_eq!(placed[0].0, 2, "the thread that accepts keeps one if none has fewer");
        for thread in 0..4 {
            assert_eq!(placed.iter().filter(|(index, _)| *index == thread).count(), 4, "thread {thread}");
        }
        placed.retain(|(index, _)| *index != 1);
        let (next, _share) = place(2);
        assert_eq!(next, 1, "four connections have ended there");
    }
}
