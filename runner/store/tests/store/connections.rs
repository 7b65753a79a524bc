//! Tests connections, with secrets that are sealed before they come here, and the right to refresh one.

use std::time::Duration;

use platform_core::{
    connection::{ConnectionId, ConnectionKind, ConnectionProvider, ConnectionScope, ConnectionState},
    id::AccountId,
};
use runner_store::{
    AccountScope, AtSamePlace, ConnectionPlace, Error, MAX_CONNECTIONS, NewConnection, Onto, RefreshClaim,
    RefreshEnd, RefreshLease, SealedText, Store, StoredConnection, UnixMillis,
};

use crate::database::Database;

crate::on_both!(
    a_connection_is_found_by_its_scope,
    a_place_has_one_connection,
    an_account_has_a_bound_of_connections,
    one_process_refreshes_at_a_time,
    a_changed_connection_is_not_refreshed_again,
    a_lost_right_stores_nothing,
    a_refused_grant_is_stored,
    another_key_seals_what_has_not_changed,
    a_backup_has_connections,
);

fn place(account: &str, scope: &str) -> ConnectionPlace {
    ConnectionPlace {
        account: AccountId::parse(account).unwrap(),
        provider: ConnectionProvider::parse("github").unwrap(),
        scope: ConnectionScope::parse(scope).unwrap(),
    }
}

fn sealed(text: &str) -> SealedText {
    SealedText { key_id: "k1".to_owned(), text: text.to_owned() }
}

pub(crate) fn new(number: u64, account: &str, scope: &str) -> NewConnection {
    NewConnection {
        id: ConnectionId::from_random(number),
        place: place(account, scope),
        kind: ConnectionKind::GitHubApp { app_id: 1, installation_id: 2 },
        sealed: sealed("c2VhbGVk"),
        expires: Some(UnixMillis(7)),
    }
}

async fn add(store: &Store, number: u64, account: &str, scope: &str) -> StoredConnection {
    store.add_connection(&new(number, account, scope), AtSamePlace::Keep).await.unwrap()
}

fn lease(owner: &str) -> RefreshLease<'_> {
    RefreshLease { owner, duration: Duration::from_secs(60) }
}

fn refreshed(text: &str) -> RefreshEnd {
    RefreshEnd::Refreshed { sealed: sealed(text), expires: Some(UnixMillis(9)) }
}

async fn granted(store: &Store, read: &StoredConnection, owner: &str) -> StoredConnection {
    match store.claim_refresh(read, &lease(owner)).await.unwrap() {
        RefreshClaim::Granted(granted) => granted,
        other => panic!("{other:?}"),
    }
}

async fn a_connection_is_found_by_its_scope(database: Database) {
    let store = database.open().await;
    let all = add(&store, 1, "a", "*").await;
    let one = add(&store, 2, "a", "acme/app").await;
    let other = add(&store, 3, "b", "*").await;
    assert_eq!((all.version, all.state, all.expires), (1, ConnectionState::Active, Some(UnixMillis(7))));
    for (account, scope, expected) in [
        ("a", "acme/app", Some(&one.id)),
        ("a", "acme/web", Some(&all.id)),
        ("b", "acme/app", Some(&other.id)),
        ("c", "acme/app", None),
    ] {
        let found = store.connection_for(&place(account, scope)).await.unwrap();
        assert_eq!(found.as_ref().map(|found| &found.id), expected, "{account} {scope}");
    }
    let own = AccountScope::Only(AccountId::parse("a").unwrap());
    assert_eq!(store.connections(&own).await.unwrap().len(), 2);
    assert_eq!(store.connections(&AccountScope::All).await.unwrap().len(), 3);
    let foreign = store.connection_within(&other.id, &own).await.unwrap_err();
    assert!(matches!(foreign, Error::NoConnection { .. }), "{foreign:?}");
    assert_eq!(store.connection_within(&one.id, &own).await.unwrap().id, one.id);
    store.record_connection_use(&one).await;
    let used = store.connection_within(&one.id, &own).await.unwrap().used;
    assert!(used.is_some());
}

async fn a_place_has_one_connection(database: Database) {
    let store = database.open().await;
    add(&store, 1, "a", "*").await;
    let taken = store.add_connection(&new(2, "a", "*"), AtSamePlace::Keep).await.unwrap_err();
    assert!(matches!(taken, Error::ConnectionExists { .. }), "{taken:?}");
    let replaced = store.add_connection(&new(2, "a", "*"), AtSamePlace::Replace).await.unwrap();
    assert_eq!(replaced.id, ConnectionId::from_random(2));
    assert_eq!(store.connections(&AccountScope::All).await.unwrap().len(), 1);
    assert!(store.remove_connection(&replaced.id).await.unwrap());
    assert!(!store.remove_connection(&replaced.id).await.unwrap());
}

async fn an_account_has_a_bound_of_connections(database: Database) {
    let store = database.open().await;
    for number in 1..=MAX_CONNECTIONS {
        add(&store, number, "a", &format!("acme/{number}")).await;
    }
    let more = new(1000, "a", "acme/more");
    let refused = store.add_connection(&more, AtSamePlace::Keep).await.unwrap_err();
    assert!(matches!(refused, Error::ConnectionLimit(_)) && refused.to_string().contains("200"), "{refused}");
    assert_eq!(store.connections(&AccountScope::All).await.unwrap().len() as u64, MAX_CONNECTIONS);
    add(&store, 1001, "b", "acme/more").await;
    let replacing = new(1002, "a", "acme/1");
    store.add_connection(&replacing, AtSamePlace::Replace).await.unwrap();
    assert!(store.remove_connection(&ConnectionId::from_random(2)).await.unwrap());
    store.add_connection(&more, AtSamePlace::Keep).await.unwrap();
}

async fn one_process_refreshes_at_a_time(database: Database) {
    let store = database.open().await;
    let read = add(&store, 1, "a", "*").await;
    let held = granted(&store, &read, "one").await;
    assert_eq!(store.claim_refresh(&read, &lease("two")).await.unwrap(), RefreshClaim::Busy);
    let stored = store.end_refresh(&held, "one", &refreshed("bmV3")).await.unwrap().unwrap();
    assert_eq!((stored.version, &stored.sealed, stored.expires), (2, &sealed("bmV3"), Some(UnixMillis(9))));
    assert!(stored.refreshed.is_some() && stored.refresh_until.is_none());
    granted(&store, &stored, "two").await;
    // The right ends by itself.
    database.behind_its_back("UPDATE connections SET refresh_until = 1").await;
    granted(&store, &stored, "three").await;
}

async fn a_changed_connection_is_not_refreshed_again(database: Database) {
    let store = database.open().await;
    let read = add(&store, 1, "a", "*").await;
    let held = granted(&store, &read, "one").await;
    store.end_refresh(&held, "one", &refreshed("bmV3")).await.unwrap();
    match store.claim_refresh(&read, &lease("two")).await.unwrap() {
        RefreshClaim::Changed(changed) => assert_eq!(changed.sealed, sealed("bmV3")),
        other => panic!("{other:?}"),
    }
    store.remove_connection(&read.id).await.unwrap();
    assert_eq!(store.claim_refresh(&read, &lease("two")).await.unwrap(), RefreshClaim::Gone);
}

async fn a_lost_right_stores_nothing(database: Database) {
    let store = database.open().await;
    let read = add(&store, 1, "a", "*").await;
    let held = granted(&store, &read, "one").await;
    database.behind_its_back("UPDATE connections SET refresh_until = 1").await;
    let later = granted(&store, &read, "two").await;
    assert_eq!(store.end_refresh(&held, "one", &refreshed("b25l")).await.unwrap(), None);
    let stored = store.end_refresh(&later, "two", &refreshed("dHdv")).await.unwrap().unwrap();
    assert_eq!(stored.sealed, sealed("dHdv"));
}

async fn a_refused_grant_is_stored(database: Database) {
    let store = database.open().await;
    let read = add(&store, 1, "a", "*").await;
    let held = granted(&store, &read, "one").await;
    let failed = store.end_refresh(&held, "one", &RefreshEnd::Failed).await.unwrap().unwrap();
    assert_eq!((failed.state, failed.version), (ConnectionState::Active, 1));
    let held = granted(&store, &read, "one").await;
    let ended = store.end_refresh(&held, "one", &RefreshEnd::NeedsAuthorisation).await.unwrap().unwrap();
    assert_eq!((ended.state, ended.sealed), (ConnectionState::NeedsAuthorisation, read.sealed));
}

async fn another_key_seals_what_has_not_changed(database: Database) {
    let store = database.open().await;
    let read = add(&store, 1, "a", "*").await;
    let again = SealedText { key_id: "k2".to_owned(), text: "YWdhaW4".to_owned() };
    let held = granted(&store, &read, "one").await;
    assert!(!store.reseal_connection(&read, &again).await.unwrap(), "it is being refreshed");
    store.end_refresh(&held, "one", &RefreshEnd::Failed).await.unwrap();
    assert!(store.reseal_connection(&read, &again).await.unwrap());
    assert!(!store.reseal_connection(&read, &again).await.unwrap(), "it has changed");
    let stored = store.connection_within(&read.id, &AccountScope::All).await.unwrap();
    assert_eq!((stored.sealed, stored.version), (again, 2));
}

async fn a_backup_has_connections(database: Database) {
    let store = database.open().await;
    add(&store, 1, "a", "*").await;
    let before = store.connections(&AccountScope::All).await.unwrap();
    let path = database.path().join("backup.ndjson");
    store.backup(&path).await.unwrap();
    store.restore(&path, Onto::Anything).await.unwrap();
    let after = store.connections(&AccountScope::All).await.unwrap();
    assert_eq!(after.len(), 1);
    assert_eq!(
        (&after[0].id, &after[0].sealed, &after[0].kind),
        (&before[0].id, &before[0].sealed, &before[0].kind)
    );
}
