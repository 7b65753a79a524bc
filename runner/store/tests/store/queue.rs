//! Tests the queue: its bounds, its counts and the order of claims.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures_util::future::join_all;
use platform_core::{
    id::{AccountId, RunId},
    limit::Millis,
    priority::Priority,
};
use runner_model::lifecycle::Transition;
use runner_store::{
    Bounds, Claimant, Created, Error, Filter, NewRun, Queue, QueueBound, QueueFull, Run, Store, Waiting,
    Worker,
};

use crate::database::{Database, cancelled, id, order};

const LONG: Millis = Millis::seconds(600);
/// Time after which a waiting run counts as one class higher, in milliseconds.
const CLASS_INTERVAL_MS: i64 = 300_000;

crate::on_both!(
    the_next_run_is_the_models,
    concurrent_claims_are_fair_together,
    concurrent_orders_respect_the_queue_bound,
    a_stored_order_is_not_refused_when_full,
    waiting_runs_are_counted,
    claims_among_ten_thousand_orders_are_fair,
);

fn account(n: usize) -> AccountId {
    AccountId::parse(&format!("acct-{n}")).unwrap()
}

async fn ordered(store: &Store, new: &NewRun, claimant: Claimant<'_>) -> Run {
    match store.create(new, claimant).await.unwrap() {
        Created::New(run) => run,
        Created::Existing(run) => panic!("{run:?}"),
    }
}

/// Random numbers from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap() % end
    }

    /// Returns a distance into the past, in milliseconds. It is far from the next class, so that the class does not
    /// change during the test.
    fn distance(&mut self) -> i64 {
        i64::try_from(self.below(5)).unwrap() * CLASS_INTERVAL_MS
            + CLASS_INTERVAL_MS / 2
            + i64::try_from(self.below(60_000)).unwrap()
    }

    fn priority(&mut self) -> Priority {
        Priority::ALL[self.below(3)]
    }
}

/// Model of all runs. It has no lines or indexes, and compares all waiting runs.
struct Model {
    database: Database,
    store: Store,
    random: Random,
    orders: u64,
    worker: Worker,
    waiting: Vec<Run>,
    held: Vec<Run>,
    served: BTreeMap<(AccountId, Priority), i64>,
    /// Sessions that runs belong to.
    sessions: BTreeMap<RunId, String>,
    now: i64,
}

impl Model {
    fn new_order(&mut self) -> NewRun {
        self.orders += 1;
        let run = format!("{}-{:03}", self.random.0 % 10_000, self.orders);
        let session = (self.random.below(3) == 0).then(|| format!("session-{}", self.random.below(4)));
        let new = NewRun {
            account: account(self.random.below(5)),
            priority: self.random.priority(),
            session,
            turn: None,
            ..order(&run)
        };
        self.sessions.extend(new.session.clone().map(|session| (new.run_id.clone(), session)));
        new
    }

    async fn order(&mut self) {
        let new = self.new_order();
        self.waiting.push(ordered(&self.store, &new, Claimant::AnyWorker).await);
    }

    /// Orders a run for the worker itself, which is refused while its session is active.
    async fn order_and_hold(&mut self) {
        let new = self.new_order();
        if self.is_blocked(&new.run_id) {
            let refused = self.store.create(&new, Claimant::Worker(&self.worker, LONG)).await;
            assert!(matches!(refused, Err(Error::SessionBusy { .. })), "{refused:?}");
            return;
        }
        self.held.push(ordered(&self.store, &new, Claimant::Worker(&self.worker, LONG)).await);
    }

    /// Ends one of the runs that are held.
    async fn end(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let run = self.held.swap_remove(self.random.below(self.held.len()));
        self.store.step(&run.fencing_token(), &Transition::Withdraw(cancelled()).into()).await.unwrap();
    }

    /// Moves the times of waiting runs and of claims into the past.
    async fn age(&mut self) {
        let mut changes = String::new();
        for run in &mut self.waiting {
            run.queued.0 -= self.random.distance();
            changes += &format!("UPDATE runs SET queued = {} WHERE run = '{}';", run.queued.0, run.run_id);
        }
        for run in &self.held {
            // Some of them were claimed from their lines.
            if self.random.below(2) == 0 {
                let claimed = run.created.0 - self.random.distance();
                changes += &format!("UPDATE runs SET claimed = {claimed} WHERE run = '{}';", run.run_id);
                let served = self.served.entry((run.account.clone(), run.priority)).or_insert(claimed);
                *served = claimed.max(*served);
            }
        }
        self.database.behind_its_back(&changes).await;
    }

    /// Returns whether another run of its session is held.
    fn is_blocked(&self, run: &RunId) -> bool {
        let session = self.sessions.get(run);
        session.is_some() && self.held.iter().any(|other| self.sessions.get(&other.run_id) == session)
    }

    fn next(&self) -> Option<usize> {
        let rank = |run: &Run| {
            let served = self.served.get(&(run.account.clone(), run.priority));
            let since = served.map_or(run.queued.0, |served| run.queued.0.max(*served));
            let class = (run.priority as i64) + (self.now - since) / CLASS_INTERVAL_MS;
            let held = self.held.iter().filter(|other| other.account == run.account).count();
            (-class, held, run.queued, run.run_id.to_string())
        };
        // Only runs that are not blocked can be next.
        let free = (0..self.waiting.len()).filter(|at| !self.is_blocked(&self.waiting[*at].run_id));
        free.min_by_key(|at| rank(&self.waiting[*at]))
    }

    async fn claim(&mut self) -> bool {
        self.now = self.store.list(&Filter::default(), 1).await.unwrap().now.0;
        let next = self.next().map(|at| self.waiting.swap_remove(at));
        let claimed = self.store.claim(&self.worker, LONG).await.unwrap();
        assert_eq!(claimed.as_ref().map(|run| &run.run_id), next.as_ref().map(|run| &run.run_id), "{next:?}");
        let Some(run) = claimed else { return false };
        self.served.insert((run.account.clone(), run.priority), self.now);
        self.held.push(run);
        true
    }
}

async fn the_next_run_is_the_models(database: Database) {
    drop(database.open().await);
    let mut model = Model {
        store: database.open().await,
        database,
        random: Random(1),
        orders: 0,
        worker: Worker::named("one"),
        waiting: Vec::new(),
        held: Vec::new(),
        served: BTreeMap::new(),
        sessions: BTreeMap::new(),
        now: 0,
    };
    for seed in 1..=4 {
        // Each seed has its own installation, so that no seed sees the runs of another.
        model.store = model.database.open_of(&format!("seed-{seed}")).await;
        model.random = Random(seed * 0x9e37_79b9);
        (model.held, model.served) = (Vec::new(), BTreeMap::new());
        for _ in 0..40 {
            model.order().await;
        }
        for _ in 0..12 {
            model.order_and_hold().await;
        }
        model.age().await;
        let mut orders = 20;
        while !model.waiting.is_empty() {
            let claimed = model.claim().await;
            match model.random.below(4) {
                0 if orders > 0 => {
                    orders -= 1;
                    model.order().await;
                }
                1 | 2 => model.end().await,
                // All waiting runs are blocked.
                _ if !claimed => model.end().await,
                _ => {}
            }
        }
        assert!(model.waiting.is_empty());
    }
}

async fn concurrent_claims_are_fair_together(database: Database) {
    let clients = [database.open().await, database.open().await];
    for n in 0..40 {
        // Three of four runs belong to the first account.
        let new = NewRun { account: account(usize::from(n % 4 == 3)), ..order(&format!("r{n}")) };
        ordered(&clients[0], &new, Claimant::AnyWorker).await;
    }
    let claim = async |client: &Store| {
        let mut claimed = Vec::new();
        for _ in 0..8 {
            claimed.push(client.claim(&Worker::this_process(), LONG).await.unwrap().unwrap());
        }
        claimed
    };
    let (one, other) = tokio::join!(claim(&clients[0]), claim(&clients[1]));
    let all: Vec<_> = one.into_iter().chain(other).collect();
    let runs: BTreeSet<_> = all.iter().map(|run| run.run_id.clone()).collect();
    assert_eq!(runs.len(), 16, "none twice");
    let first = all.iter().filter(|run| run.account == account(0)).count();
    assert_eq!(first, 8, "either account has as many as the other");
}

fn full(refused: Error) -> QueueFull {
    match refused {
        Error::Full(full) => *full,
        other => panic!("{other:?}"),
    }
}

async fn concurrent_orders_respect_the_queue_bound(database: Database) {
    let bounds = Bounds { all: 5, of_account: 3 };
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(database.open().await.bounded(bounds));
    }
    let orders: Vec<_> =
        (0..24).map(|n| NewRun { account: account(n % 2), ..order(&format!("r{n:02}")) }).collect();
    let ordering = orders.iter().enumerate().map(|(n, new)| clients[n % 4].create(new, Claimant::AnyWorker));
    let (mut stored, mut refused) = (Vec::new(), Vec::new());
    for (new, created) in orders.iter().zip(join_all(ordering).await) {
        match created {
            Ok(Created::New(_)) => stored.push(new),
            Ok(Created::Existing(run)) => panic!("{run:?}"),
            Err(error) => refused.push(full(error)),
        }
    }
    assert_eq!((stored.len(), refused.len()), (5, 19));
    for full in refused {
        let most = if full.bound == QueueBound::All { 5 } else { 3 };
        assert_eq!((full.waiting, full.most, full.lately), (u64::from(most), most, 0), "{full:?}");
        assert_eq!(full.retry_after, Duration::from_secs(300), "no run is claimed");
    }
    let store = &clients[0];
    for new in &stored {
        let again = store.create(new, Claimant::AnyWorker).await.unwrap();
        assert!(matches!(&again, Created::Existing(run) if run.run_id == new.run_id), "{again:?}");
    }
    let third = NewRun { account: account(2), ..order("third") };
    assert_eq!(full(store.create(&third, Claimant::AnyWorker).await.unwrap_err()).bound, QueueBound::All);
    // A run for the ordering worker needs no room in the queue.
    ordered(store, &order("mine"), Claimant::Worker(&Worker::this_process(), LONG)).await;
    // A claim makes room for one run.
    store.claim(&Worker::this_process(), LONG).await.unwrap().unwrap();
    ordered(store, &third, Claimant::AnyWorker).await;
    let new = NewRun { account: account(3), ..order("later") };
    let later = full(store.create(&new, Claimant::AnyWorker).await.unwrap_err());
    assert_eq!((&later.bound, later.lately, later.waiting), (&QueueBound::All, 1, 5));
    assert!(later.retry_after < Duration::from_secs(300), "{later:?}");
    store.request_cancel(&third.run_id).await.unwrap();
    ordered(store, &new, Claimant::AnyWorker).await;
}

async fn a_stored_order_is_not_refused_when_full(database: Database) {
    let bounds = Bounds { all: 1, of_account: 1 };
    let clients = [database.open().await.bounded(bounds), database.open().await.bounded(bounds)];
    for n in 0..20 {
        let new = order(&format!("r{n}"));
        let created = join_all(
            clients.iter().map(async |client| client.create(&new, Claimant::AnyWorker).await.unwrap()),
        );
        let new_ones = created.await.iter().filter(|created| matches!(created, Created::New(_))).count();
        assert_eq!(new_ones, 1);
        clients[0].request_cancel(&id(&format!("r{n}"))).await.unwrap();
    }
}

async fn waiting_runs_are_counted(database: Database) {
    let store = database.open().await;
    assert!(!store.is_anything_queued().await.unwrap());
    assert_eq!(store.queue().await.unwrap(), Queue { waiting: Waiting::default(), oldest: None });
    let mut runs = Vec::new();
    for (n, priority) in
        [Priority::Low, Priority::High, Priority::High, Priority::Normal].into_iter().enumerate()
    {
        let new = NewRun { priority, account: account(n % 2), ..order(&format!("r{n}")) };
        runs.push(ordered(&store, &new, Claimant::AnyWorker).await);
    }
    let same_line = NewRun { priority: Priority::High, account: account(1), ..order("r9") };
    let behind = ordered(&store, &same_line, Claimant::AnyWorker).await;
    let mine = NewRun { account: account(0), ..order("mine") };
    ordered(&store, &mine, Claimant::Worker(&Worker::this_process(), LONG)).await;
    database.behind_its_back("UPDATE runs SET queued = queued - 60000 WHERE run = 'r0'").await;
    assert!(store.is_anything_queued().await.unwrap());
    let queue = store.queue().await.unwrap();
    assert_eq!(queue.waiting, Waiting { low: 1, normal: 1, high: 3 });
    assert_eq!((queue.waiting.of(Priority::High), queue.waiting.all()), (3, 5));
    let oldest = queue.oldest.unwrap();
    assert!(oldest >= Duration::from_secs(60) && oldest < Duration::from_secs(100), "{oldest:?}");
    let position = store.queue_position(&behind).await.unwrap().unwrap();
    assert_eq!((position.ahead, position.waiting, position.held, position.lately), (1, 5, 1, 0));
    let claimed = store.claim(&Worker::this_process(), LONG).await.unwrap().unwrap();
    assert_eq!(claimed.run_id, runs[1].run_id);
    assert!(claimed.claimed.is_some_and(|claimed| claimed >= runs[1].created), "{claimed:?}");
    assert_eq!(store.queue_position(&claimed).await.unwrap(), None, "it does not wait to be taken");
    let position = store.queue_position(&behind).await.unwrap().unwrap();
    assert_eq!((position.ahead, position.waiting, position.held, position.lately), (0, 4, 2, 1));
}

/// Checks that claims are fair, not that they are fast.
async fn claims_among_ten_thousand_orders_are_fair(database: Database) {
    let store = database.open().await;
    database
        .behind_its_back(
            "INSERT INTO runs (run, installation, account, agent, correlation, wanted, priority, state, attempt, \
             epoch, created, queued, changed, last_event) \
             WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 9999) \
             SELECT 'r' || n, 'here', 'acct-' || (n % 100), 'sandbox:agent', '{}', '{}', n % 3, 'queued', 0, 0, n, \
             (SELECT max(applied) FROM migrations) + n, 0, 0 FROM n",
        )
        .await;
    let mut by_account = BTreeMap::<_, usize>::new();
    for _ in 0..100 {
        let run = store.claim(&Worker::named("one"), LONG).await.unwrap().unwrap();
        assert_eq!(run.priority, Priority::High);
        *by_account.entry(run.account).or_default() += 1;
    }
    assert_eq!(by_account.len(), 100, "one of each account: {by_account:?}");
    assert_eq!(store.queue().await.unwrap().waiting.all(), 9_900);
}
