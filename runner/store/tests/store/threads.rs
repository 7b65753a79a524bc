//! Tests threads: their turns, the order of these, and the removal of texts.

use platform_core::{
    event::{AgentEvent, RunErrorCode},
    id::{AccountId, ExternalId, RunId},
    limit::Millis,
};
use runner_model::lifecycle::{Failure, Transition};
use runner_store::{AccountScope, Claimant, Created, Error, NewRun, NewTurn, Onto, Store, TurnPlace, Worker};

use crate::database::{Database, id, order, transitions};

const LONG: Millis = Millis::seconds(600);

crate::on_both!(
    turns_follow_each_other,
    a_thread_takes_one_turn_at_a_time,
    a_question_may_be_asked_anew,
    turns_may_wait_behind_each_other,
    threads_are_listed_in_pages,
    threads_of_an_account_are_its_own,
    a_removed_thread_leaves_no_text,
    a_forgotten_turn_leaves_the_others,
    a_forgotten_failure_keeps_its_code,
    the_last_attempt_has_the_answer,
    texts_of_old_runs_are_removed;
    restored: a_backup_has_threads
);

fn key(text: &str) -> ExternalId {
    ExternalId::parse(text).unwrap()
}

fn acct() -> AccountId {
    order("any").account
}

/// Returns an order of `run`, as a turn of thread `chat`.
fn turn(run: &str, place: TurnPlace) -> NewRun {
    let turn = NewTurn {
        thread: key("chat"),
        question: format!("question of {run}"),
        question_id: Some(key(&format!("m-{run}"))),
        place,
    };
    NewRun {
        turn: Some(turn),
        wanted: format!(r#"{{"messages":["secret of {run}"],"model":"m"}}"#),
        ..order(run)
    }
}

fn behind(parent: Option<&str>, last: Option<&str>) -> TurnPlace {
    TurnPlace::Behind { parent: parent.map(id), last: last.map(id) }
}

/// Orders a run and executes it to its end.
async fn answered(store: &Store, new: &NewRun) -> RunId {
    let worker = Worker::this_process();
    let Created::New(run) = store.create(new, Claimant::Worker(&worker, LONG)).await.unwrap() else {
        panic!("ordered before")
    };
    for transition in transitions() {
        store.step(&run.fencing_token(), &transition.into()).await.unwrap();
    }
    run.run_id
}

/// Returns the runs from the first turn of `chat` to `upto`.
async fn path(store: &Store, upto: &str) -> Vec<String> {
    let turns = store.turns(&acct(), &key("chat"), &id(upto), 100).await.unwrap();
    turns.iter().map(|turn| turn.run.run_id.to_string()).collect()
}

async fn turns_follow_each_other(database: Database) {
    let store = database.open().await;
    assert_eq!(store.last_turn(&acct(), &key("chat")).await.unwrap(), None);
    answered(&store, &turn("r1", behind(None, None))).await;
    answered(&store, &turn("r2", behind(Some("r1"), Some("r1")))).await;
    assert_eq!(path(&store, "r2").await, ["r1", "r2"]);
    let last = store.last_turn(&acct(), &key("chat")).await.unwrap().unwrap();
    assert_eq!((last.run.run_id, last.parent), (id("r2"), Some(id("r1"))));
    assert_eq!((last.question.as_str(), last.answer.as_deref()), ("question of r2", Some("answer")));
    for named in ["r1", "m-r1"] {
        let found = store.find_turn(&acct(), &key("chat"), named).await.unwrap().unwrap();
        assert_eq!(found.run.run_id, id("r1"));
    }
    // The same order again is the same turn.
    let again = turn("r2", behind(Some("r1"), Some("r1")));
    let again = store.create(&again, Claimant::AnyWorker).await.unwrap();
    assert!(matches!(again, Created::Existing(_)), "{again:?}");
    assert_eq!(path(&store, "r2").await.len(), 2);
}

async fn a_thread_takes_one_turn_at_a_time(database: Database) {
    let store = database.open().await;
    store.create(&turn("r1", behind(None, None)), Claimant::AnyWorker).await.unwrap();
    let late = [turn("r2", behind(Some("r1"), Some("r1"))), turn("r3", behind(None, None))];
    for new in &late {
        let refused = store.create(new, Claimant::AnyWorker).await.unwrap_err();
        assert!(matches!(&refused, Error::ThreadBusy { by } if by == "r1"), "{refused:?}");
        let unknown = store.run(&new.run_id).await.unwrap_err();
        assert!(matches!(unknown, Error::Unknown { .. }), "nothing is stored by half: {unknown:?}");
    }
    // Of two orders at once, one is first.
    let other = database.open().await;
    let place = || behind(None, None);
    let chat = |run: &str| {
        let mut new = turn(run, place());
        new.turn.as_mut().unwrap().thread = key("other");
        new
    };
    let (a, b) = (chat("a"), chat("b"));
    let (a, b) = tokio::join!(store.create(&a, Claimant::AnyWorker), other.create(&b, Claimant::AnyWorker));
    assert_eq!([&a, &b].iter().filter(|created| created.is_ok()).count(), 1, "{a:?} {b:?}");
}

async fn a_question_may_be_asked_anew(database: Database) {
    let store = database.open().await;
    answered(&store, &turn("r1", behind(None, None))).await;
    answered(&store, &turn("r2", behind(Some("r1"), Some("r1")))).await;
    answered(&store, &turn("r3", behind(Some("r1"), Some("r2")))).await;
    answered(&store, &turn("r4", behind(Some("r3"), Some("r3")))).await;
    assert_eq!(path(&store, "r4").await, ["r1", "r3", "r4"]);
    assert_eq!(path(&store, "r2").await, ["r1", "r2"], "the first answer stays");
    answered(&store, &turn("r5", behind(None, Some("r4")))).await;
    assert_eq!(path(&store, "r5").await, ["r5"]);
}

async fn turns_may_wait_behind_each_other(database: Database) {
    let store = database.open().await;
    for run in ["r1", "r2", "r3"] {
        store.create(&turn(run, TurnPlace::Last), Claimant::AnyWorker).await.unwrap();
    }
    assert_eq!(path(&store, "r3").await, ["r1", "r2", "r3"]);
}

async fn threads_are_listed_in_pages(database: Database) {
    let store = database.open().await;
    for thread in ["a", "b", "c"] {
        let mut new = turn(thread, TurnPlace::Last);
        new.turn.as_mut().unwrap().thread = key(thread);
        store.create(&new, Claimant::AnyWorker).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let mut again = turn("a2", TurnPlace::Last);
    again.turn.as_mut().unwrap().thread = key("a");
    store.create(&again, Claimant::AnyWorker).await.unwrap();
    let page = store.threads(&acct(), None, 2).await.unwrap();
    let shown: Vec<_> =
        page.iter().map(|thread| (thread.key.as_str(), thread.turns, thread.title.as_str())).collect();
    assert_eq!(shown, [("a", 2, "question of a"), ("c", 1, "question of c")]);
    let before = (page[1].changed, page[1].key.clone());
    let rest = store.threads(&acct(), Some(&before), 2).await.unwrap();
    assert_eq!(rest.iter().map(|thread| thread.key.as_str()).collect::<Vec<_>>(), ["b"]);
}

async fn threads_of_an_account_are_its_own(database: Database) {
    let (store, there) = (database.open().await, database.open_of("there").await);
    answered(&store, &turn("r1", behind(None, None))).await;
    let other = AccountId::parse("acct-other").unwrap();
    assert!(store.threads(&other, None, 9).await.unwrap().is_empty());
    assert_eq!(store.last_turn(&other, &key("chat")).await.unwrap(), None);
    assert_eq!(store.find_turn(&other, &key("chat"), "r1").await.unwrap(), None);
    assert!(store.turns(&other, &key("chat"), &id("r1"), 100).await.unwrap().is_empty());
    let refused = store.remove_thread(&other, &key("chat")).await.unwrap_err();
    assert!(matches!(refused, Error::NoThread { .. }), "{refused:?}");
    assert!(there.turns(&acct(), &key("chat"), &id("r1"), 100).await.unwrap().is_empty());
    let own = NewRun { account: other, ..turn("r2", behind(None, None)) };
    answered(&store, &own).await;
    assert_eq!(path(&store, "r1").await, ["r1"], "the same key is another thread");
}

async fn a_removed_thread_leaves_no_text(database: Database) {
    let store = database.open().await;
    answered(&store, &turn("r1", behind(None, None))).await;
    let next = turn("r2", behind(Some("r1"), Some("r1")));
    let Created::New(run) =
        store.create(&next, Claimant::Worker(&Worker::this_process(), LONG)).await.unwrap()
    else {
        panic!("ordered before")
    };
    let refused = store.remove_thread(&acct(), &key("chat")).await.unwrap_err();
    assert!(matches!(&refused, Error::StillActive { run_id } if run_id == "r2"), "{refused:?}");
    assert_eq!(
        store.record(&id("r1")).await.unwrap().answer.as_deref(),
        Some("answer"),
        "nothing is removed"
    );
    for transition in transitions() {
        store.step(&run.fencing_token(), &transition.into()).await.unwrap();
    }
    store.remove_thread(&acct(), &key("chat")).await.unwrap();
    for run in ["r1", "r2"] {
        let record = store.record(&id(run)).await.unwrap();
        assert_eq!((record.answer, record.wanted.contains("secret")), (None, false));
        assert!(record.wanted.contains(r#""model":"m""#), "the rest of the order stays");
        assert!(record.run.usage.is_some(), "receipts need it");
        let events = store.events_after(&id(run), 0).await.unwrap().1;
        assert_eq!(
            events.iter().map(|event| event.kind.as_str()).collect::<Vec<_>>(),
            ["usage_report", "done"]
        );
    }
    assert!(store.threads(&acct(), None, 9).await.unwrap().is_empty());
    let gone = store.remove_thread(&acct(), &key("chat")).await.unwrap_err();
    assert!(matches!(gone, Error::NoThread { .. }), "{gone:?}");
}

async fn a_forgotten_turn_leaves_the_others(database: Database) {
    let store = database.open().await;
    answered(&store, &turn("r1", behind(None, None))).await;
    answered(&store, &turn("r2", behind(Some("r1"), Some("r1")))).await;
    answered(&store, &turn("r3", behind(Some("r2"), Some("r2")))).await;
    store.forget_run(&id("r2"), &AccountScope::All).await.unwrap();
    assert_eq!(path(&store, "r3").await, ["r1", "r3"]);
    let [forgotten, kept] = ["r2", "r3"].map(async |run| store.record(&id(run)).await.unwrap().run);
    let facts = store.list_facts(&[forgotten.await, kept.await]).await.unwrap();
    assert_eq!((facts[&id("r2")].question.is_some(), facts[&id("r3")].question.is_some()), (false, true));
    store.forget_run(&id("r2"), &AccountScope::All).await.unwrap();
    store.forget_run(&id("r1"), &AccountScope::All).await.unwrap();
    assert_eq!(path(&store, "r3").await, ["r3"]);
    answered(&store, &turn("r4", behind(Some("r3"), Some("r3")))).await;
    store.forget_run(&id("r4"), &AccountScope::All).await.unwrap();
    let last = store.last_turn(&acct(), &key("chat")).await.unwrap().unwrap();
    assert_eq!((last.run.run_id, last.parent), (id("r3"), None));
}

/// The message of a failure may be the agent's text.
async fn a_forgotten_failure_keeps_its_code(database: Database) {
    let store = database.open().await;
    let new = turn("r1", behind(None, None));
    let Created::New(run) =
        store.create(&new, Claimant::Worker(&Worker::this_process(), LONG)).await.unwrap()
    else {
        panic!("ordered before")
    };
    let failure = Failure::new(RunErrorCode::ContainerFailed, "it said: secret");
    let token = run.fencing_token();
    store.step(&token, &Transition::Withdraw(failure).into()).await.unwrap();
    store.forget_run(&id("r1"), &AccountScope::All).await.unwrap();
    let history = store.history(&id("r1")).await.unwrap();
    let shown = format!("{history:?}");
    assert!(!shown.contains("secret") && shown.contains("container_failed"), "{shown}");
    assert!(matches!(history.events.last().unwrap().event().unwrap(), AgentEvent::Error { .. }), "{shown}");
    let refused = store.restart(&token).await.unwrap_err();
    assert!(matches!(refused, Error::Forgotten { .. }), "no agent runs without a question: {refused:?}");
}

async fn the_last_attempt_has_the_answer(database: Database) {
    let store = database.open().await;
    answered(&store, &turn("r1", behind(None, None))).await;
    let first = store.run(&id("r1")).await.unwrap();
    assert_eq!(store.attempt_begin(&first).await.unwrap(), 0);
    let again = store.restart(&first.fencing_token()).await.unwrap();
    let begin = store.attempt_begin(&again).await.unwrap();
    assert_eq!(begin, store.last_event(&id("r1")).await.unwrap());
    assert!(store.answer_events(&id("r1"), begin).await.unwrap().is_empty());
    assert!(!store.answer_events(&id("r1"), 0).await.unwrap().is_empty(), "control");
}

async fn texts_of_old_runs_are_removed(database: Database) {
    let store = database.open().await;
    answered(&store, &turn("r1", behind(None, None))).await;
    answered(&store, &order("r2")).await;
    store.create(&order("r3"), Claimant::AnyWorker).await.unwrap();
    assert_eq!(store.forget_old(Millis::seconds(60)).await.unwrap(), 0, "none is old");
    database.behind_its_back("UPDATE runs SET ended = ended - 61000 WHERE run = 'r1'").await;
    assert_eq!(store.forget_old(Millis::seconds(60)).await.unwrap(), 1);
    assert_eq!(store.forget_old(Millis::seconds(60)).await.unwrap(), 0, "each is removed once");
    assert_eq!(store.record(&id("r1")).await.unwrap().answer, None);
    assert_eq!(store.record(&id("r2")).await.unwrap().answer.as_deref(), Some("answer"));
    let refused = store.forget_run(&id("r3"), &AccountScope::All).await.unwrap_err();
    assert!(matches!(refused, Error::StillActive { .. }), "{refused:?}");
    let other = AccountScope::Only(AccountId::parse("acct-other").unwrap());
    let refused = store.forget_run(&id("r2"), &other).await.unwrap_err();
    assert!(matches!(refused, Error::Unknown { .. }), "{refused:?}");
    store.forget_run(&id("r2"), &AccountScope::All).await.unwrap();
    assert_eq!(store.record(&id("r2")).await.unwrap().answer, None);
}

async fn a_backup_has_threads(database: Database) {
    let store = database.open().await;
    answered(&store, &turn("r1", behind(None, None))).await;
    let file = database.path().join("backup.ndjson");
    store.backup(&file).await.unwrap();
    for elsewhere in [Database::sqlite(), Database::postgres().await] {
        let other = elsewhere.open().await;
        other.restore(&file, Onto::Empty).await.unwrap();
        assert_eq!(path(&other, "r1").await, ["r1"]);
    }
}
