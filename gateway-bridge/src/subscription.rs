//! What a gateway tells everybody: requests for approval, its own shutdown, who is there.

use std::sync::Arc;

use serde_json::Value;

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
pub struct Subscription {}

impl Subscription {
    /// The next notice; none when the connection was closed for good. Cancel safe.
    pub async fn next(&mut self) -> Option<Heard> {
        None
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
