//! Follows a run from a process that does not work on it. Stored events come in their order, and between them live text
//! from the data plane of this host.
//!
//! Workers and proxies may come and go meanwhile. Stored events are read from the store alone, by number. A tap that
//! breaks off is opened again behind the last line that came of it. Live text has no place in that order, and cannot be
//! asked for again. A new follower gets what the tap holds at that moment, then what comes, each line once. Not here:
//! how events look.

use std::{collections::VecDeque, time::Duration};

use platform_core::{control::TapLine, event::AgentEvent, id::RunId};
use platform_runtime::{report, settings::Stream};
use runner_control_client::{DataPlane, Follow, Lines};
use runner_model::live;
use runner_store::{Error, Event, Store};
use tokio::time::{Instant, sleep_until, timeout};

use crate::request::RunRequest;

/// Interval between two reads of the store.
const LOOK: Duration = Duration::from_millis(200);
/// Delay before an unavailable store is asked again.
const PAUSE: Duration = Duration::from_secs(2);
/// Delay before a tap is opened again, and the longest wait for that.
const TAP_PAUSE: Duration = Duration::from_millis(500);
const TAP_PATIENCE: Duration = Duration::from_secs(1);

/// Follower of a run: a reader of its events.
#[derive(Debug)]
pub struct Follower {
    store: Store,
    run: RunId,
    follow: Follow,
    /// Number of the last event that was read.
    after: u64,
    /// Number of the last event that was handed out or reported as pruned.
    told: u64,
    read: VecDeque<Event>,
    /// Time of the next read of the store; `None` once there is nothing to come.
    look: Option<Instant>,
    live: Option<Live>,
}

/// Live text of a run, from the data plane's tap.
#[derive(Debug)]
struct Live {
    data_plane: DataPlane,
    stream: Stream,
    tap: Option<Lines>,
    /// Number of the last line.
    after: u64,
    again: Instant,
}

/// Item that a follower gets.
#[derive(Debug)]
pub enum Heard {
    /// A stored event.
    Stored(Event),
    /// Stored events that are kept no longer.
    Pruned {
        /// Number of events that are missing.
        count: u64,
        /// Sequence number of the last of them.
        upto: u64,
    },
    /// Live text: it has no number, and no place among stored events.
    Live(AgentEvent),
}

impl Follower {
    /// Returns a follower of `run` after the event numbered `after`: up to the present end, or up to the run's end.
    pub fn of(store: Store, run: &RunId, after: u64, follow: Follow) -> Self {
        let (read, look) = (VecDeque::new(), Some(Instant::now()));
        Self { store, run: run.clone(), follow, after, told: after, read, look, live: None }
    }

    /// Returns the same follower, which also reads live text at `data_plane`, as long as the run goes on.
    ///
    /// # Errors
    /// [`Error::Unknown`] if there is no such run.
    pub async fn with_live(mut self, data_plane: DataPlane) -> Result<Self, Error> {
        let record = self.store.record(&self.run).await?;
        // An order that cannot be read is no reason not to follow.
        let stream = RunRequest::stored(&record).map_or(Stream::Progress, |order| order.wanted.agent.stream);
        let is_over = record.run.state.is_final();
        self.live = (!is_over).then(|| Live::of(data_plane, stream));
        Ok(self)
    }

    /// Returns the next item; `None` at the end. While the store is unavailable, this waits.
    ///
    /// # Errors
    /// [`Error::Unknown`] if there is no such run, and every other error that does not pass by itself.
    pub async fn next(&mut self) -> Result<Option<Heard>, Error> {
        loop {
            if let Some(heard) = self.stored() {
                return Ok(Some(heard));
            }
            let Some(look) = self.look else { return Ok(None) };
            // The store comes first: text that is always there must not keep a follower from the end of the run.
            if Instant::now() >= look {
                self.look().await?;
                continue;
            }
            let Some(live) = &mut self.live else {
                sleep_until(look).await;
                continue;
            };
            live.open(&self.run).await;
            tokio::select! {
                () = sleep_until(look) => {}
                heard = live.next() => {
                    if let Some(event) = heard {
                        return Ok(Some(Heard::Live(event)));
                    }
                }
            }
        }
    }

    /// Returns the next item of what was read. Numbers have no gaps but where events were removed.
    fn stored(&mut self) -> Option<Heard> {
        let seq = self.read.front()?.seq;
        let count = seq.saturating_sub(self.told).saturating_sub(1);
        if count > 0 {
            self.told = seq - 1;
            return Some(Heard::Pruned { count, upto: self.told });
        }
        self.told = seq;
        self.read.pop_front().map(Heard::Stored)
    }

    /// Reads the next events from the store.
    async fn look(&mut self) -> Result<(), Error> {
        let (run, events) = match self.store.told(&self.run, self.after).await {
            Err(error) if error.is_transient() && self.follow == Follow::On => {
                tracing::warn!(error = %report::chain(&error), "the store is asked again");
                self.look = Some(Instant::now() + PAUSE);
                return Ok(());
            }
            told => told?,
        };
        let now = Instant::now();
        self.look = match (events.last(), self.follow) {
            // There may be more.
            (Some(last), _) => {
                self.after = last.seq;
                Some(now)
            }
            (None, Follow::On) if !run.state.is_final() => Some(now + LOOK),
            (None, _) => None,
        };
        self.read.extend(events);
        Ok(())
    }
}

impl Live {
    fn of(data_plane: DataPlane, stream: Stream) -> Self {
        Self { data_plane, stream, tap: None, after: 0, again: Instant::now() }
    }

    /// Opens the tap, if it is closed and its delay is over.
    async fn open(&mut self, run: &RunId) {
        if self.tap.is_none() && Instant::now() >= self.again {
            // The run is on another host, or not open yet, or no longer.
            let tap = timeout(TAP_PATIENCE, self.data_plane.tap(run, self.after)).await;
            self.tap = tap.ok().and_then(Result::ok);
            self.again = Instant::now() + TAP_PAUSE;
        }
    }

    /// Returns the next live event; `None` once the tap breaks off. Cancel safe.
    async fn next(&mut self) -> Option<AgentEvent> {
        loop {
            let Some(tap) = &mut self.tap else { return std::future::pending().await };
            let Ok(Some(line)) = tap.next().await else {
                self.tap = None;
                self.again = Instant::now() + TAP_PAUSE;
                return None;
            };
            let Ok(TapLine { n, event }) = serde_json::from_slice(line) else { continue };
            if n > 0 {
                self.after = n;
            }
            match live::event(event, self.stream) {
                // Tool calls come from the store, with a number.
                Some(AgentEvent::Tool { .. }) | None => {}
                heard => return heard,
            }
        }
    }
}
