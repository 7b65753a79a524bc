//! Tests the store when programs are killed and databases stop.

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
};

use platform_core::limit::Millis;
use platform_runtime::retry::Transient;
use runner_model::lifecycle::{State, Transition};
use runner_store::{Claimant, Filter, Worker};
use sqlx::{AnyConnection, Connection, Row};

use crate::database::{Database, eventually, id, order, transitions};

crate::on_both!(
    acknowledged_writes_survive_a_kill;
    postgres: a_restarted_database_is_used_again
);

/// Returns the path of the program `store-writer`, which is built beside this one.
fn writer() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.ancestors().nth(2).unwrap().join("examples/store-writer")
}

async fn acknowledged_writes_survive_a_kill(database: Database) {
    let mut acknowledged = Vec::new();
    for round in 0..5 {
        let mut child = Command::new(writer())
            .args([database.url(), format!("round{round}")])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Killed between two lines, and so within a step: a step takes longer than its line.
        acknowledged.extend(lines.by_ref().take(13 + 7 * round).map(Result::unwrap));
        child.kill().unwrap();
        acknowledged.extend(lines.map(Result::unwrap));
        child.wait().unwrap();
    }
    let store = database.open().await;
    assert!(acknowledged.len() >= 100, "{}", acknowledged.len());
    for line in &acknowledged {
        let (run, state) = line.split_once(' ').unwrap();
        let found = store.record(&id(run)).await.unwrap().run.state;
        let reached = State::NAMES.iter().position(|name| *name == found.name());
        assert!(reached >= State::NAMES.iter().position(|name| *name == state), "{line}, but {found}");
    }
    // Abandoned runs are taken over and ended.
    let worker = Worker::this_process();
    while let Some(run) = store.take_over(&worker, Millis::seconds(60), &[]).await.unwrap() {
        for transition in
            transitions().into_iter().skip_while(|transition| run.state.after(transition).is_err())
        {
            store.step(&run.fencing_token(), &transition.into()).await.unwrap();
        }
    }
    let open = Filter { states: State::NAMES[..5].to_vec(), ..Filter::default() };
    assert_eq!(store.list(&open, 1000).await.unwrap().runs, vec![]);
    if !database.is_postgres() {
        store.close().await;
        let mut connection = AnyConnection::connect(&database.url()).await.unwrap();
        let check = sqlx::query("PRAGMA integrity_check").fetch_one(&mut connection).await.unwrap();
        assert_eq!(check.get::<String, _>(0), "ok");
    }
}

async fn a_restarted_database_is_used_again() {
    let mut database = Database::server().await;
    let store = database.open().await;
    store.create(&order("r1"), Claimant::AnyWorker).await.unwrap();
    database.stop();
    let down = store.create(&order("r2"), Claimant::AnyWorker).await.unwrap_err();
    assert!(down.is_transient(), "{down:?}");
    database.start().await;
    // The old connections are dead, and the server may still refuse new ones while it starts.
    eventually("the store works again", async || store.create(&order("r2"), Claimant::AnyWorker).await.ok())
        .await;
    assert_eq!(store.list(&Filter::default(), 10).await.unwrap().runs.len(), 2);
}

#[tokio::test]
async fn a_writer_waits_for_its_turn() {
    let database = Database::sqlite();
    let store = database.open().await;
    let mut other = AnyConnection::connect(&database.url()).await.unwrap();
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let worker = Worker::this_process();
    let claimant = Claimant::Worker(&worker, Millis::seconds(60));
    let first = order("r1");
    let waiting = async { store.create(&first, claimant).await };
    let release_lock = async {
        tokio::task::yield_now().await;
        sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    };
    let (created, ()) = tokio::join!(waiting, release_lock);
    let runner_store::Created::New(run) = created.unwrap() else { panic!("it is new") };
    store.step(&run.fencing_token(), &Transition::Prepare.into()).await.unwrap();
}
