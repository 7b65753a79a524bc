//! Tests two holders that do random operations, against a model of the allowed ones.
//!
//! Leases are long, and end only when a worker releases them, so that no result depends on a clock.

use std::collections::{BTreeMap, BTreeSet};

use platform_core::{control::Usage, limit::Millis};
use runner_model::lifecycle::{Completion, Outcome, State, Transition};
use runner_store::{
    Claimant, Created, Error, FencingToken, ResourceChange, ResourceKind, ResourceState, Run, Step, Store,
    Worker,
};

use crate::database::{Database, cancelled, eventually, id, order, transitions};

const LONG: Millis = Millis::seconds(600);
const OPERATIONS: usize = 400;
const SEED: u64 = 0x5eed;

crate::on_both!(
    two_holders_match_the_model,
    a_worker_releases_only_its_own_runs,
    a_worker_does_not_take_over_its_own_runs,
    a_run_is_asked_to_stop_wherever_it_is,
    kept_resources_outlive_their_run,
);

/// Expected state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Expected {
    state: State,
    epoch: u64,
    owner: Option<Owner>,
    is_asked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Owner {
    worker: usize,
    has_released: bool,
}

/// Expected state of all runs, with the store that is compared to it.
struct Model {
    store: [Store; 2],
    workers: [Worker; 2],
    runs: BTreeMap<String, Expected>,
    /// Every fencing token that a worker ever got.
    tokens: Vec<FencingToken>,
    random_state: u64,
}

impl Model {
    /// Returns a pseudo-random number below `end`.
    fn below(&mut self, end: usize) -> usize {
        // xorshift64*
        self.random_state ^= self.random_state >> 12;
        self.random_state ^= self.random_state << 25;
        self.random_state ^= self.random_state >> 27;
        usize::try_from(self.random_state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap() % end
    }

    async fn operate(&mut self) {
        let worker = self.below(2);
        match self.below(20) {
            0..3 => self.create(worker).await,
            3..5 => self.claim(worker).await,
            5..7 => self.take_over(worker).await,
            7 => self.release(worker).await,
            8 => self.ask_cancel(worker).await,
            9 => self.renew(worker).await,
            _ => self.step(worker).await,
        }
    }

    async fn create(&mut self, worker: usize) {
        let name = format!("r{}", self.below(40));
        let is_mine = self.below(2) == 0;
        let me = self.workers[worker].clone();
        let claimant = if is_mine { Claimant::Worker(&me, LONG) } else { Claimant::AnyWorker };
        let created = self.store[worker].create(&order(&name), claimant).await.unwrap();
        if self.runs.contains_key(&name) {
            assert!(matches!(created, Created::Existing(_)), "{created:?}");
            return;
        }
        let Created::New(run) = created else { panic!("{created:?}") };
        let owner = is_mine.then_some(Owner { worker, has_released: false });
        let expected = Expected { state: State::Queued, epoch: u64::from(is_mine), owner, is_asked: false };
        self.runs.insert(name, expected);
        if is_mine {
            self.tokens.push(run.fencing_token());
        }
    }

    /// Records that `worker` has claimed `run`.
    fn claimed_by(&mut self, worker: usize, run: &Run) {
        let expected = self.runs.get_mut(run.run_id.as_str()).unwrap();
        expected.epoch += 1;
        expected.owner = Some(Owner { worker, has_released: false });
        assert_eq!((run.epoch, run.state), (expected.epoch, expected.state));
        self.tokens.push(run.fencing_token());
    }

    async fn claim(&mut self, worker: usize) {
        let mut waiting = Vec::new();
        for (name, _) in self.runs.iter().filter(|(_, run)| run.state == State::Queued && run.owner.is_none())
        {
            waiting.push((self.store[0].record(&id(name)).await.unwrap().run.created, name.clone()));
        }
        let claimed = self.store[worker].claim(&self.workers[worker], LONG).await.unwrap();
        let first = waiting.into_iter().min().map(|(_, name)| name);
        assert_eq!(claimed.as_ref().map(|run| run.run_id.to_string()), first, "the one that waits longest");
        if let Some(run) = claimed {
            self.claimed_by(worker, &run);
        }
    }

    async fn take_over(&mut self, worker: usize) {
        let released = |run: &Expected| run.owner.is_some_and(|owner| owner.has_released);
        let released: BTreeSet<_> =
            self.runs.iter().filter(|(_, run)| released(run)).map(|(name, _)| name.clone()).collect();
        let take_over =
            async || self.store[worker].take_over(&self.workers[worker], LONG, &[]).await.unwrap();
        if released.is_empty() {
            assert_eq!(take_over().await, None);
            return;
        }
        // Postgres skips rows that are locked, as by a refused step before its rollback has arrived.
        let run = eventually("a released run is taken over", take_over).await;
        assert!(released.contains(run.run_id.as_str()), "{run:?} of {released:?}");
        self.claimed_by(worker, &run);
    }

    async fn release(&mut self, worker: usize) {
        self.store[worker].release(&self.workers[worker]).await.unwrap();
        for run in self.runs.values_mut() {
            if let Some(owner) = run.owner.as_mut().filter(|owner| owner.worker == worker) {
                owner.has_released = true;
            }
        }
    }

    async fn ask_cancel(&mut self, worker: usize) {
        let Some(name) = self.any_run() else { return };
        let run = self.store[worker].request_cancel(&id(&name)).await.unwrap();
        let expected = self.runs.get_mut(&name).unwrap();
        expected.is_asked |= !expected.state.is_final();
        if expected.state == State::Queued && expected.owner.is_none_or(|owner| owner.has_released) {
            expected.state = State::Ended(Outcome::Cancelled);
            expected.owner = None;
        }
        assert_eq!(run.state, expected.state);
    }

    fn any_run(&mut self) -> Option<String> {
        let at = self.below(self.runs.len().max(1));
        self.runs.keys().nth(at).cloned()
    }

    fn any_token(&mut self) -> Option<FencingToken> {
        let distance = self.below(12);
        self.tokens.len().checked_sub(1 + distance).map(|at| self.tokens[at].clone())
    }

    async fn renew(&mut self, worker: usize) {
        let Some(token) = self.any_token() else { return };
        let renewed = self.store[worker].renew(&token, LONG).await;
        let run = self.runs.get_mut(token.run_id.as_str()).unwrap();
        if run.epoch == token.epoch {
            renewed.unwrap();
            if let Some(owner) = &mut run.owner {
                owner.has_released = false;
            }
        } else {
            assert!(matches!(renewed, Err(Error::Fenced { .. })), "{renewed:?}");
        }
    }

    async fn step(&mut self, worker: usize) {
        let Some(token) = self.any_token() else { return };
        let transition = match self.below(8) {
            7 => Transition::Withdraw(cancelled()),
            6 => Transition::Settle(Completion::without_agent(cancelled())),
            5 => Transition::Finish(Some(Usage::default())),
            other => transitions()[other].clone(),
        };
        let stepped = self.store[worker].step(&token, &transition.clone().into()).await;
        let run = self.runs.get_mut(token.run_id.as_str()).unwrap();
        match (run.epoch == token.epoch, run.state.after(&transition)) {
            (false, _) => assert!(matches!(stepped, Err(Error::Fenced { .. })), "{stepped:?}"),
            (true, Err(_)) => assert!(matches!(stepped, Err(Error::Illegal { .. })), "{stepped:?}"),
            (true, Ok(after)) => {
                assert_eq!(stepped.unwrap().state, after);
                run.state = after;
            }
        }
        if run.state.is_final() {
            run.owner = None;
        }
    }

    async fn compare(&self) {
        for (name, expected) in &self.runs {
            let run = self.store[0].record(&id(name)).await.unwrap().run;
            let owner =
                expected.owner.map(|owner| (self.workers[owner.worker].to_string(), owner.has_released));
            let lease = run.lease.map(|lease| (lease.owner, lease.expired));
            assert_eq!((run.state, run.epoch, lease), (expected.state, expected.epoch, owner), "{name}");
            let is_asked = self.store[1].is_cancel_requested(&id(name)).await.unwrap();
            assert_eq!(is_asked, expected.is_asked, "{name}");
        }
    }
}

async fn two_holders_match_the_model(database: Database) {
    let mut model = Model {
        store: [database.open().await, database.open().await],
        workers: ["one", "two"].map(Worker::named),
        runs: BTreeMap::new(),
        tokens: Vec::new(),
        random_state: SEED,
    };
    for _ in 0..OPERATIONS {
        model.operate().await;
    }
    model.compare().await;
    let ended = model.runs.values().filter(|run| run.state.is_final()).count();
    let epochs: u64 = model.runs.values().map(|run| run.epoch).sum();
    assert!(ended > 3 && epochs > model.runs.len() as u64, "{:?}", model.runs);
}

async fn a_worker_releases_only_its_own_runs(database: Database) {
    let store = database.open().await;
    let (one, two) = (Worker::named("one"), Worker::named("two"));
    for (run, worker) in [("a", &one), ("b", &two)] {
        store.create(&order(run), Claimant::Worker(worker, LONG)).await.unwrap();
    }
    store.release(&Worker::named("unknown")).await.unwrap();
    assert!(store.take_over(&two, LONG, &[]).await.unwrap().is_none());
    store.release(&one).await.unwrap();
    let run = store.take_over(&two, LONG, &[]).await.unwrap().unwrap();
    assert_eq!((run.run_id.as_str(), run.epoch), ("a", 2));
    assert!(store.take_over(&two, LONG, &[]).await.unwrap().is_none(), "the other's is its own");
    store.release(&one).await.unwrap();
    assert!(
        store.take_over(&one, LONG, &[]).await.unwrap().is_none(),
        "what was taken over is given back no more"
    );
}

async fn a_worker_does_not_take_over_its_own_runs(database: Database) {
    let store = database.open().await;
    let (one, two) = (Worker::named("one"), Worker::named("two"));
    for run in ["a", "b"] {
        store.create(&order(run), Claimant::Worker(&one, Millis(0))).await.unwrap();
    }
    let all_expired = async || {
        let has_expired =
            async |run| store.record(&id(run)).await.unwrap().run.lease.is_some_and(|lease| lease.expired);
        (has_expired("a").await && has_expired("b").await).then_some(())
    };
    eventually("their leases are over", all_expired).await;
    let executing = [id("a"), id("b")];
    assert!(store.take_over(&one, LONG, &executing).await.unwrap().is_none(), "it goes on with them");
    let left = store.take_over(&one, LONG, &executing[..1]).await.unwrap().unwrap();
    assert_eq!((left.run_id.as_str(), left.epoch), ("b", 2), "what it does not live it takes like anybody");
    let other = store.take_over(&two, LONG, &[]).await.unwrap().unwrap();
    assert_eq!((other.run_id.as_str(), other.epoch), ("a", 2));
}

async fn a_run_is_asked_to_stop_wherever_it_is(database: Database) {
    let store = database.open().await;
    let worker = Worker::named("one");
    store.create(&order("waits"), Claimant::AnyWorker).await.unwrap();
    let run = store.request_cancel(&id("waits")).await.unwrap();
    assert_eq!((run.state, run.error), (State::Ended(Outcome::Cancelled), Some(cancelled_early())));
    assert!(store.claim(&worker, LONG).await.unwrap().is_none(), "no worker gets it any more");

    let Created::New(run) = store.create(&order("held"), Claimant::Worker(&worker, LONG)).await.unwrap()
    else {
        panic!("not new")
    };
    let token = run.fencing_token();
    for transition in transitions() {
        let before = store.record(&token.run_id).await.unwrap().run;
        let asked = store.request_cancel(&token.run_id).await.unwrap();
        assert_eq!((asked.state, &asked.lease), (before.state, &before.lease), "its holder decides");
        assert!(store.is_cancel_requested(&token.run_id).await.unwrap());
        store.step(&token, &transition.into()).await.unwrap();
    }
    let ended = store.record(&token.run_id).await.unwrap();
    assert_eq!(store.request_cancel(&token.run_id).await.unwrap().state, State::Ended(Outcome::Succeeded));
    assert_eq!(
        store.record(&token.run_id).await.unwrap().run,
        ended.run,
        "one that has ended stays as it is"
    );
    assert!(matches!(store.request_cancel(&id("unknown")).await.unwrap_err(), Error::Unknown { .. }));
}

fn cancelled_early() -> runner_model::lifecycle::Failure {
    runner_model::lifecycle::Failure { message: "cancelled before it began".to_owned(), ..cancelled() }
}

async fn kept_resources_outlive_their_run(database: Database) {
    let store = database.open().await;
    let Created::New(run) =
        store.create(&order("r1"), Claimant::Worker(&Worker::named("one"), LONG)).await.unwrap()
    else {
        panic!("not new")
    };
    let token = run.fencing_token();
    let workspace = ResourceChange::wanted(ResourceKind::Workspace, "w1");
    let [prepare, .., settle, finish] = transitions();
    let unrecorded = store.step(&token, &workspace.to(ResourceState::Kept).into()).await.unwrap_err();
    assert!(matches!(unrecorded, Error::NotWanted { .. }), "{unrecorded:?}");
    store.step(&token, &Step::from(prepare).with([workspace.clone()])).await.unwrap();
    store.step(&token, &settle.into()).await.unwrap();
    store.step(&token, &Step::from(finish).with([workspace.to(ResourceState::Kept)])).await.unwrap();
    let left = store.unremoved_resources().await.unwrap();
    assert_eq!(left.iter().map(|resource| resource.stage).collect::<Vec<_>>(), [ResourceState::Kept]);
}
