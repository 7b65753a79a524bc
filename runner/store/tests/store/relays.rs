//! Tests the relays of runs: the owner of a branch, changes by one process at a time, and what is due.

use platform_core::{id::AccountId, limit::Millis};
use runner_model::lifecycle::Transition;
use runner_store::{AccountScope, Error, NewRelay, RelayProgress};

use crate::{
    database::{Database, cancelled, id},
    runs::ordered,
};

crate::on_both!(
    a_branch_belongs_to_the_first_account,
    a_change_of_an_older_version_is_refused,
    an_attempts_change_is_its_own,
    a_pending_relay_is_due_after_its_time,
    a_forgotten_run_keeps_its_branch_and_no_text,
);

pub(crate) fn progress(stage: &'static str, due_in: Option<Millis>) -> RelayProgress {
    RelayProgress { stage, document: format!("{{\"stage\":\"{stage}\"}}"), due_in }
}

pub(crate) fn relay(run: &str, account: &str) -> NewRelay {
    NewRelay {
        run_id: id(run),
        attempt: 0,
        account: AccountId::parse(account).unwrap(),
        url: "https://git.example/a".to_owned(),
        branch: "sandbox/fix".to_owned(),
        progress: progress("cloned", None),
    }
}

async fn a_branch_belongs_to_the_first_account(database: Database) {
    let store = database.open().await;
    let first = store.add_relay(&relay("r1", "acct-1")).await.unwrap();
    assert_eq!(store.add_relay(&relay("r1", "acct-1")).await.unwrap(), first, "once only");
    let refused = store.add_relay(&relay("r2", "acct-2")).await.unwrap_err();
    assert!(matches!(refused, Error::BranchTaken { .. }), "{refused:?}");
    assert_eq!(store.relay(&id("r2")).await.unwrap(), None);
    store.add_relay(&relay("r3", "acct-1")).await.unwrap();
    let other = NewRelay { url: "https://git.example/b".to_owned(), ..relay("r4", "acct-2") };
    store.add_relay(&other).await.unwrap();
}

async fn a_change_of_an_older_version_is_refused(database: Database) {
    let store = database.open().await;
    let cloned = store.add_relay(&relay("r1", "acct-1")).await.unwrap();
    let collected = store.change_relay(&cloned, &progress("collected", None)).await.unwrap();
    let refused = store.change_relay(&cloned, &progress("failed", None)).await.unwrap_err();
    assert!(matches!(refused, Error::RelayChanged { .. }), "{refused:?}");
    assert_eq!(store.relay(&id("r1")).await.unwrap(), Some(collected.clone()));
    // A try is repeated after its answer was lost, and changes nothing.
    let again = store.change_relay(&cloned, &progress("collected", None)).await.unwrap();
    assert_eq!(again, collected);
    assert_eq!(store.present().await.unwrap().relays, [("collected".to_owned(), 1)]);
}

async fn an_attempts_change_is_its_own(database: Database) {
    let store = database.open().await;
    let first = store.add_relay(&relay("r1", "acct-1")).await.unwrap();
    let second = store.add_relay(&NewRelay { attempt: 1, ..relay("r1", "acct-1") }).await.unwrap();
    let first = store.change_relay(&first, &progress("pushed", None)).await.unwrap();
    assert_eq!((first.attempt, first.stage.as_str()), (0, "pushed"));
    assert_eq!(store.relay_of(&id("r1"), 0).await.unwrap(), Some(first));
    assert_eq!(store.relay(&id("r1")).await.unwrap(), Some(second), "the last attempt is as it was");
}

async fn a_pending_relay_is_due_after_its_time(database: Database) {
    let store = database.open().await;
    let relay = store.add_relay(&relay("r1", "acct-1")).await.unwrap();
    let relay = store.change_relay(&relay, &progress("collected", Some(Millis::seconds(60)))).await.unwrap();
    assert_eq!(store.due_relays(9).await.unwrap(), []);
    let relay = store.change_relay(&relay, &progress("accepted", Some(Millis(0)))).await.unwrap();
    assert_eq!(store.due_relays(9).await.unwrap(), std::slice::from_ref(&relay));
    store.change_relay(&relay, &progress("published", None)).await.unwrap();
    assert_eq!(store.due_relays(9).await.unwrap(), []);
}

async fn a_forgotten_run_keeps_its_branch_and_no_text(database: Database) {
    let store = database.open().await;
    let token = ordered(&store, "r1").await;
    let stored = store.add_relay(&relay("r1", "acct-1")).await.unwrap();
    store.change_relay(&stored, &progress("collected", Some(Millis(0)))).await.unwrap();
    store.step(&token, &Transition::Withdraw(cancelled()).into()).await.unwrap();
    store.forget_run(&id("r1"), &AccountScope::All).await.unwrap();
    let relay_now = store.relay(&id("r1")).await.unwrap().unwrap();
    assert_eq!((relay_now.document.as_str(), relay_now.due), ("", None));
    assert!(store.add_relay(&relay("r2", "acct-2")).await.is_err(), "the branch is still its own");
}
