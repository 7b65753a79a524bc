//! unasked counts what a server sends without being asked, over a moving time.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::ServerError;

/// Time over which what was not asked for is counted.
const COUNT_INTERVAL: Duration = Duration::from_secs(10);
/// Most messages of a window that were not asked for.
const MAX_UNASKED: u32 = 1000;
/// Most bytes of a window that were not asked for, standard error included.
const MAX_UNASKED_BYTES: usize = 8 << 20;

/// Count of what was not asked for.
pub(super) struct Unasked {
    since: Instant,
    messages: u32,
    bytes: usize,
}

impl Unasked {
    pub(super) fn new() -> Self {
        Self { since: Instant::now(), messages: 0, bytes: 0 }
    }

    /// Counts messages and bytes.
    ///
    /// # Errors
    /// [`ServerError::Flood`].
    pub(super) fn add(&mut self, messages: u32, bytes: usize) -> Result<(), ServerError> {
        if self.since.elapsed() >= COUNT_INTERVAL {
            *self = Self::new();
        }
        self.messages += messages;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.messages > MAX_UNASKED {
            return Err(ServerError::Flood { limit: "1000 messages in 10 s" });
        }
        if self.bytes > MAX_UNASKED_BYTES {
            return Err(ServerError::Flood { limit: "8 MiB in 10 s" });
        }
        Ok(())
    }
}
