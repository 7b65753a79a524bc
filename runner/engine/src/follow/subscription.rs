//! Subscribes to the feed of a run.
//!
//! A subscriber gets each stored event once, in order. If it comes late or is too slow, it reads the events that it lacks
//! from the store. Live text that it lacks is lost, and counted.

use std::{mem, time::Duration};

use platform_core::id::RunId;
use runner_store::Error;
use tokio::time::sleep;

use super::{
    FollowEvent,
    feed::{FeedItem, Feeds, Joined},
    stored_events::StoredEvents,
};

/// Delay before a subscriber joins another feed after its own has failed.
const REJOIN_DELAY: Duration = Duration::from_secs(1);

/// Subscriber of a run's events.
#[derive(Debug)]
pub struct Subscription {
    feeds: Feeds,
    run_id: RunId,
    events: StoredEvents,
    state: SubscriptionState,
}

/// State of a subscriber, which decides where its next events come from.
#[derive(Debug, Default)]
enum SubscriptionState {
    /// Reads the store, and belongs to no feed.
    #[default]
    Behind,
    /// Reads the store, and belongs to a feed that may have sent events before.
    CatchingUp(Joined),
    /// Waits for its feed, and has all stored events.
    Current(Joined),
    /// Reads the store, because its feed has closed: the run has ended, or the reader has failed.
    Left,
}

impl Feeds {
    /// Returns a subscriber of the run's events after the one numbered `after`.
    #[must_use]
    pub fn subscribe(&self, run_id: &RunId, after: u64) -> Subscription {
        Subscription {
            feeds: self.clone(),
            run_id: run_id.clone(),
            events: StoredEvents::after(after),
            state: SubscriptionState::Behind,
        }
    }
}

impl Subscription {
    /// Returns the next item; `None` once the run has ended and all its events were returned. Cancel safe.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the run does not exist, and others if the store fails.
    pub async fn next(&mut self) -> Result<Option<FollowEvent>, Error> {
        loop {
            if let Some(item) = self.events.next() {
                return Ok(Some(item));
            }
            if let SubscriptionState::Current(joined) = &mut self.state {
                match joined.next(self.events.last_read()).await {
                    FeedItem::Live(event) => return Ok(Some(FollowEvent::Live(event))),
                    FeedItem::Stored(event) => self.events.add([event]),
                    FeedItem::Gap => self.fall_behind(),
                    FeedItem::Closed => self.state = SubscriptionState::Left,
                }
                continue;
            }
            let (run, events) =
                self.feeds.store().events_after(&self.run_id, self.events.last_read()).await?;
            if !events.is_empty() {
                self.events.add(events);
            } else if run.state.is_final() {
                return Ok(None);
            } else {
                self.advance().await?;
            }
        }
    }

    /// Moves a subscriber that has all stored events closer to its feed. Cancel safe.
    async fn advance(&mut self) -> Result<(), Error> {
        if matches!(self.state, SubscriptionState::Left) {
            sleep(REJOIN_DELAY).await;
        }
        if let SubscriptionState::CatchingUp(_) = self.state {
            self.state = match mem::take(&mut self.state) {
                SubscriptionState::CatchingUp(joined) => SubscriptionState::Current(joined),
                state => state,
            };
            return Ok(());
        }
        // Not the number that the client named: others join the same feed.
        let last = self.feeds.store().last_event(&self.run_id).await?;
        self.state = SubscriptionState::CatchingUp(self.feeds.join(&self.run_id, last));
        Ok(())
    }

    /// Lets a subscriber that has missed events of its feed read the store first.
    fn fall_behind(&mut self) {
        self.state = match mem::take(&mut self.state) {
            SubscriptionState::Current(joined) => SubscriptionState::CatchingUp(joined),
            state => state,
        };
    }
}
