//! What a gateway tells everybody: requests for approval, its own shutdown, who is there.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{
    broadcast::{self, error::RecvError},
    watch,
};

use crate::link::Phase;

/// Notices that are kept for a subscriber that does not read.
pub(crate) const NOTICES_MAX: usize = 256;

/// Largest notice that is told.
pub(crate) const NOTICE_MAX: usize = 256 * 1024;

/// Events that are told: none of them has a conversation in it but requests for approval, which name their session.
const TOLD: [&str; 13] = [
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

/// Whether events of this name are told.
pub(crate) fn is_told(name: &str) -> bool {
    TOLD.contains(&name)
}

/// An event that is no run's.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// The event's name, such as `exec.approval.requested`.
    pub name: Arc<str>,
    /// What it says.
    pub payload: Arc<Value>,
}

/// What a subscriber hears.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// An event.
    Notice(Notice),
    /// So many events were not kept, because this subscriber was too slow.
    Missed(u64),
}

/// Hears notices from when it was made.
#[derive(Debug)]
pub struct Subscription {
    notices: broadcast::Receiver<Notice>,
    phase: watch::Receiver<Phase>,
}

impl Subscription {
    pub(crate) const fn new(notices: broadcast::Receiver<Notice>, phase: watch::Receiver<Phase>) -> Self {
        Self { notices, phase }
    }

    /// The next notice; none when the connection was closed for good. Cancel safe.
    pub async fn next(&mut self) -> Option<Heard> {
        let heard = tokio::select! {
            biased;
            heard = self.notices.recv() => heard,
            _ = self.phase.wait_for(Phase::is_failed) => return None,
        };
        match heard {
            Ok(notice) => Some(Heard::Notice(notice)),
            Err(RecvError::Lagged(missed)) => Some(Heard::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }
}

/// An answer to a request for approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// This once.
    AllowOnce,
    /// From now on.
    AllowAlways,
    /// No.
    Deny,
}

impl Decision {
    /// The decision on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AllowOnce => "allow-once",
            Self::AllowAlways => "allow-always",
            Self::Deny => "deny",
        }
    }
}
