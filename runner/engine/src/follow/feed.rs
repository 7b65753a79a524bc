//! Reads a followed run once, however many clients follow it: a feed has one reader of the store and of the tap.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use platform_core::{event::AgentEvent, id::RunId};
use platform_runtime::{report, task};
use runner_control_client::{DataPlane, Follow};
use runner_store::{Event, Store};
use tokio::sync::broadcast::{
    self,
    error::{RecvError, TryRecvError},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{FollowEvent, Follower};

/// Events that a subscriber may leave unread before it has to read the store again.
const CAPACITY: usize = 256;
/// Interval between two reads of a store in which other processes execute runs unheard.
const READ_INTERVAL: Duration = Duration::from_secs(1);

/// Feeds of all runs that clients follow now. Clones share them.
#[derive(Debug, Clone)]
pub struct Feeds(Arc<FeedTable>);

#[derive(Debug)]
struct FeedTable {
    store: Store,
    data_plane: DataPlane,
    feeds: Mutex<HashMap<RunId, Weak<Feed>>>,
}

/// Run that clients follow.
#[derive(Debug)]
struct Feed {
    stored: broadcast::WeakSender<Event>,
    live: broadcast::WeakSender<AgentEvent>,
    /// Stops the reader once the last subscriber has left.
    _stop: DropGuard,
}

/// Reader of a followed run. Its end closes the feed.
struct FeedReader {
    follower: Follower,
    stored: broadcast::Sender<Event>,
    live: broadcast::Sender<AgentEvent>,
}

/// Receivers of a feed's events.
#[derive(Debug)]
pub(super) struct Joined {
    stored: broadcast::Receiver<Event>,
    live: broadcast::Receiver<AgentEvent>,
    /// Keeps the feed's reader alive.
    feed: Arc<Feed>,
}

/// Next item of a feed, for a subscriber that has all stored events before it.
pub(super) enum FeedItem {
    Stored(Event),
    Live(AgentEvent),
    /// Events were sent that the subscriber has not received.
    Gap,
    /// The reader has ended.
    Closed,
}

impl Feeds {
    /// Returns feeds of runs in `store`, with live text from `data_plane`.
    #[must_use]
    pub fn of(store: Store, data_plane: DataPlane) -> Self {
        Self(Arc::new(FeedTable { store, data_plane, feeds: Mutex::default() }))
    }

    /// Returns the number of feeds that are open.
    #[cfg(test)]
    pub(super) fn open_feeds(&self) -> usize {
        let feeds = self.0.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        feeds.values().filter(|feed| feed.strong_count() > 0).count()
    }

    pub(super) fn store(&self) -> &Store {
        &self.0.store
    }

    /// Joins the feed of a run. A new feed begins after the event numbered `after`.
    pub(super) fn join(&self, run_id: &RunId, after: u64) -> Joined {
        let mut feeds = self.0.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        feeds.retain(|_, feed| feed.strong_count() > 0);
        if let Some(joined) = feeds.get(run_id).and_then(Weak::upgrade).and_then(Feed::join) {
            return joined;
        }
        let joined = self.open(run_id, after);
        feeds.insert(run_id.clone(), Arc::downgrade(&joined.feed));
        joined
    }

    /// Opens a feed, and starts its reader.
    fn open(&self, run_id: &RunId, after: u64) -> Joined {
        let FeedTable { store, data_plane, .. } = &*self.0;
        let stop = CancellationToken::new();
        let stored = broadcast::Sender::new(CAPACITY);
        let live = broadcast::Sender::new(CAPACITY);
        let feed =
            Feed { stored: stored.downgrade(), live: live.downgrade(), _stop: stop.clone().drop_guard() };
        let joined = Joined { stored: stored.subscribe(), live: live.subscribe(), feed: Arc::new(feed) };
        let follower = Follower::of(store.clone(), run_id, after, Follow::On).reading_every(READ_INTERVAL);
        let reader = FeedReader { follower, stored, live }.run(data_plane.clone());
        task::spawn("feed", stop.run_until_cancelled_owned(reader));
        joined
    }
}

impl Feed {
    /// Joins the feed; `None` if its reader has ended.
    fn join(self: Arc<Self>) -> Option<Joined> {
        let stored = self.stored.upgrade()?.subscribe();
        let live = self.live.upgrade()?.subscribe();
        Some(Joined { stored, live, feed: self })
    }
}

impl FeedReader {
    /// Sends the run's events to all subscribers until the run ends or cannot be read.
    async fn run(self, data_plane: DataPlane) {
        let Self { follower, stored, live } = self;
        let mut follower = match follower.with_live(data_plane).await {
            Ok(follower) => follower,
            Err(error) => return tracing::debug!(error = report::chain(&error), "a run cannot be followed"),
        };
        loop {
            // Without a subscriber at this moment, an event is lost here. A subscriber reads it from the store.
            match follower.next().await {
                Ok(Some(FollowEvent::Stored(event))) => drop(stored.send(event)),
                Ok(Some(FollowEvent::Live(event))) => drop(live.send(event)),
                Ok(Some(FollowEvent::Pruned { .. })) => {}
                Ok(None) => return,
                Err(error) => {
                    return tracing::debug!(
                        error = report::chain(&error),
                        "a run cannot be followed further"
                    );
                }
            }
        }
    }
}

impl Joined {
    /// Waits for the next item of the feed, for a subscriber that has all events up to `after`. Cancel safe.
    pub(super) async fn next(&mut self, after: u64) -> FeedItem {
        loop {
            tokio::select! {
                // A run's end must not wait for its live text.
                biased;
                stored = self.stored.recv() => match stored {
                    Ok(event) if event.seq <= after => {}
                    Ok(event) if event.seq == after + 1 => return FeedItem::Stored(event),
                    Ok(_) | Err(RecvError::Lagged(_)) => return FeedItem::Gap,
                    Err(RecvError::Closed) => return self.last_live(),
                },
                live = self.live.recv() => match live {
                    Ok(event) => return FeedItem::Live(event),
                    Err(RecvError::Lagged(count)) => return FeedItem::Live(AgentEvent::Missed { count }),
                    Err(RecvError::Closed) => return FeedItem::Closed,
                },
            }
        }
    }

    /// Returns the next live text of a feed that has closed.
    fn last_live(&mut self) -> FeedItem {
        match self.live.try_recv() {
            Ok(event) => FeedItem::Live(event),
            Err(TryRecvError::Lagged(count)) => FeedItem::Live(AgentEvent::Missed { count }),
            Err(TryRecvError::Empty | TryRecvError::Closed) => FeedItem::Closed,
        }
    }
}
