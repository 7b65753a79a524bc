//! Follows a run from a process that does not execute it. Stored events arrive in order; live text from this host's
//! data plane arrives between them.
//!
//! Workers and proxies may restart meanwhile. Stored events are read from the store alone, by number. A tap that breaks
//! off is opened again after the last line that was read. Live text has no number, and cannot be read a second time. A
//! new follower gets the lines that the tap holds, then each new line once. This module does not format events.

mod feed;
mod run_feed;
mod stored_events;
mod subscription;
#[cfg(test)]
mod tests;

use std::{future::pending, time::Duration};

use platform_core::{
    control::TapLine,
    event::AgentEvent,
    id::RunId,
    json::{self, Bounds},
};
use platform_runtime::{
    report,
    retry::Transient,
    settings::{Execution, Protocol, Stream},
};
use runner_control_client::{DataPlane, Follow, Lines};
use runner_model::tap_event;
use runner_store::{Error, Event, RunWatcher, Store};
use tokio::time::{Instant, sleep_until, timeout};

use self::stored_events::StoredEvents;
pub use self::{
    feed::Feeds,
    run_feed::{RunFeed, RunSubscription},
    subscription::Subscription,
};
use crate::run_request::RunRequest;

/// Interval between two reads of the store, if another process may write to it unheard.
const READ_INTERVAL: Duration = Duration::from_millis(200);
/// Interval between two reads of a store that reports what other processes write. They are a precaution.
const HEARD_READ_INTERVAL: Duration = Duration::from_secs(60);
/// Delay before an unavailable store is read again.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// Delay before a tap is opened again.
const REOPEN_DELAY: Duration = Duration::from_millis(500);
/// Longest wait for a tap to open.
const OPEN_TIMEOUT: Duration = Duration::from_secs(1);

/// Follower of a run: a reader of its events.
#[derive(Debug)]
pub struct Follower {
    store: Store,
    run_id: RunId,
    watcher: RunWatcher,
    follow: Follow,
    events: StoredEvents,
    read_interval: Duration,
    /// Time of the next read of the store; `None` once all events were read.
    next_read: Option<Instant>,
    live: Option<LiveText>,
}

/// Live text of a run, from the data plane's tap.
#[derive(Debug)]
struct LiveText {
    data_plane: DataPlane,
    stream: Stream,
    tap: Option<Lines>,
    /// Number of the last line that was read.
    after: u64,
    /// Time before which the tap is not opened again.
    reopen_at: Instant,
}

/// Item that a follower returns.
#[derive(Debug)]
pub enum FollowEvent {
    /// A stored event.
    Stored(Event),
    /// Stored events that were removed.
    Pruned {
        /// Number of events that are missing.
        count: u64,
        /// Sequence number of the last removed event.
        upto: u64,
    },
    /// Live text, which has no number and no place among stored events.
    Live(AgentEvent),
}

impl Follower {
    /// Returns a follower of a run after the event numbered `after`: up to the present end, or up to the run's end.
    pub fn of(store: Store, run_id: &RunId, after: u64, follow: Follow) -> Self {
        if follow == Follow::On {
            store.listen();
        }
        let next_read = Some(Instant::now());
        Self {
            watcher: store.watch(run_id),
            store,
            run_id: run_id.clone(),
            follow,
            events: StoredEvents::after(after),
            read_interval: READ_INTERVAL,
            next_read,
            live: None,
        }
    }

    /// Returns the same follower, which reads the store after each change that this process makes or hears of, and else
    /// only so often.
    #[must_use]
    pub(crate) const fn reading_every(mut self, interval: Duration) -> Self {
        self.read_interval = interval;
        self
    }

    /// Returns the same follower, which also reads live text at `data_plane`, until the run has ended.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the run does not exist.
    pub async fn with_live(mut self, data_plane: DataPlane) -> Result<Self, Error> {
        let record = self.store.record(&self.run_id).await?;
        let agent = RunRequest::stored(&record).map(|request| request.spec.agent);
        // Text that an agent or its gateway reports is stored. The tap would repeat it.
        let reports_text = agent
            .as_ref()
            .is_ok_and(|agent| agent.protocol == Protocol::Events || agent.mode == Execution::Gateway);
        // Events can be followed even if the request cannot be read.
        let stream = agent.map_or(Stream::Progress, |agent| agent.stream);
        let has_ended = record.run.state.is_final();
        self.live = (!has_ended && !reports_text).then(|| LiveText::new(data_plane, stream));
        Ok(self)
    }

    /// Returns the next item; `None` at the end. With [`Follow::On`], waits while the store is unavailable.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the run does not exist, and every other permanent error. Without [`Follow::On`], transient
    /// errors as well.
    pub async fn next(&mut self) -> Result<Option<FollowEvent>, Error> {
        loop {
            if let Some(event) = self.events.next() {
                return Ok(Some(event));
            }
            let Some(next_read) = self.next_read else { return Ok(None) };
            // The store comes first: a steady stream of live text must not delay the end of the run.
            if Instant::now() >= next_read {
                self.read_store().await?;
                continue;
            }
            if let Some(live) = &mut self.live {
                live.open(&self.run_id).await;
            }
            let live = &mut self.live;
            let live_event = async {
                match live {
                    Some(live) => live.next().await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = sleep_until(next_read) => {}
                () = self.watcher.changed() => self.next_read = Some(Instant::now()),
                event = live_event => {
                    if let Some(event) = event {
                        return Ok(Some(FollowEvent::Live(event)));
                    }
                }
            }
        }
    }

    /// Reads the next events from the store.
    async fn read_store(&mut self) -> Result<(), Error> {
        let (run, events) = match self.store.events_after(&self.run_id, self.events.last_read()).await {
            Err(error) if error.is_transient() && self.follow == Follow::On => {
                tracing::warn!(error = report::chain(&error), "events not read yet; trying again");
                self.next_read = Some(Instant::now() + RETRY_DELAY);
                return Ok(());
            }
            read => read?,
        };
        let now = Instant::now();
        self.next_read = match (events.last(), self.follow) {
            // The store may have more events.
            (Some(_), _) => Some(now),
            (None, Follow::On) if !run.state.is_final() => {
                Some(now + read_interval(&self.store, self.read_interval))
            }
            (None, _) => None,
        };
        self.events.add(events);
        Ok(())
    }
}

/// Returns the time until the next read of `store` without a known change: `unheard` while changes of other processes
/// are not heard.
fn read_interval(store: &Store, unheard: Duration) -> Duration {
    if store.is_listening() { HEARD_READ_INTERVAL } else { unheard }
}

impl LiveText {
    fn new(data_plane: DataPlane, stream: Stream) -> Self {
        Self { data_plane, stream, tap: None, after: 0, reopen_at: Instant::now() }
    }

    /// Opens the tap, if it is closed and its delay has passed.
    async fn open(&mut self, run_id: &RunId) {
        if self.tap.is_none() && Instant::now() >= self.reopen_at {
            // A failure is normal: the run may be on another host, not open yet, or closed.
            let tap = timeout(OPEN_TIMEOUT, self.data_plane.tap(run_id, self.after)).await;
            self.tap = tap.ok().and_then(Result::ok);
            self.reopen_at = Instant::now() + REOPEN_DELAY;
        }
    }

    /// Returns the next live event; `None` once the tap breaks off. Waits for ever while no tap is open. Cancel safe.
    async fn next(&mut self) -> Option<AgentEvent> {
        loop {
            let Some(tap) = &mut self.tap else { return pending().await };
            let Ok(Some(line)) = tap.next().await else {
                self.tap = None;
                self.reopen_at = Instant::now() + REOPEN_DELAY;
                return None;
            };
            let Ok(TapLine { n, event }) = json::from_slice(line, Bounds::STORED) else { continue };
            if n > 0 {
                self.after = n;
            }
            match tap_event::event(event, self.stream) {
                // Tool calls are read from the store, with a number.
                Some(AgentEvent::Tool { .. }) | None => {}
                event => return event,
            }
        }
    }
}
