//! Delivers events that a gateway sends to all clients: requests for approval, its own shutdown, presence.

use std::sync::Arc;

use platform_core::json::{Bounds, RawBuf};
use tokio::sync::{
    broadcast::{self, error::RecvError},
    watch,
};

use crate::connection_phase::ConnectionPhase;

/// Most notices that are kept for a subscriber that does not read.
pub(crate) const MAX_NOTICES: usize = 256;

/// Bounds of a notice that is delivered.
pub(crate) const NOTICE_BOUNDS: Bounds = Bounds::of(256 * 1024).with_values(10_000);

/// Events that are delivered. None of them has a conversation in it but requests for approval, which name their
/// session.
const PUBLISHED_EVENTS: [&str; 13] = [
    "cron",
    "device.pair.requested",
    "device.pair.resolved",
    "exec.approval.requested",
    "exec.approval.resolved",
    "gateway.suspension",
    "health",
    "heartbeat",
    "plugin.approval.requested",
    "plugin.approval.resolved",
    "presence",
    "shutdown",
    "update.available",
];

/// Returns whether events of this name are delivered.
pub(crate) fn is_published(name: &str) -> bool {
    PUBLISHED_EVENTS.contains(&name)
}

/// Event that belongs to no run.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// Name of the event, such as `exec.approval.requested`.
    pub name: Arc<str>,
    /// Content of the event.
    pub payload: Arc<RawBuf>,
}

/// Item that a subscriber receives.
#[derive(Debug, Clone, PartialEq)]
pub enum SubscriptionItem {
    /// An event.
    Notice(Notice),
    /// This subscriber was too slow, and missed this number of events.
    Missed(u64),
}

/// Receiver of the notices that come after its creation.
#[derive(Debug)]
pub struct Subscription {
    notices: broadcast::Receiver<Notice>,
    phase: watch::Receiver<ConnectionPhase>,
}

impl Subscription {
    pub(crate) const fn new(
        notices: broadcast::Receiver<Notice>,
        phase: watch::Receiver<ConnectionPhase>,
    ) -> Self {
        Self { notices, phase }
    }

    /// Returns the next notice; `None` when the connection was closed for good. Cancel safe.
    pub async fn next(&mut self) -> Option<SubscriptionItem> {
        let received = tokio::select! {
            biased;
            received = self.notices.recv() => received,
            _ = self.phase.wait_for(ConnectionPhase::is_failed) => return None,
        };
        match received {
            Ok(notice) => Some(SubscriptionItem::Notice(notice)),
            Err(RecvError::Lagged(missed)) => Some(SubscriptionItem::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }
}

/// Answer to a request for approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Allows the command this once.
    AllowOnce,
    /// Allows the command from now on.
    AllowAlways,
    /// Denies the command.
    Deny,
}

impl Decision {
    /// Returns the decision's name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AllowOnce => "allow-once",
            Self::AllowAlways => "allow-always",
            Self::Deny => "deny",
        }
    }
}
