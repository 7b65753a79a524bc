//! Spreads connections over the data-plane threads: each goes to the thread that has the fewest.
//!
//! The thread that accepts a connection hands it over whole, which wakes the other thread once. All its calls are served
//! there, and wake no other thread.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use platform_runtime::report;
use tokio::sync::mpsc::{self, error::TrySendError};

use super::{
    accepted::{AcceptedConnection, AcceptedStream},
    service::{CallService, ServerContext},
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

    /// Returns the thread with the fewest connections; itself if no other has fewer.
    fn least_loaded(&self) -> usize {
        let connections = |index: &usize| self.threads[*index].load.connections.load(Ordering::Relaxed);
        (0..self.threads.len())
            .min_by_key(|index| (connections(index), *index != self.own))
            .unwrap_or(self.own)
    }
}

/// Serves `stream` on the thread that has the fewest connections, as the connection that `accepted` makes of it.
pub(super) fn serve_balanced<C: CallService>(
    context: &Arc<ServerContext<C>>,
    stream: io::Result<AcceptedStream>,
    accepted: impl FnOnce(AcceptedStream, LoadShare) -> AcceptedConnection,
) {
    let stream = match stream {
        Ok(stream) => stream,
        Err(error) => {
            tracing::warn!(error = report::chain(&error), "connection closed: it cannot be handed over");
            return;
        }
    };
    let balancer = &context.balancer;
    let index = balancer.least_loaded();
    let thread = &balancer.threads[index];
    let connection = accepted(stream, thread.load.add_connection());
    if index == balancer.own {
        connection.start(context);
    } else if let Err(TrySendError::Full(connection) | TrySendError::Closed(connection)) =
        thread.queue.try_send(connection)
    {
        // That thread does not keep up, or has stopped before this one.
        AcceptedConnection { load: balancer.own_load().add_connection(), ..connection }.start(context);
    }
}

/// Serves the connections that other threads hand over, until its task ends.
pub(crate) async fn serve_handed_over<C: CallService>(
    context: Arc<ServerContext<C>>,
    mut handed_over: ConnectionQueue,
) {
    while let Some(connection) = handed_over.recv().await {
        connection.start(&context);
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

    #[test]
    fn listeners_count_where_the_next_one_opens() {
        let load = Arc::new(ThreadLoad::default());
        let shares = (load.add_listener(), load.add_connection());
        assert_eq!(load.total(), 2);
        drop(shares);
        assert_eq!(load.total(), 0);
    }
}
