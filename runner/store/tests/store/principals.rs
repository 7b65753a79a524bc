//! Tests principals and the tokens that identify them.

use std::time::Duration;

use platform_core::{
    budget::Budget,
    id::{AccountId, AgentId, PrincipalId},
};
use runner_model::principal::{ApiToken, PrincipalRole};
use runner_store::{Error, NewPrincipal, Onto, Store};

use crate::database::Database;

crate::on_both!(
    a_token_identifies_its_principal,
    a_rotated_token_identifies_no_longer,
    a_revoked_principal_stays_revoked,
    an_id_names_one_principal,
    the_last_use_is_stored_once_a_minute,
    principals_of_an_installation_are_its_own;
    restored: a_backup_has_principals
);

fn id(text: &str) -> PrincipalId {
    PrincipalId::parse(text).unwrap()
}

fn token(number: u64) -> ApiToken {
    ApiToken::from_random(number, [u128::from(number); 2])
}

pub(crate) fn new(name: &str) -> NewPrincipal {
    NewPrincipal {
        id: id(name),
        account: AccountId::parse("acct-1").unwrap(),
        role: PrincipalRole::Member,
        agents: Some(vec![AgentId::parse("sandbox:agent").unwrap()]),
        repositories: Some(vec!["https://git.example/acme/*".to_owned()]),
        limits: Budget { total_tokens: Some(1000), ..Budget::default() },
    }
}

/// Returns the id of the principal that `token` identifies.
async fn identified(store: &Store, token: &ApiToken) -> Option<String> {
    store.authenticate(token).await.unwrap().map(|principal| principal.id.to_string())
}

async fn a_token_identifies_its_principal(database: Database) {
    let store = database.open().await;
    let added = store.add_principal(&new("ann"), &token(1)).await.unwrap();
    store
        .add_principal(&NewPrincipal { agents: None, repositories: None, ..new("bob") }, &token(2))
        .await
        .unwrap();
    assert_eq!((added.account.as_str(), added.role), ("acct-1", PrincipalRole::Member));
    assert_eq!(added.limits.total_tokens, Some(1000));
    let listed = store.principals().await.unwrap();
    assert_eq!(listed.iter().map(|principal| principal.id.as_str()).collect::<Vec<_>>(), ["ann", "bob"]);
    assert_eq!((&listed[0], &listed[1].agents), (&added, &None));
    assert_eq!(added.repositories.as_deref(), Some(&["https://git.example/acme/*".to_owned()][..]));
    assert_eq!(listed[1].repositories, None, "all that the account may use");
    assert_eq!(identified(&store, &token(1)).await.as_deref(), Some("ann"));
    assert_eq!(identified(&store, &token(2)).await.as_deref(), Some("bob"));
    // The key id of one and the secret of another.
    let mixed = ApiToken::from_random(1, [2; 2]);
    assert_eq!(identified(&store, &mixed).await, None);
    assert_eq!(identified(&store, &token(3)).await, None);
}

async fn a_rotated_token_identifies_no_longer(database: Database) {
    let store = database.open().await;
    store.add_principal(&new("ann"), &token(1)).await.unwrap();
    let rotated = store.rotate_principal(&id("ann"), &token(2)).await.unwrap();
    assert!(rotated.rotated.is_some());
    assert_eq!(identified(&store, &token(1)).await, None);
    assert_eq!(identified(&store, &token(2)).await.as_deref(), Some("ann"));
    let unknown = store.rotate_principal(&id("bob"), &token(3)).await.unwrap_err();
    assert!(matches!(unknown, Error::NoPrincipal { .. }), "{unknown:?}");
}

async fn a_revoked_principal_stays_revoked(database: Database) {
    let store = database.open().await;
    store.add_principal(&new("ann"), &token(1)).await.unwrap();
    let revoked = store.revoke_principal(&id("ann")).await.unwrap();
    assert_eq!(store.revoke_principal(&id("ann")).await.unwrap(), revoked, "again changes nothing");
    assert_eq!(identified(&store, &token(1)).await, None);
    for refused in [
        store.rotate_principal(&id("ann"), &token(2)).await.unwrap_err(),
        store.add_principal(&new("ann"), &token(2)).await.unwrap_err(),
    ] {
        assert!(matches!(refused, Error::PrincipalRevoked { .. }), "{refused:?}");
    }
    assert_eq!(identified(&store, &token(2)).await, None);
    let unknown = store.revoke_principal(&id("bob")).await.unwrap_err();
    assert!(matches!(unknown, Error::NoPrincipal { .. }), "{unknown:?}");
}

async fn an_id_names_one_principal(database: Database) {
    let store = database.open().await;
    let added = store.add_principal(&new("ann"), &token(1)).await.unwrap();
    let other = NewPrincipal { role: PrincipalRole::Admin, ..new("ann") };
    let taken = store.add_principal(&other, &token(2)).await.unwrap_err();
    assert!(matches!(taken, Error::PrincipalExists { .. }), "{taken:?}");
    assert_eq!(store.principals().await.unwrap(), [added]);
    assert_eq!(identified(&store, &token(2)).await, None);
}

async fn the_last_use_is_stored_once_a_minute(database: Database) {
    let store = database.open().await;
    assert_eq!(store.add_principal(&new("ann"), &token(1)).await.unwrap().used, None);
    let used = async || store.principals().await.unwrap()[0].used;
    identified(&store, &token(1)).await.unwrap();
    let first = used().await.unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    identified(&store, &token(1)).await.unwrap();
    assert_eq!(used().await, Some(first));
    database.behind_its_back("UPDATE principals SET used = used - 60000").await;
    identified(&store, &token(1)).await.unwrap();
    assert!(used().await > Some(first));
}

async fn principals_of_an_installation_are_its_own(database: Database) {
    let (here, there) = (database.open().await, database.open_of("there").await);
    here.add_principal(&new("ann"), &token(1)).await.unwrap();
    assert_eq!(identified(&there, &token(1)).await, None);
    assert!(there.principals().await.unwrap().is_empty());
    there.add_principal(&new("ann"), &token(2)).await.unwrap();
    there.revoke_principal(&id("ann")).await.unwrap();
    assert_eq!(identified(&here, &token(1)).await.as_deref(), Some("ann"));
}

async fn a_backup_has_principals(database: Database) {
    let store = database.open().await;
    store.add_principal(&new("ann"), &token(1)).await.unwrap();
    let file = database.path().join("backup.ndjson");
    store.backup(&file).await.unwrap();
    for elsewhere in [Database::sqlite(), Database::postgres().await] {
        let other = elsewhere.open().await;
        other.restore(&file, Onto::Empty).await.unwrap();
        assert_eq!(identified(&other, &token(1)).await.as_deref(), Some("ann"));
        let refused = other.restore(&file, Onto::Empty).await.unwrap_err();
        assert!(matches!(refused, Error::NotEmpty { .. }), "{refused:?}");
    }
}
