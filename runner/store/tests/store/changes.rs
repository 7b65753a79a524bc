//! Tests that a store hears of changes that other processes make on Postgres.
//!
//! Nothing in these tests reads the store for changes: each one that a watcher sees was notified.

use std::time::Duration;

use platform_core::{
    event::{AgentEvent, OutputStream},
    limit::Millis,
};
use runner_model::lifecycle::Transition;
use runner_store::{
    Batch, Claimant, Created, EventCursor, FencingToken, RunWatcher, StateChanges, StateWatcher, Store,
    Worker,
};
use tokio::time::timeout;

use crate::database::{Database, eventually, id, order};

crate::on_postgres!(
    changes_of_other_processes_are_heard,
    own_changes_are_reported_once,
    other_installations_are_not_heard,
    a_lost_connection_loses_no_change,
    a_stopped_server_is_waited_for,
    a_closed_store_listens_no_longer,
);

/// Longest wait for a change.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(20);
const STOP_LISTENERS: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sluice listener' AND datname = current_database()";
const COUNT_LISTENERS: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sluice listener' AND datname = current_database()";

async fn listening(store: &Store) {
    store.listen();
    eventually("the store listens", async || store.is_listening().then_some(())).await;
}

/// Orders a run as a worker of `store`.
async fn ordered(store: &Store, run: &str) -> FencingToken {
    let worker = Worker::this_process();
    let created = store.create(&order(run), Claimant::Worker(&worker, Millis::seconds(600))).await.unwrap();
    let Created::New(run) = created else { panic!("{created:?}") };
    run.fencing_token()
}

async fn print(store: &Store, token: &FencingToken, number: u64) {
    let line = AgentEvent::Log { stream: OutputStream::Stdout, text: "line\n".to_owned() };
    let batch = Batch { number, events: vec![line], cursor: EventCursor::default() };
    store.record_events(token, &batch).await.unwrap();
}

async fn changed(watcher: &mut RunWatcher) {
    timeout(CHANGE_TIMEOUT, watcher.changed()).await.expect("the watcher sees the change");
}

async fn state_changed(watcher: &mut StateWatcher) -> StateChanges {
    timeout(CHANGE_TIMEOUT, watcher.changed()).await.expect("the watcher sees the change").unwrap()
}

fn only(run: &str) -> StateChanges {
    StateChanges::Of([id(run)].into())
}

async fn changes_of_other_processes_are_heard() {
    let database = Database::postgres().await;
    let (here, other) = (database.open().await, database.open().await);
    listening(&here).await;
    let mut states = here.watch_states();
    let token = ordered(&other, "r1").await;
    assert_eq!(state_changed(&mut states).await, only("r1"));
    let mut watcher = here.watch(&id("r1"));
    other.step(&token, &Transition::Prepare.into()).await.unwrap();
    changed(&mut watcher).await;
    assert_eq!(state_changed(&mut states).await, only("r1"));
    print(&other, &token, 1).await;
    changed(&mut watcher).await;
    // Events change no state. The next state is that of another run.
    ordered(&other, "r2").await;
    assert_eq!(state_changed(&mut states).await, only("r2"));
}

async fn own_changes_are_reported_once() {
    let database = Database::postgres().await;
    let (here, other) = (database.open().await, database.open().await);
    listening(&here).await;
    let mut states = here.watch_states();
    ordered(&here, "r1").await;
    assert_eq!(state_changed(&mut states).await, only("r1"));
    // Postgres delivers in order, so a notification of the own change would come first.
    ordered(&other, "r2").await;
    assert_eq!(state_changed(&mut states).await, only("r2"));
}

async fn other_installations_are_not_heard() {
    let database = Database::postgres().await;
    let (here, other) = (database.open().await, database.open().await);
    let there = database.open_of("there").await;
    listening(&here).await;
    let mut states = here.watch_states();
    ordered(&there, "r1").await;
    ordered(&other, "r2").await;
    assert_eq!(state_changed(&mut states).await, only("r2"));
    listening(&there).await;
    let mut states = there.watch_states();
    ordered(&other, "r3").await;
    ordered(&here, "r4").await;
    let elsewhere = database.open_of("there").await;
    ordered(&elsewhere, "r5").await;
    assert_eq!(state_changed(&mut states).await, only("r5"), "control: each hears its own");
}

async fn a_lost_connection_loses_no_change() {
    let database = Database::postgres().await;
    let (here, other) = (database.open().await, database.open().await);
    let token = ordered(&other, "r1").await;
    let mut watcher = here.watch(&id("r1"));
    here.listen();
    // What happened before the connection listened is unknown.
    changed(&mut watcher).await;
    for number in 1..=2 {
        listening(&here).await;
        let mut watcher = here.watch(&id("r1"));
        database.behind_its_back(STOP_LISTENERS).await;
        // Readers learn of the loss, and read here.
        changed(&mut watcher).await;
        // Nothing listens now, so only the return of the connection can have them read again.
        print(&other, &token, number).await;
        changed(&mut watcher).await;
    }
    listening(&here).await;
    let mut watcher = here.watch(&id("r1"));
    print(&other, &token, 3).await;
    changed(&mut watcher).await;
}

async fn a_stopped_server_is_waited_for() {
    let mut database = Database::server().await;
    let here = database.open().await;
    listening(&here).await;
    let mut states = here.watch_states();
    database.stop();
    assert_eq!(state_changed(&mut states).await, StateChanges::Unknown, "readers learn of the loss");
    eventually("the loss is seen", async || (!here.is_listening()).then_some(())).await;
    database.start().await;
    eventually("it listens again", async || here.is_listening().then_some(())).await;
    let other = database.open().await;
    let mut states = here.watch_states();
    ordered(&other, "r1").await;
    assert_eq!(state_changed(&mut states).await, only("r1"));
}

async fn a_closed_store_listens_no_longer() {
    let database = Database::postgres().await;
    let here = database.open().await;
    listening(&here).await;
    assert_eq!(database.count(COUNT_LISTENERS).await, 1);
    here.listen();
    assert_eq!(database.count(COUNT_LISTENERS).await, 1, "it has one connection");
    here.clone().close().await;
    drop(here);
    let connections = async || database.count(COUNT_LISTENERS).await;
    eventually("the connection is closed", async || (connections().await == 0).then_some(())).await;
}

#[tokio::test]
async fn a_file_has_no_notifications() {
    let database = Database::sqlite();
    let (here, other) = (database.open().await, database.open().await);
    here.listen();
    let mut states = here.watch_states();
    ordered(&other, "r1").await;
    assert!(!here.is_listening(), "so readers read regularly");
    ordered(&here, "r2").await;
    assert_eq!(state_changed(&mut states).await, only("r2"));
}
