//! Tests subscriptions on their own store, without a data plane.

use std::time::Duration;

use platform_core::{
    event::{AgentEvent, OutputStream},
    grant::Correlation,
    id::{AccountId, AgentId, InstallationId, RunId},
    limit::Millis,
    priority::Priority,
};
use runner_control_client::DataPlane;
use runner_model::lifecycle::{Completion, Transition};
use runner_store::{
    Address, Batch, Claimant, Created, EventCursor, FencingToken, HostId, HostIdentity, NewRun, Store, Worker,
};
use tempfile::TempDir;
use tokio::time::timeout;

use super::{Feeds, FollowEvent, Subscription};

/// Longest wait for an event that is stored.
const PATIENCE: Duration = Duration::from_secs(5);

/// Store with one run; tests add its events.
struct Scene {
    store: Store,
    feeds: Feeds,
    token: FencingToken,
    batches: u64,
    _dir: TempDir,
}

impl Scene {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let address = format!("sqlite://{}/private/sluice.db", dir.path().display());
        let installation = InstallationId::parse("here").unwrap();
        let store = Store::open(&Address::parse(&address, None).unwrap(), installation).await.unwrap();
        let host = HostIdentity { id: HostId::from_random(1), name: "host".to_owned() };
        let store = store.serving(host).await.unwrap();
        let order = NewRun {
            run_id: RunId::parse("r1").unwrap(),
            account: AccountId::parse("a").unwrap(),
            agent: AgentId::parse("a:b").unwrap(),
            correlation: Correlation::default(),
            priority: Priority::default(),
            session: None,
            turn: None,
            model: None,
            question: None,
            wanted: "{}".to_owned(),
        };
        let worker = Worker::named("worker");
        let created = store.create(&order, Claimant::Worker(&worker, Millis::seconds(600))).await.unwrap();
        let Created::New(run) = created else { panic!("{created:?}") };
        // Without a proxy, no live text comes.
        let feeds = Feeds::of(store.clone(), DataPlane::at(&dir.path().join("control.sock")));
        Self { store, feeds, token: run.fencing_token(), batches: 0, _dir: dir }
    }

    /// Stores `count` events at once.
    async fn print(&mut self, count: usize) {
        self.batches += 1;
        let line = AgentEvent::Log { stream: OutputStream::Stdout, text: "line\n".to_owned() };
        let batch = Batch { number: self.batches, events: vec![line; count], cursor: EventCursor::default() };
        self.store.record_events(&self.token, &batch).await.unwrap();
    }

    async fn end(&self) {
        let completion = Completion { exit_code: Some(0), oom_seen: None, answer: Ok("answer".to_owned()) };
        let transitions = [
            Transition::Prepare,
            Transition::Start,
            Transition::Run,
            Transition::Settle(completion),
            Transition::Finish(None),
        ];
        for transition in transitions {
            self.store.step(&self.token, &transition.into()).await.unwrap();
        }
    }

    fn subscribe(&self, after: u64) -> Subscription {
        self.feeds.subscribe(&self.token.run_id, after)
    }

    async fn last(&self) -> u64 {
        self.store.last_event(&self.token.run_id).await.unwrap()
    }
}

/// Returns the number of the next stored event; `None` at the run's end.
async fn next(subscription: &mut Subscription) -> Option<u64> {
    match timeout(PATIENCE, subscription.next()).await.expect("an event comes").unwrap() {
        Some(FollowEvent::Stored(event)) => Some(event.seq),
        None => None,
        other => panic!("{other:?}"),
    }
}

async fn read(subscription: &mut Subscription, count: u64) -> Vec<u64> {
    let mut numbers = Vec::new();
    for _ in 0..count {
        numbers.push(next(subscription).await.unwrap());
    }
    numbers
}

#[tokio::test]
async fn a_slow_subscriber_misses_no_event() {
    let mut scene = Scene::new().await;
    scene.print(3).await;
    let mut fast = scene.subscribe(0);
    let mut slow = scene.subscribe(0);
    for subscription in [&mut fast, &mut slow] {
        assert_eq!(read(subscription, 3).await, [1, 2, 3]);
        // It waits for its feed now.
        assert!(timeout(Duration::from_millis(50), subscription.next()).await.is_err());
    }
    // More than a feed keeps for a subscriber that does not read.
    for _ in 0..20 {
        scene.print(50).await;
        assert_eq!(read(&mut fast, 50).await.len(), 50);
    }
    scene.end().await;
    let last = scene.last().await;
    assert_eq!(read(&mut slow, last - 3).await, (4..=last).collect::<Vec<_>>());
    assert_eq!(next(&mut slow).await, None);
    assert_eq!(read(&mut fast, last - 1003).await, (1004..=last).collect::<Vec<_>>());
    assert_eq!(next(&mut fast).await, None);
}

#[tokio::test]
async fn one_who_joins_late_misses_no_event() {
    let mut scene = Scene::new().await;
    scene.print(1).await;
    let mut first = scene.subscribe(0);
    assert_eq!(read(&mut first, 1).await, [1]);
    for joined in 1..=40 {
        assert!(timeout(Duration::from_millis(5), first.next()).await.is_err());
        let mut late = scene.subscribe(joined - 1);
        // Its first event is stored, and its second comes while it joins.
        let printing = async {
            tokio::time::sleep(Duration::from_micros(100 * joined)).await;
            scene.print(1).await;
        };
        let (read, ()) = tokio::join!(read(&mut late, 2), printing);
        assert_eq!(read, [joined, joined + 1]);
        assert_eq!(next(&mut first).await, Some(joined + 1));
    }
}

/// A client may name any number, and others follow the same run.
#[tokio::test]
async fn a_subscriber_from_the_future_blinds_none() {
    let mut scene = Scene::new().await;
    scene.print(1).await;
    let mut from_future = scene.subscribe(1_000_000);
    assert!(timeout(Duration::from_millis(50), from_future.next()).await.is_err());
    let mut other = scene.subscribe(0);
    assert_eq!(read(&mut other, 1).await, [1]);
    assert!(timeout(Duration::from_millis(50), other.next()).await.is_err());
    scene.print(2).await;
    assert_eq!(read(&mut other, 2).await, [2, 3]);
}

/// The reader ends with its last subscriber, and the next one gets another.
#[tokio::test]
async fn a_feed_ends_with_its_last_subscriber() {
    let mut scene = Scene::new().await;
    scene.print(1).await;
    for round in 0..3 {
        let mut subscription = scene.subscribe(round);
        assert_eq!(next(&mut subscription).await, Some(round + 1));
        // It joins a feed once it has caught up with the store.
        let joined = async {
            while scene.feeds.open_feeds() == 0 {
                assert!(timeout(Duration::from_millis(20), subscription.next()).await.is_err());
            }
        };
        timeout(Duration::from_secs(20), joined).await.unwrap();
        assert_eq!(scene.feeds.open_feeds(), 1);
        drop(subscription);
        assert_eq!(scene.feeds.open_feeds(), 0);
        scene.print(1).await;
    }
}
