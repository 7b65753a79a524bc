//! Reads a run's tap for one watcher.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use platform_core::control::TapLine;

use super::{Ring, State};

/// Watcher of a run, until dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    pub(super) ring: Arc<Ring>,
    /// Number of the next line to return.
    pub(super) next: u64,
}

impl Watcher {
    /// Returns the next line, as soon as there is one; `None` once no more will come. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<TapLine> {
        loop {
            let more = self.ring.more.notified();
            tokio::pin!(more);
            // Before the check, so that no line is missed in between.
            more.as_mut().enable();
            {
                let contents = self.ring.contents();
                if let Some(line) = contents.line(&mut self.next) {
                    return Some(line);
                }
                if contents.state == State::Closed {
                    return None;
                }
            }
            more.await;
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut contents = self.ring.contents();
        // Under its lock, so that `Rings::release_unwatched` sees both changes or none.
        if self.ring.watchers.fetch_sub(1, Ordering::Relaxed) == 1 && contents.state == State::Open {
            contents.state = State::Left(Instant::now());
        }
    }
}
