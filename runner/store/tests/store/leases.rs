//! Tests leases when several workers want a run.

use std::collections::BTreeSet;

use platform_core::{event::AgentEvent, limit::Millis};
use runner_model::lifecycle::Transition;
use runner_store::{
    Batch, Claimant, Error, EventCursor, FencingToken, ResourceChange, ResourceKind, ResourceState, Run,
    Store, Worker,
};

use crate::database::{Database, eventually, order, transitions};

const LONG: Millis = Millis::seconds(600);
/// Lease that expires with the next millisecond.
const EXPIRES_AT_ONCE: Millis = Millis(0);

crate::on_both!(
    two_clients_claim_no_run_twice,
    the_run_that_waits_longest_is_claimed_first,
    a_fenced_worker_can_do_nothing,
    a_lease_that_holds_is_not_taken_over,
    one_of_two_clients_takes_a_run_over,
);

async fn claim_all(store: &Store) -> Vec<String> {
    let worker = Worker::this_process();
    let mut claimed = Vec::new();
    while let Some(run) = store.claim(&worker, LONG).await.unwrap() {
        claimed.push(run.run_id.to_string());
        tokio::task::yield_now().await;
    }
    claimed
}

async fn two_clients_claim_no_run_twice(database: Database) {
    let clients = [database.open().await, database.open().await];
    for n in 0..100 {
        clients[0].create(&order(&format!("r{n}")), Claimant::AnyWorker).await.unwrap();
    }
    // Either client could claim all of them: SQLite may always let the same one write.
    let worker = Worker::this_process();
    for client in &clients {
        assert!(client.claim(&worker, LONG).await.unwrap().is_some());
    }
    let (one, other) = tokio::join!(claim_all(&clients[0]), claim_all(&clients[1]));
    let all: BTreeSet<_> = one.iter().chain(&other).collect();
    assert_eq!((one.len() + other.len(), all.len()), (98, 98));
}

async fn the_run_that_waits_longest_is_claimed_first(database: Database) {
    let store = database.open().await;
    for run in ["b", "a", "c"] {
        let before = store.create(&order(run), Claimant::AnyWorker).await.unwrap();
        // Runs of the same millisecond are of the same age.
        eventually("the clock moves", async || {
            let page = store.list(&runner_store::Filter::default(), 1).await.unwrap();
            (page.now > page.runs[0].created).then_some(())
        })
        .await;
        drop(before);
    }
    assert_eq!(claim_all(&store).await, ["b", "a", "c"]);
}

/// Returns two clients; the first has claimed a run that the second can take over.
async fn run_to_take_over(database: &Database) -> (Store, Store, FencingToken) {
    let (first, second) = (database.open().await, database.open().await);
    first.create(&order("r1"), Claimant::AnyWorker).await.unwrap();
    let run = first.claim(&Worker::this_process(), EXPIRES_AT_ONCE).await.unwrap().unwrap();
    (first, second, run.fencing_token())
}

async fn taken_over(store: &Store) -> Run {
    let worker = Worker::this_process();
    eventually("the lease is over", async || store.take_over(&worker, LONG, &[]).await.unwrap()).await
}

async fn a_fenced_worker_can_do_nothing(database: Database) {
    let (first, second, stale) = run_to_take_over(&database).await;
    // The lease has expired, but no other worker has the run: the first may continue.
    let workspace = ResourceChange::wanted(ResourceKind::Workspace, "/w/r1");
    first
        .step(&stale, &runner_store::Step::from(Transition::Prepare).with([workspace.clone()]))
        .await
        .unwrap();
    let run = taken_over(&second).await;
    assert_eq!((run.epoch, run.attempt, run.state.name()), (2, 0, "preparing"));
    let batch = Batch { number: 1, events: vec![AgentEvent::Done], cursor: EventCursor::default() };
    let mut tried: Vec<(&str, Result<(), Error>)> = vec![
        ("renew", first.renew(&stale, LONG).await),
        ("tell", first.record_events(&stale, &batch).await),
        ("stop", first.record_stopping(&stale, "\"timeout\"").await),
        ("start anew", first.restart(&stale).await.map(drop)),
        (
            "want",
            first.step(&stale, &ResourceChange::wanted(ResourceKind::Container, "c").into()).await.map(drop),
        ),
        ("have made", first.step(&stale, &workspace.to(ResourceState::Made).into()).await.map(drop)),
        ("have removed", first.step(&stale, &workspace.to(ResourceState::Removed).into()).await.map(drop)),
    ];
    for transition in transitions() {
        tried.push(("move", first.step(&stale, &transition.into()).await.map(drop)));
    }
    let before = second.history(&stale.run_id).await.unwrap();
    for (what, result) in tried {
        assert!(matches!(result, Err(Error::Fenced { held: 1, epoch: 2, .. })), "{what}: {result:?}");
    }
    assert_eq!(before.events.len(), 1, "nothing of that is left: {before:?}");
    assert_eq!(before.record.resources[0].stage, ResourceState::Wanted);
    let token = run.fencing_token();
    second.renew(&token, LONG).await.unwrap();
    second.step(&token, &workspace.to(ResourceState::Made).into()).await.unwrap();
    second.step(&token, &Transition::Start.into()).await.unwrap();
}

async fn a_lease_that_holds_is_not_taken_over(database: Database) {
    let (first, second, token) = run_to_take_over(&database).await;
    first.renew(&token, LONG).await.unwrap();
    let worker = Worker::this_process();
    assert!(second.take_over(&worker, LONG, &[]).await.unwrap().is_none());
    assert!(second.claim(&worker, LONG).await.unwrap().is_none(), "nor claimed as if it were free");
    let run = second.record(&token.run_id).await.unwrap().run;
    assert!(!run.lease.unwrap().expired);
    first.renew(&token, EXPIRES_AT_ONCE).await.unwrap();
    taken_over(&second).await;
    // A run that has ended has no holder.
    let stale = FencingToken { epoch: 2, ..token };
    for transition in transitions() {
        second.step(&stale, &transition.into()).await.unwrap();
    }
    assert!(second.take_over(&worker, LONG, &[]).await.unwrap().is_none());
}

async fn one_of_two_clients_takes_a_run_over(database: Database) {
    let (first, second, token) = run_to_take_over(&database).await;
    eventually("the lease is over", async || {
        first.record(&token.run_id).await.unwrap().run.lease.unwrap().expired.then_some(())
    })
    .await;
    let worker = Worker::this_process();
    let (one, other) =
        tokio::join!(first.take_over(&worker, LONG, &[]), second.take_over(&worker, LONG, &[]));
    let got = [one.unwrap(), other.unwrap()].into_iter().flatten().count();
    assert_eq!(got, 1);
}
