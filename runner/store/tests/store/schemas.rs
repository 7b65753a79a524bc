//! Tests stores of other releases.

use std::{iter, path::PathBuf};

use futures_util::future::join_all;
use platform_core::{
    event::{AgentEvent, Phase},
    priority::Priority,
};
use runner_store::{Error, Onto, SCHEMA};

use crate::{
    backups::populate,
    database::{Database, id, open},
};

crate::on_both!(
    every_released_schema_becomes_the_newest_one,
    a_store_of_a_later_program_is_refused,
    a_store_that_was_never_released_is_refused,
    migrations_before_the_first_do_not_count,
    two_programs_at_once_make_one_store,
);

/// The first schema of a store.
const FIRST: usize = 23;

fn golden(schema: usize) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/store/golden/schema-{schema}.ndjson"))
}

/// A new schema has no golden backup yet: this test writes it once, to be committed.
#[tokio::test]
async fn every_schema_has_a_golden_backup() {
    for schema in FIRST..SCHEMA {
        assert!(golden(schema).exists(), "{} is gone", golden(schema).display());
    }
    if !golden(SCHEMA).exists() {
        let store = Database::sqlite().open().await;
        populate(&store).await;
        store.backup(&golden(SCHEMA)).await.unwrap();
        panic!("{} is new: keep it", golden(SCHEMA).display());
    }
}

async fn every_released_schema_becomes_the_newest_one(database: Database) {
    let store = database.open().await;
    for schema in FIRST..=SCHEMA {
        store.restore(&golden(schema), Onto::Anything).await.unwrap();
        let states = ["ended", "live", "queued"].map(async |run| store.record(&id(run)).await.unwrap());
        let [ended, live, queued] = states;
        let (ended, live, queued) = tokio::join!(ended, live, queued);
        let history = store.history(&id("ended")).await.unwrap();
        assert_eq!(
            [ended.run.state.name(), live.run.state.name(), queued.run.state.name()],
            ["succeeded", "preparing", "queued"]
        );
        assert_eq!((queued.run.priority, queued.run.queued), (Priority::High, queued.run.created));
        assert_eq!((ended.answer.as_deref(), live.resources.len()), (Some("answer"), 1));
        // The events are the same now, whichever schema recorded them.
        let events: Vec<_> = history.events.iter().map(|event| event.event().unwrap()).collect();
        let phases: Vec<_> = events.iter().map_while(phase).collect();
        assert_eq!(phases, [Phase::Preparing, Phase::Starting, Phase::Running, Phase::Settling]);
        assert_eq!(events.last(), Some(&AgentEvent::Done), "{events:?}");
        assert_eq!(store.cursors("receipts").await.unwrap()[0].cursor.seq, 7);
        // A restored store is opened like any other.
        open(&database.address()).await.unwrap();
    }
}

fn phase(event: &AgentEvent) -> Option<Phase> {
    match event {
        AgentEvent::Status { phase } => Some(*phase),
        _ => None,
    }
}

async fn a_store_of_a_later_program_is_refused(database: Database) {
    database.open().await.close().await;
    database.behind_its_back("INSERT INTO migrations VALUES (999, 'later', 0)").await;
    let refused = open(&database.address()).await.unwrap_err();
    assert!(matches!(refused, Error::Newer { known: SCHEMA, .. }), "{refused:?}");
    assert!(refused.to_string().contains("use a newer one"), "{refused}");
}

async fn a_store_that_was_never_released_is_refused(database: Database) {
    database.open().await.close().await;
    database.behind_its_back("UPDATE migrations SET checksum = 'other' WHERE version = 23").await;
    let refused = open(&database.address()).await.unwrap_err();
    assert!(matches!(refused, Error::Altered { version: FIRST, .. }), "{refused:?}");
}

/// Stores that were made step by step hold the migrations to the first schema, too.
async fn migrations_before_the_first_do_not_count(database: Database) {
    database.open().await.close().await;
    database.behind_its_back("INSERT INTO migrations VALUES (1, 'any', 0)").await;
    open(&database.address()).await.unwrap().close().await;
    database.behind_its_back("DELETE FROM migrations WHERE version > 1").await;
    let refused = open(&database.address()).await.unwrap_err();
    assert!(matches!(refused, Error::Altered { version: FIRST, .. }), "the control: {refused:?}");
}

async fn two_programs_at_once_make_one_store(database: Database) {
    let (one, other) = tokio::join!(database.open(), database.open());
    populate(&one).await;
    assert_eq!(other.record(&id("ended")).await.unwrap().run.run_id, id("ended"));
}

/// SQLite does not wait for its lock when a file changes to a write-ahead log.
#[tokio::test]
async fn many_programs_open_a_new_store_at_once() {
    for _ in 0..40 {
        let database = Database::sqlite();
        let address = database.address();
        let opened = join_all(iter::repeat_with(|| open(&address)).take(8)).await;
        for store in opened {
            store.unwrap().close().await;
        }
    }
}
