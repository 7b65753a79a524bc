//! Follows the runs of the account's sessions at the gateway, also those that others have ordered.

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    sync::Arc,
};

use platform_core::id::RunId;
use platform_runtime::task;
use runner_engine::follow::{FollowEvent, RunSubscription, Subscription};
use runner_model::lifecycle::State;
use runner_store::{Error, Event, Filter, Run};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::{
    tenant::{GatewayRun, SocketTenant},
    transcript::{NumberedEvent, RunNews, RunTranscript, ToolNews},
};

/// Most runs that a connection follows at a time.
const MAX_FOLLOWED: usize = 128;
/// Most events of runs that wait for the client to take those before.
const MAX_UNTAKEN: usize = 64;
/// Number of ended attempts that are remembered, so that a late report does not begin them anew.
const MAX_ENDED: usize = 512;
/// States of runs that have begun, and not ended.
const ACTIVE_STATES: [&str; 5] = ["preparing", "starting", "running", "collecting", "settling"];
/// Extension with which a client asks to be told of tools.
const TOOL_EVENTS: &str = "tool-events";

/// Runs that a connection follows.
pub(super) struct FollowedRuns {
    tenant: Arc<SocketTenant>,
    feed: RunSubscription,
    sender: mpsc::Sender<RunItem>,
    items: mpsc::Receiver<RunItem>,
    runs: BTreeMap<RunId, FollowedRun>,
    ended: VecDeque<(RunId, u32)>,
    /// True if there may be active runs that are not followed.
    has_left_out: bool,
    /// True if the client may lack events that it gets no more.
    has_gap: bool,
}

/// Run that is followed, until it is dropped.
struct FollowedRun {
    attempt: u32,
    transcript: RunTranscript,
    /// Reads its events beside the connection: a client that does not read would else hold what reads the store.
    _reader: AbortOnDropHandle<()>,
}

/// Item of a followed run; without an event at its end.
struct RunItem {
    run_id: RunId,
    event: Option<Event>,
}

/// Change that a connection is told of.
pub(super) struct RunChange(ChangeKind);

enum ChangeKind {
    /// A run is in another state; without one, changes may have been missed.
    State(Option<Arc<Run>>),
    Item(RunItem),
}

/// News of a run.
pub(super) struct NewsOfRun {
    pub(super) run_id: RunId,
    pub(super) news: RunNews,
}

impl FollowedRuns {
    /// Follows the runs that are active, and all that begin from now on.
    pub(super) async fn begin(tenant: Arc<SocketTenant>) -> Result<Self, Error> {
        let feed = tenant.opened.run_feed.subscribe().await?;
        let (sender, items) = mpsc::channel(MAX_UNTAKEN);
        let mut followed = Self {
            tenant,
            feed,
            sender,
            items,
            runs: BTreeMap::new(),
            ended: VecDeque::new(),
            has_left_out: false,
            has_gap: false,
        };
        followed.look().await?;
        Ok(followed)
    }

    /// Follows all active runs.
    async fn look(&mut self) -> Result<(), Error> {
        let filter = Filter {
            states: ACTIVE_STATES.to_vec(),
            account: Some(self.tenant.account.clone()),
            ..Filter::default()
        };
        let most = u32::try_from(MAX_FOLLOWED).unwrap_or(u32::MAX);
        for run in self.tenant.store().list(&filter, most).await?.runs {
            self.follow(&run).await?;
        }
        Ok(())
    }

    /// Waits for the next change. Cancel safe.
    pub(super) async fn next(&mut self) -> RunChange {
        let Self { feed, items, .. } = self;
        tokio::select! {
            run = feed.next() => RunChange(ChangeKind::State(run)),
            Some(item) = items.recv() => RunChange(ChangeKind::Item(item)),
        }
    }

    /// Takes a change, and returns what follows from it.
    pub(super) async fn take(&mut self, change: RunChange) -> Result<Vec<NewsOfRun>, Error> {
        match change.0 {
            ChangeKind::State(Some(run)) => {
                if run.account == self.tenant.account && run.state != State::Queued {
                    self.follow(&run).await?;
                }
                Ok(Vec::new())
            }
            ChangeKind::State(None) => {
                self.feed = self.tenant.opened.run_feed.subscribe().await?;
                self.catch_up().await?;
                Ok(Vec::new())
            }
            ChangeKind::Item(RunItem { run_id, event: Some(event) }) => Ok(self.tell(run_id, event)),
            ChangeKind::Item(RunItem { run_id, event: None }) => {
                self.forget(&run_id);
                if self.has_left_out {
                    self.catch_up().await?;
                }
                Ok(Vec::new())
            }
        }
    }

    /// Follows the active runs again, of which some were not followed for a while.
    async fn catch_up(&mut self) -> Result<(), Error> {
        (self.has_left_out, self.has_gap) = (false, true);
        self.look().await
    }

    /// Returns whether the client may lack events that it gets no more, once each time.
    pub(super) fn take_gap(&mut self) -> bool {
        mem::take(&mut self.has_gap)
    }

    /// Returns whether a client lacks text.
    pub(super) fn have_untold(&self) -> bool {
        self.runs.values().any(|run| run.transcript.has_untold())
    }

    /// Returns the text that the client lacks.
    pub(super) fn flush(&mut self) -> Vec<NewsOfRun> {
        let flushed = self.runs.values_mut().flat_map(|FollowedRun { transcript, .. }| {
            let run_id = transcript.run_id.clone();
            transcript.flush().into_iter().map(move |news| NewsOfRun { run_id: run_id.clone(), news })
        });
        flushed.collect()
    }

    /// Returns the session of a run that is followed.
    pub(super) fn session_of(&self, run_id: &RunId) -> Option<String> {
        self.runs.get(run_id).map(|run| run.transcript.session.to_string())
    }

    async fn follow(&mut self, run: &Run) -> Result<(), Error> {
        let attempt = (run.run_id.clone(), run.attempt);
        if self.runs.contains_key(&run.run_id) || self.ended.contains(&attempt) {
            return Ok(());
        }
        if self.runs.len() >= MAX_FOLLOWED {
            self.has_left_out = true;
            return Ok(());
        }
        let Some(GatewayRun { session, .. }) = self.tenant.gateway_run(run).await? else { return Ok(()) };
        let after = self.tenant.store().attempt_begin(run).await?;
        let tools = if self.tenant.takes(TOOL_EVENTS) { ToolNews::Told } else { ToolNews::Silent };
        let run_id = run.run_id.clone();
        let subscription = self.tenant.opened.feeds.subscribe(&run_id, after);
        let reading = send_events(subscription, run_id.clone(), self.sender.clone());
        let reader = AbortOnDropHandle::new(task::spawn("gateway run", reading));
        let transcript = RunTranscript::new(run_id.clone(), session, tools);
        self.runs.insert(run_id, FollowedRun { attempt: run.attempt, transcript, _reader: reader });
        Ok(())
    }

    fn tell(&mut self, run_id: RunId, event: Event) -> Vec<NewsOfRun> {
        let Some(run) = self.runs.get_mut(&run_id) else { return Vec::new() };
        let shown = event.shown();
        let numbered = NumberedEvent { seq: event.seq, at: event.at.0, event: &shown };
        let news = run.transcript.take(numbered);
        news.into_iter().map(|news| NewsOfRun { run_id: run_id.clone(), news }).collect()
    }

    fn forget(&mut self, run_id: &RunId) {
        if let Some(run) = self.runs.remove(run_id) {
            self.ended.push_back((run_id.clone(), run.attempt));
            if self.ended.len() > MAX_ENDED {
                self.ended.pop_front();
            }
        }
    }
}

/// Sends the stored events of a run, and an item without an event at their end.
async fn send_events(mut subscription: Subscription, run_id: RunId, items: mpsc::Sender<RunItem>) {
    loop {
        let event = match subscription.next().await {
            Ok(Some(FollowEvent::Stored(event))) => Some(event),
            // Gateways report their text: it is stored.
            Ok(Some(FollowEvent::Live(_) | FollowEvent::Pruned { .. })) => continue,
            // Of a failed store, the connection's watch hears as well.
            Ok(None) | Err(_) => None,
        };
        let is_last = event.is_none();
        let item = RunItem { run_id: run_id.clone(), event };
        if items.send(item).await.is_err() || is_last {
            return;
        }
    }
}
