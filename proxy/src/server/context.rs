//! Defines what a data-plane thread needs to serve connections.

use std::sync::Arc;

use super::{balancer::ConnectionBalancer, connection_limits::ConnectionLimits, write_tracker::WriteTracker};
use crate::freezes::Freezes;

/// Everything a data-plane thread needs to serve connections.
#[derive(Debug)]
pub(crate) struct ServerContext<C> {
    /// Answers the requests.
    pub(crate) calls: C,
    /// Freezes that an operator has set.
    pub(crate) freezes: Arc<Freezes>,
    pub(crate) connection_limits: ConnectionLimits,
    /// All threads, over which connections are spread.
    pub(crate) balancer: ConnectionBalancer,
    /// Answers that clients have not taken yet.
    pub(crate) write_tracker: Arc<WriteTracker>,
}
