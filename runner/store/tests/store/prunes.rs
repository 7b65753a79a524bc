//! Tests the removal of events of ended runs.

use platform_core::{
    event::{AgentEvent, OutputStream},
    id::AccountId,
    limit::{Millis, events::PRUNE_EVENTS},
};
use runner_model::lifecycle::{Completion, Transition};
use runner_store::{
    Batch, Claimant, Created, EventCursor, FencingToken, Keep, NewRun, Pruned, RunRecord, Step, Store, Worker,
};

use crate::database::{Database, cancelled, eventually, id, order, transitions};

const LONG: Millis = Millis::seconds(600);
/// Bounds within which no run of these tests is pruned.
const KEEP_ALL: Keep = Keep { age: LONG, runs: u32::MAX };

crate::on_both!(
    a_pruned_run_keeps_its_last_events,
    only_the_newest_runs_keep_all_events,
    each_account_keeps_its_own_runs,
    an_open_run_keeps_all_events,
    a_run_that_was_started_anew_is_pruned_again,
    many_events_are_removed_in_short_transactions,
    two_pruners_remove_events_once,
);

async fn ordered(store: &Store, run: &str) -> FencingToken {
    ordered_with(store, &order(run)).await
}

async fn ordered_with(store: &Store, order: &NewRun) -> FencingToken {
    match store.create(order, Claimant::Worker(&Worker::this_process(), LONG)).await.unwrap() {
        Created::New(run) => run.fencing_token(),
        Created::Existing(run) => panic!("{run:?}"),
    }
}

async fn record_lines(store: &Store, token: &FencingToken, (number, lines): (u64, usize)) {
    let log = AgentEvent::Log { stream: OutputStream::Stdout, text: "line\n".to_owned() };
    let batch = Batch { number, events: vec![log; lines], cursor: EventCursor::default() };
    store.record_events(token, &batch).await.unwrap();
}

/// Creates a run that printed `lines` lines and succeeded.
async fn ended(store: &Store, run: &str, lines: usize) -> FencingToken {
    ended_with(store, &order(run), lines).await
}

async fn ended_with(store: &Store, order: &NewRun, lines: usize) -> FencingToken {
    let token = ordered_with(store, order).await;
    for transition in transitions() {
        if matches!(transition, Transition::Settle(_)) {
            record_lines(store, &token, (1, lines)).await;
        }
        store.step(&token, &transition.into()).await.unwrap();
    }
    token
}

/// Returns the numbers and kinds of the stored events.
async fn stored_events(store: &Store, run: &str) -> Vec<(u64, String)> {
    let (_, events) = store.events_after(&id(run), 0).await.unwrap();
    events.into_iter().map(|event| (event.seq, event.kind)).collect()
}

/// Waits until the database's clock is past the run's end.
async fn wait_past_end(store: &Store, run: &str) {
    let has_passed = async || {
        let RunRecord { run, now, .. } = store.record(&id(run)).await.unwrap();
        (run.ended.unwrap() < now).then_some(())
    };
    eventually("a millisecond has passed", has_passed).await;
}

async fn a_pruned_run_keeps_its_last_events(database: Database) {
    let store = database.open().await;
    ended(&store, "r1", 5).await;
    let before = store.record(&id("r1")).await.unwrap();
    assert_eq!(store.prune(KEEP_ALL).await.unwrap(), Pruned::default(), "it ended just now");
    assert_eq!((stored_events(&store, "r1").await.len(), before.pruned_events), (12, 0));
    wait_past_end(&store, "r1").await;
    let pruned = store.prune(Keep { age: Millis(0), ..KEEP_ALL }).await.unwrap();
    assert_eq!(pruned, Pruned { runs: 1, events: 9 });
    let last = [(10, "assistant_final"), (11, "usage_report"), (12, "done")];
    assert_eq!(stored_events(&store, "r1").await, last.map(|(seq, kind)| (seq, kind.to_owned())));
    let after = store.record(&id("r1")).await.unwrap();
    assert_eq!((after.pruned_events, &after.run, &after.answer), (9, &before.run, &before.answer));
    assert_eq!(store.prune(Keep { age: Millis(0), ..KEEP_ALL }).await.unwrap(), Pruned::default());

    // A run that never began has few events: they stay.
    let token = ordered(&store, "r2").await;
    store.step(&token, &Transition::Withdraw(cancelled()).into()).await.unwrap();
    wait_past_end(&store, "r2").await;
    assert_eq!(
        store.prune(Keep { age: Millis(0), ..KEEP_ALL }).await.unwrap(),
        Pruned { runs: 1, events: 0 }
    );
    assert_eq!(stored_events(&store, "r2").await, [(1, "error".to_owned())]);
}

async fn only_the_newest_runs_keep_all_events(database: Database) {
    let store = database.open().await;
    for run in ["r1", "r2", "r3", "r4", "r5"] {
        ended(&store, run, 1).await;
        wait_past_end(&store, run).await;
    }
    let keep = Keep { runs: 2, ..KEEP_ALL };
    assert_eq!(store.prune(keep).await.unwrap(), Pruned { runs: 3, events: 15 });
    for (run, is_whole) in [("r1", false), ("r2", false), ("r3", false), ("r4", true), ("r5", true)] {
        assert_eq!(stored_events(&store, run).await[0].0 == 1, is_whole, "{run}");
    }
    assert_eq!(store.prune(keep).await.unwrap(), Pruned::default());
}

async fn each_account_keeps_its_own_runs(database: Database) {
    let store = database.open().await;
    ended(&store, "r1", 1).await;
    wait_past_end(&store, "r1").await;
    let other = |run: &str| NewRun { account: AccountId::parse("acct-2").unwrap(), ..order(run) };
    for n in 0..5 {
        // One run of each account that is ordered and cancelled.
        for order in [order(&format!("mine{n}")), other(&format!("other{n}"))] {
            let token = ordered_with(&store, &order).await;
            store.step(&token, &Transition::Withdraw(cancelled()).into()).await.unwrap();
        }
        ended_with(&store, &other(&format!("long{n}")), 1).await;
        wait_past_end(&store, &format!("long{n}")).await;
    }
    let keep = Keep { runs: 2, ..KEEP_ALL };
    // Ten had nothing to remove.
    assert_eq!(store.prune(keep).await.unwrap(), Pruned { runs: 13, events: 15 });
    let whole = ["r1", "mine0", "mine4", "other0", "other4", "long3", "long4"];
    for (run, is_whole) in
        whole.map(|run| (run, true)).into_iter().chain([("long0", false), ("long2", false)])
    {
        assert_eq!(stored_events(&store, run).await[0].0 == 1, is_whole, "{run}");
    }
    assert_eq!(store.record(&id("mine0")).await.unwrap().pruned_events, 0);
    assert_eq!(store.prune(keep).await.unwrap(), Pruned::default());
    // Control: an account with too many runs loses its own events.
    ended(&store, "r2", 1).await;
    ended(&store, "r3", 1).await;
    assert_eq!(store.prune(keep).await.unwrap(), Pruned { runs: 1, events: 5 });
    assert_eq!(stored_events(&store, "r1").await[0].0, 6);
}

async fn an_open_run_keeps_all_events(database: Database) {
    let store = database.open().await;
    let token = ordered(&store, "r1").await;
    for transition in transitions().into_iter().take(3) {
        store.step(&token, &transition.into()).await.unwrap();
    }
    record_lines(&store, &token, (1, 10)).await;
    let settle = Step::from(Transition::Settle(Completion::without_agent(cancelled())));
    store.step(&token, &settle).await.unwrap();
    let none = Keep { age: Millis(0), runs: 0 };
    assert_eq!(store.prune(none).await.unwrap(), Pruned::default(), "it settles");
    store.step(&token, &Transition::Finish(None).into()).await.unwrap();
    // Control: only the open run prevented its pruning.
    assert_eq!(store.prune(none).await.unwrap(), Pruned { runs: 1, events: 12 });
}

async fn a_run_that_was_started_anew_is_pruned_again(database: Database) {
    let store = database.open().await;
    let token = ended(&store, "r1", 5).await;
    let none = Keep { age: LONG, runs: 0 };
    assert_eq!(store.prune(none).await.unwrap().runs, 1);
    store.restart(&token).await.unwrap();
    let again = store.claim(&Worker::this_process(), LONG).await.unwrap().unwrap().fencing_token();
    assert_eq!(store.prune(none).await.unwrap(), Pruned::default());
    for transition in transitions() {
        store.step(&again, &transition.into()).await.unwrap();
    }
    assert_eq!(store.prune(none).await.unwrap(), Pruned { runs: 1, events: 8 });
    assert_eq!(stored_events(&store, "r1").await[0], (18, "assistant_final".to_owned()));
}

async fn many_events_are_removed_in_short_transactions(database: Database) {
    let store = database.open().await;
    let most = usize::try_from(PRUNE_EVENTS).unwrap();
    for run in ["r1", "r2", "r3"] {
        ended(&store, run, most / 2).await;
    }
    let none = Keep { age: LONG, runs: 0 };
    let first = store.prune(none).await.unwrap();
    assert_eq!(first.runs, 2, "of {first:?} nothing more is taken once it is enough");
    assert_eq!(store.prune(none).await.unwrap().runs, 1);
    assert_eq!(store.prune(none).await.unwrap(), Pruned::default());
}

async fn two_pruners_remove_events_once(database: Database) {
    let (one, other) = (database.open().await, database.open().await);
    for n in 0..20 {
        ended(&one, &format!("r{n}"), 3).await;
    }
    let none = Keep { age: LONG, runs: 0 };
    let (first, second) = tokio::join!(one.prune(none), other.prune(none));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!((first.runs + second.runs, first.events + second.events), (20, 20 * 7));
}
