//! Describes whether a connection is up, for its handles and subscribers.

use std::sync::Arc;

use crate::{error::Error, hello::Hello};

/// State of a connection.
#[derive(Debug, Clone)]
pub(crate) enum ConnectionPhase {
    /// No connection, for this reason if there was an attempt.
    Down(Option<Error>),
    /// An open connection.
    Up(Arc<OpenConnection>),
    /// No connection now or later.
    Failed(Error),
}

impl ConnectionPhase {
    pub(crate) const fn is_failed(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

/// Connection that is up.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    pub(crate) hello: Hello,
    /// Number of this connection.
    pub(crate) number: u64,
    /// Number of the gateway's start, counted by this client: the gateway has forgotten turns of earlier starts.
    pub(crate) boot_number: u64,
}
