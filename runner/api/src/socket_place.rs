//! Lets a WebSocket stay in the table of connections: it counts there for its principal, and gives way as others do.

use platform_core::id::PrincipalId;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::connection_table::ConnectionEntry;

/// Place of a connection that may leave HTTP. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct SocketPlace {
    entry: ConnectionEntry,
    tasks: TaskTracker,
    /// Ends the socket with its connection.
    end: CancellationToken,
}

impl SocketPlace {
    /// Returns the place of the connection of `entry`.
    pub(crate) fn of(entry: ConnectionEntry) -> Self {
        Self { entry, tasks: TaskTracker::new(), end: CancellationToken::new() }
    }

    /// Counts the connection for the principal at its other end, and as one that is being answered.
    pub(crate) fn identify(&self, principal: &PrincipalId) {
        self.entry.identify(principal);
        self.entry.receive();
    }

    /// Returns the work of a socket, which ends once the connection gives way.
    pub(crate) fn hold<F: Future<Output = ()>>(&self, serving: F) -> impl Future<Output = ()> + use<F> {
        let end = self.end.clone();
        let serving = async move {
            end.run_until_cancelled(serving).await;
        };
        self.tasks.track_future(serving)
    }

    /// Waits for the end of the socket, if the connection has become one. Ends it if it is not waited for any more.
    pub(crate) async fn ended(&self) {
        let _ends = self.end.clone().drop_guard();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
