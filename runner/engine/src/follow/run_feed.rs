//! Reports runs that are new or in another state: one reader of the store serves all followers.
//!
//! Changes that this process makes or hears of are reported at once. Others are found by looking regularly at the newest
//! runs and at those that workers hold. A follower may get the same state twice, and a run that passes through
//! two states quickly is reported once. Nothing is missed in silence: the feed of a follower that may have missed a
//! change ends, and its client lists runs again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak},
    time::Duration,
};

use platform_core::id::RunId;
use platform_runtime::{report, task};
use runner_model::lifecycle::State;
use runner_store::{Error, Filter, Run, StateChanges, StateWatcher, Store};
use tokio::{
    sync::{Mutex, broadcast},
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::read_interval;

/// Changes that a follower may leave unread before its feed ends.
const CAPACITY: usize = 1024;
/// Interval between two looks at runs that other processes may change unheard.
const READ_INTERVAL: Duration = Duration::from_secs(1);
/// Delay before changed runs are read, so that changes shortly after one another are read together.
const COLLECT_DELAY: Duration = Duration::from_millis(50);
/// Numbers of newest runs and of held ones that a look reads.
const MAX_NEWEST: u32 = 100;
const MAX_HELD: u32 = 1000;

/// Feed of changed runs. Clones share its reader, which lives as long as it has followers.
#[derive(Debug, Clone)]
pub struct RunFeed(Arc<SharedFeed>);

#[derive(Debug)]
struct SharedFeed {
    store: Store,
    reader: Mutex<Weak<ReaderHandle>>,
}

/// Reader that is at work.
#[derive(Debug)]
struct ReaderHandle {
    changes: broadcast::WeakSender<Arc<Run>>,
    /// Stops the reader once the last follower has left.
    _stop: DropGuard,
}

/// Follower of changed runs.
#[derive(Debug)]
pub struct RunSubscription {
    changes: broadcast::Receiver<Arc<Run>>,
    /// Keeps the reader alive.
    _reader: Arc<ReaderHandle>,
}

/// Facts of a run that are reported when they change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RunPhase {
    state: State,
    attempt: u32,
}

/// Reader of changed runs. Its end ends all feeds.
struct RunReader {
    store: Store,
    watcher: StateWatcher,
    next_look: Instant,
    /// Phases of the runs that are looked at.
    known: BTreeMap<RunId, RunPhase>,
    changes: broadcast::Sender<Arc<Run>>,
}

impl RunFeed {
    /// Returns the feed of the runs in `store`.
    #[must_use]
    pub fn of(store: Store) -> Self {
        Self(Arc::new(SharedFeed { store, reader: Mutex::default() }))
    }

    /// Returns a follower of the changes from now on.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn subscribe(&self) -> Result<RunSubscription, Error> {
        let mut reader = self.0.reader.lock().await;
        if let Some(joined) = reader.upgrade().and_then(ReaderHandle::join) {
            return Ok(joined);
        }
        let changes = broadcast::Sender::new(CAPACITY);
        let subscribed = changes.subscribe();
        let stop = CancellationToken::new();
        let handle = ReaderHandle { changes: changes.downgrade(), _stop: stop.clone().drop_guard() };
        let new = RunReader::begin(self.0.store.clone(), changes).await?;
        task::spawn("run feed", stop.run_until_cancelled_owned(new.run()));
        let handle = Arc::new(handle);
        *reader = Arc::downgrade(&handle);
        Ok(RunSubscription { changes: subscribed, _reader: handle })
    }
}

impl ReaderHandle {
    /// Joins the reader; `None` if it has ended.
    fn join(self: Arc<Self>) -> Option<RunSubscription> {
        let changes = self.changes.upgrade()?.subscribe();
        Some(RunSubscription { changes, _reader: self })
    }
}

impl RunSubscription {
    /// Returns the next changed run; `None` if changes may be missing from now on. Cancel safe.
    pub async fn next(&mut self) -> Option<Arc<Run>> {
        // One that has left too many unread ends as well: its client lists runs again.
        self.changes.recv().await.ok()
    }
}

impl RunPhase {
    const fn of(run: &Run) -> Self {
        Self { state: run.state, attempt: run.attempt }
    }
}

impl RunReader {
    /// Returns a reader that knows the present state of all runs it looks at.
    async fn begin(store: Store, changes: broadcast::Sender<Arc<Run>>) -> Result<Self, Error> {
        // Begins before the first look, so that no change falls between both.
        let watcher = store.watch_states();
        store.listen();
        let next_look = Instant::now() + READ_INTERVAL;
        let mut reader = Self { store, watcher, next_look, known: BTreeMap::new(), changes };
        let present = reader.looked_at().await?;
        reader.known = present.iter().map(|run| (run.run_id.clone(), RunPhase::of(run))).collect();
        Ok(reader)
    }

    /// Reports changes until one may have been missed.
    async fn run(mut self) {
        loop {
            let read = tokio::select! {
                changed = self.watcher.changed() => match changed {
                    Ok(StateChanges::Of(run_ids)) => self.read_changed(run_ids).await,
                    Ok(StateChanges::Unknown) => self.look().await,
                    Err(error) => return tracing::warn!(error = report::chain(&error), "feeds of changed runs end"),
                },
                () = sleep_until(self.next_look) => self.look().await,
            };
            if let Err(error) = read {
                return tracing::warn!(error = report::chain(&error), "feeds of changed runs end");
            }
        }
    }

    /// Reads runs that have changed.
    async fn read_changed(&mut self, run_ids: BTreeSet<RunId>) -> Result<(), Error> {
        sleep(COLLECT_DELAY).await;
        for run_id in run_ids {
            self.read(&run_id).await?;
        }
        Ok(())
    }

    async fn read(&mut self, run_id: &RunId) -> Result<(), Error> {
        match self.store.run(run_id).await {
            Ok(run) => self.report(run),
            // It was removed a moment ago.
            Err(Error::Unknown { .. }) => drop(self.known.remove(run_id)),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Looks for changes of which no report came.
    async fn look(&mut self) -> Result<(), Error> {
        let present = self.looked_at().await?;
        let run_ids: BTreeSet<_> = present.iter().map(|run| run.run_id.clone()).collect();
        present.into_iter().for_each(|run| self.report(run));
        // A run that is not seen any more may have ended.
        let gone: Vec<_> = self.known.keys().filter(|run_id| !run_ids.contains(*run_id)).cloned().collect();
        for run_id in gone {
            if !self.known.get(&run_id).is_some_and(|phase| phase.state.is_final()) {
                self.read(&run_id).await?;
            }
            self.known.remove(&run_id);
        }
        self.next_look = Instant::now() + read_interval(&self.store, READ_INTERVAL);
        Ok(())
    }

    /// Returns the newest runs, and those that workers hold.
    async fn looked_at(&self) -> Result<Vec<Run>, Error> {
        let mut runs = self.store.list(&Filter::default(), MAX_NEWEST).await?.runs;
        runs.extend(self.store.held_runs(MAX_HELD).await?);
        Ok(runs)
    }

    /// Reports `run` if its phase is another one.
    fn report(&mut self, run: Run) {
        let phase = RunPhase::of(&run);
        if self.known.insert(run.run_id.clone(), phase) != Some(phase) {
            // Without a follower at this moment, the reader ends shortly.
            drop(self.changes.send(Arc::new(run)));
        }
    }
}
