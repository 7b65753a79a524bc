//! Tests browser sessions: how long each acts for its principal.

use platform_core::id::PrincipalId;
use runner_model::principal::{ApiToken, BrowserSessionHash, BrowserSessionId};
use runner_store::{BROWSER_SESSION_IDLE_TIMEOUT, MAX_BROWSER_SESSION_AGE, Store};

use crate::{database::Database, principals};

crate::on_both!(
    a_session_acts_for_its_principal,
    a_session_ends_with_its_token,
    an_idle_or_old_session_ends,
    the_use_of_a_session_is_stored_once_a_minute,
    a_token_has_few_sessions,
    ended_sessions_are_removed,
    sessions_of_an_installation_are_its_own,
    a_backup_has_no_sessions,
);

fn token(number: u64) -> ApiToken {
    ApiToken::from_random(number, [u128::from(number); 2])
}

fn session(number: u128) -> BrowserSessionHash {
    BrowserSessionId::from_random([0, number]).hash()
}

fn ann() -> PrincipalId {
    PrincipalId::parse("ann").unwrap()
}

/// Opens the store with the principal `ann`, which has the first session.
async fn signed_in(database: &Database) -> Store {
    let store = database.open().await;
    store.add_principal(&principals::new("ann"), &token(1)).await.unwrap();
    store.add_browser_session(token(1).key_id(), &session(1)).await.unwrap();
    store
}

/// Returns the id of the principal that a session acts for.
async fn acts_for(store: &Store, number: u128) -> Option<String> {
    let principal = store.authenticate_browser(&session(number)).await.unwrap();
    let valid = store.is_browser_session_valid(&session(number)).await.unwrap();
    assert!(valid || principal.is_none(), "a session that has ended acts for no principal");
    principal.map(|principal| principal.id.to_string())
}

async fn a_session_acts_for_its_principal(database: Database) {
    let store = signed_in(&database).await;
    let by_token = store.authenticate(&token(1)).await.unwrap();
    let by_session = store.authenticate_browser(&session(1)).await.unwrap();
    assert_eq!(by_session.map(|principal| principal.key_id), by_token.map(|principal| principal.key_id));
    assert_eq!(acts_for(&store, 2).await, None);
    store.add_browser_session(token(1).key_id(), &session(2)).await.unwrap();
    store.end_browser_session(&session(1)).await.unwrap();
    store.end_browser_session(&session(1)).await.unwrap();
    assert_eq!(acts_for(&store, 1).await, None);
    assert_eq!(acts_for(&store, 2).await.as_deref(), Some("ann"), "control: the other one goes on");
}

async fn a_session_ends_with_its_token(database: Database) {
    let store = signed_in(&database).await;
    assert_eq!(acts_for(&store, 1).await.as_deref(), Some("ann"), "control");
    store.rotate_principal(&ann(), &token(2)).await.unwrap();
    assert_eq!(acts_for(&store, 1).await, None);
    store.add_browser_session(token(2).key_id(), &session(2)).await.unwrap();
    assert_eq!(acts_for(&store, 2).await.as_deref(), Some("ann"), "control: with the new token");
    store.revoke_principal(&ann()).await.unwrap();
    assert_eq!(acts_for(&store, 2).await, None);
}

async fn an_idle_or_old_session_ends(database: Database) {
    let store = signed_in(&database).await;
    for (column, limit) in [("used", BROWSER_SESSION_IDLE_TIMEOUT), ("created", MAX_BROWSER_SESSION_AGE)] {
        let age =
            |milliseconds: u128| format!("UPDATE browser_sessions SET {column} = {column} - {milliseconds}");
        let nearly = limit.as_millis() - 30_000;
        database.behind_its_back(&age(nearly)).await;
        assert!(store.is_browser_session_valid(&session(1)).await.unwrap(), "control: {column}");
        database.behind_its_back(&age(30_000)).await;
        assert_eq!(acts_for(&store, 1).await, None, "{column}");
        let renewed = format!("UPDATE browser_sessions SET {column} = {column} + {}", limit.as_millis());
        database.behind_its_back(&renewed).await;
        assert_eq!(acts_for(&store, 1).await.as_deref(), Some("ann"), "control: {column}");
    }
}

async fn the_use_of_a_session_is_stored_once_a_minute(database: Database) {
    let store = signed_in(&database).await;
    // An hour before the session would end, its use makes it last as long again.
    let idle = BROWSER_SESSION_IDLE_TIMEOUT.as_millis() - 3_600_000;
    let age = format!("UPDATE browser_sessions SET used = used - {idle}");
    for _ in 0..3 {
        database.behind_its_back(&age).await;
        assert_eq!(acts_for(&store, 1).await.as_deref(), Some("ann"));
    }
    // Within a minute no use is stored.
    database.behind_its_back("UPDATE browser_sessions SET used = used - 30000").await;
    acts_for(&store, 1).await.unwrap();
    database
        .behind_its_back(&format!("UPDATE browser_sessions SET used = used - {}", idle + 3_570_000))
        .await;
    assert_eq!(acts_for(&store, 1).await, None);
}

async fn a_token_has_few_sessions(database: Database) {
    let store = signed_in(&database).await;
    store.add_principal(&principals::new("bob"), &token(2)).await.unwrap();
    store.add_browser_session(token(2).key_id(), &session(100)).await.unwrap();
    database.behind_its_back("UPDATE browser_sessions SET created = created - 1000").await;
    for number in 2..=33 {
        store.add_browser_session(token(1).key_id(), &session(number)).await.unwrap();
    }
    assert_eq!(acts_for(&store, 1).await, None, "the oldest ended");
    for (number, principal) in [(2, "ann"), (33, "ann"), (100, "bob")] {
        assert_eq!(acts_for(&store, number).await.as_deref(), Some(principal), "{number}");
    }
}

async fn ended_sessions_are_removed(database: Database) {
    let store = signed_in(&database).await;
    let add = async |number: u64| {
        let name = format!("p{number}");
        store.add_principal(&principals::new(&name), &token(number)).await.unwrap();
        store.add_browser_session(token(number).key_id(), &session(number.into())).await.unwrap();
        PrincipalId::parse(&name).unwrap()
    };
    let [revoked, rotated] = [add(2).await, add(3).await];
    assert_eq!(store.remove_ended_browser_sessions().await.unwrap(), 0, "control: none has ended");
    store.revoke_principal(&revoked).await.unwrap();
    store.rotate_principal(&rotated, &token(4)).await.unwrap();
    assert_eq!(store.remove_ended_browser_sessions().await.unwrap(), 2);
    assert_eq!(acts_for(&store, 1).await.as_deref(), Some("ann"));
    let idle = BROWSER_SESSION_IDLE_TIMEOUT.as_millis();
    database.behind_its_back(&format!("UPDATE browser_sessions SET used = used - {idle}")).await;
    assert_eq!(store.remove_ended_browser_sessions().await.unwrap(), 1);
}

async fn sessions_of_an_installation_are_its_own(database: Database) {
    let here = signed_in(&database).await;
    let there = database.open_of("there").await;
    assert_eq!(acts_for(&there, 1).await, None);
    there.end_browser_session(&session(1)).await.unwrap();
    assert_eq!(there.remove_ended_browser_sessions().await.unwrap(), 0);
    assert_eq!(acts_for(&here, 1).await.as_deref(), Some("ann"));
}

async fn a_backup_has_no_sessions(database: Database) {
    let store = signed_in(&database).await;
    let file = database.path().join("backup.ndjson");
    store.backup(&file).await.unwrap();
    store.restore(&file, runner_store::Onto::Anything).await.unwrap();
    assert_eq!(acts_for(&store, 1).await, None);
    assert!(store.authenticate(&token(1)).await.unwrap().is_some(), "control: its principal is back");
}
