//! Tests links with which a browser signs in once.

use platform_core::id::PrincipalId;
use runner_model::principal::{ApiToken, BrowserSessionHash, BrowserSessionId, SignInCode, SignInCodeHash};
use runner_store::{MAX_SIGN_IN_LINK_AGE, Store};

use crate::{database::Database, principals};

crate::on_both!(
    a_link_begins_one_session,
    an_old_link_signs_in_no_longer,
    a_link_ends_with_its_token,
    a_token_has_few_links,
    a_lost_answer_leaves_the_session,
    links_of_an_installation_are_its_own,
);

fn token(number: u64) -> ApiToken {
    ApiToken::from_random(number, [u128::from(number); 2])
}

fn code(number: u128) -> SignInCodeHash {
    SignInCode::from_random([1, number]).hash()
}

fn session(number: u128) -> BrowserSessionHash {
    BrowserSessionId::from_random([2, number]).hash()
}

/// Opens the store with the principal `ann`, which has the first link.
async fn linked(database: &Database) -> Store {
    let store = database.open().await;
    store.add_principal(&principals::new("ann"), &token(1)).await.unwrap();
    store.add_sign_in_link(token(1).key_id(), &code(1)).await.unwrap();
    store
}

/// Signs in with a link; returns the id of the principal.
async fn redeem(store: &Store, code_number: u128, session_number: u128) -> Option<String> {
    let principal = store.redeem_sign_in_link(&code(code_number), &session(session_number)).await.unwrap();
    let of_session = store.authenticate_browser(&session(session_number)).await.unwrap();
    let principal = principal.map(|principal| principal.id.to_string());
    assert_eq!(of_session.map(|principal| principal.id.to_string()), principal, "the session is the link's");
    principal
}

async fn a_link_begins_one_session(database: Database) {
    let store = linked(&database).await;
    assert_eq!(redeem(&store, 2, 1).await, None, "another code");
    assert_eq!(redeem(&store, 1, 2).await.as_deref(), Some("ann"));
    assert_eq!(redeem(&store, 1, 3).await, None, "it was used");
    assert!(store.is_browser_session_valid(&session(2)).await.unwrap(), "control: the session goes on");
}

async fn an_old_link_signs_in_no_longer(database: Database) {
    let store = linked(&database).await;
    store.add_sign_in_link(token(1).key_id(), &code(2)).await.unwrap();
    let age = |milliseconds: u128| format!("UPDATE sign_in_links SET created = created - {milliseconds}");
    database.behind_its_back(&age(MAX_SIGN_IN_LINK_AGE.as_millis() - 30_000)).await;
    assert_eq!(redeem(&store, 1, 1).await.as_deref(), Some("ann"), "control");
    database.behind_its_back(&age(30_000)).await;
    assert_eq!(redeem(&store, 2, 2).await, None);
}

async fn a_link_ends_with_its_token(database: Database) {
    let store = linked(&database).await;
    let ann = PrincipalId::parse("ann").unwrap();
    store.rotate_principal(&ann, &token(2)).await.unwrap();
    assert_eq!(redeem(&store, 1, 1).await, None);
    for number in [2, 3] {
        store.add_sign_in_link(token(2).key_id(), &code(number)).await.unwrap();
    }
    assert_eq!(redeem(&store, 2, 2).await.as_deref(), Some("ann"), "control: with the new token");
    store.revoke_principal(&ann).await.unwrap();
    assert_eq!(redeem(&store, 3, 3).await, None);
}

async fn a_token_has_few_links(database: Database) {
    let store = linked(&database).await;
    database.behind_its_back("UPDATE sign_in_links SET created = created - 1000").await;
    for number in 2..=9 {
        store.add_sign_in_link(token(1).key_id(), &code(number)).await.unwrap();
    }
    assert_eq!(redeem(&store, 1, 1).await, None, "the oldest ended");
    assert_eq!(redeem(&store, 2, 2).await.as_deref(), Some("ann"), "control");
}

/// The answer to a commit may be lost; the same try again then has to have the same end.
async fn a_lost_answer_leaves_the_session(database: Database) {
    let store = linked(&database).await;
    assert_eq!(redeem(&store, 1, 1).await.as_deref(), Some("ann"));
    assert_eq!(redeem(&store, 1, 1).await.as_deref(), Some("ann"), "the same session");
}

async fn links_of_an_installation_are_its_own(database: Database) {
    let here = linked(&database).await;
    let there = database.open_of("there").await;
    assert_eq!(redeem(&there, 1, 1).await, None);
    assert_eq!(redeem(&here, 1, 2).await.as_deref(), Some("ann"), "control");
}
