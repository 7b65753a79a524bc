//! Hands out stored events in order, and reports those that were removed.

use std::collections::VecDeque;

use runner_store::Event;

use super::FollowEvent;

/// Stored events that were read, and not yet handed out.
#[derive(Debug)]
pub(super) struct StoredEvents {
    read: VecDeque<Event>,
    /// Number of the last event that was read.
    after: u64,
    /// Number of the last event that was handed out or reported as pruned.
    reported: u64,
}

impl StoredEvents {
    /// Returns an empty queue of the events after the one numbered `after`.
    pub(super) const fn after(after: u64) -> Self {
        Self { read: VecDeque::new(), after, reported: after }
    }

    /// Returns the number of the last event that was read.
    pub(super) const fn last_read(&self) -> u64 {
        self.after
    }

    /// Adds events that were read.
    pub(super) fn add(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.after = event.seq;
            self.read.push_back(event);
        }
    }

    /// Returns the next item. A gap in the numbers means that events were removed.
    pub(super) fn next(&mut self) -> Option<FollowEvent> {
        let seq = self.read.front()?.seq;
        let count = seq.saturating_sub(self.reported).saturating_sub(1);
        if count > 0 {
            self.reported = seq - 1;
            return Some(FollowEvent::Pruned { count, upto: self.reported });
        }
        self.reported = seq;
        self.read.pop_front().map(FollowEvent::Stored)
    }
}
