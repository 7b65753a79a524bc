//! Tests that only its owner can read the store, and that no message shows a secret.

use std::{
    error::Error as _,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
};

use platform_core::{limit::Millis, secret::Secret};
use platform_runtime::{report, settings};
use runner_store::{Address, Error};
use test_postgres::{PASSWORD, Server};

use crate::{
    backups::populate,
    database::{Database, id, open},
};

crate::on_postgres!(a_password_is_used_and_never_shown);

async fn a_password_is_used_and_never_shown() {
    let server = Server::start_with_password().await;
    let password = Secret::new(PASSWORD.to_owned());
    let address = Address::parse(&server.url(), Some(&password)).unwrap();
    let store = open(&address).await.unwrap();
    // Its own directory, because the server's belongs to another user.
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("password-file");
    fs::write(&file, format!("{PASSWORD}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let settings = settings::Store {
        retention: None,
        url: server.url(),
        password_file: Some(file.clone()),
        event_retention: Millis::seconds(60),
        event_retention_max_runs: 1,
    };
    open(&Address::of(&settings, None).unwrap()).await.unwrap();

    // Without the password, and with another one, the database refuses the connection.
    let wrong = Secret::new("pw-canary-wrong".to_owned());
    let mut messages = vec![format!("{address} {address:?} {store:?} {}", store.describe())];
    for password in [None, Some(&wrong)] {
        let refused = open(&Address::parse(&server.url(), password).unwrap()).await.unwrap_err();
        assert!(matches!(refused, Error::Unreachable { .. }), "{refused:?}");
        messages.extend([report::chain(&refused), format!("{refused:?} {:?}", refused.source())]);
    }
    for url in [
        "postgres://u:pw-canary@h/d",
        "postgres://h/d?password=pw-canary",
        "postgres://h/d?pass%77ord=pw-canary",
        "pw-canary",
    ] {
        let refused = Address::parse(url, None).unwrap_err();
        messages.extend([report::chain(&refused), format!("{refused:?}")]);
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o604)).unwrap();
    let exposed = Address::of(&settings, None).unwrap_err();
    assert!(matches!(exposed, Error::Exposed { .. }), "{exposed:?}");
    messages.push(report::chain(&exposed));
    for text in messages {
        assert!(!text.contains("canary"), "{text}");
    }
}

#[tokio::test]
async fn only_its_owner_reads_a_store() {
    let database = Database::sqlite();
    let store = database.open().await;
    store.backup(&database.path().join("backup.ndjson")).await.unwrap();
    let mode = |path: &str| fs::metadata(database.path().join(path)).unwrap().permissions().mode() & 0o777;
    for file in ["private/sluice.db", "private/sluice.db-wal", "private/sluice.db-shm", "backup.ndjson"] {
        assert_eq!(mode(file), 0o600, "{file}");
    }
    assert_eq!(mode("private"), 0o700);
    fs::set_permissions(database.path().join("private/sluice.db"), fs::Permissions::from_mode(0o644))
        .unwrap();
    let refused = open(&database.address()).await.unwrap_err();
    assert!(matches!(refused, Error::Exposed { .. }), "{refused:?}");
}

/// Returns the message with which a SQLite store is refused.
async fn refused(database: &Database) -> String {
    report::chain(&open(&database.address()).await.unwrap_err())
}

#[tokio::test]
async fn a_store_is_never_behind_a_link() {
    let database = Database::sqlite();
    database.open().await.close().await;
    let (file, target) = (database.path().join("private/sluice.db"), database.path().join("private/target"));
    fs::rename(&file, &target).unwrap();
    symlink(&target, &file).unwrap();
    assert!(
        refused(&database).await.contains("sluice.db: it is a symbolic link"),
        "{}",
        refused(&database).await
    );
    // A link without a target does not create the target.
    let before = fs::read(&target).unwrap();
    fs::remove_file(&target).unwrap();
    assert!(refused(&database).await.contains("is a symbolic link"), "{}", refused(&database).await);
    assert!(!target.exists());
    // Nothing is created where others can write.
    fs::remove_dir_all(database.path().join("private")).unwrap();
    fs::set_permissions(database.path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(
        refused(&database).await.contains("can be written by every user"),
        "{}",
        refused(&database).await
    );
    assert!(!database.path().join("private").exists());
    // The control: the file itself, in a private directory.
    fs::set_permissions(database.path(), fs::Permissions::from_mode(0o755)).unwrap();
    open(&database.address()).await.unwrap().close().await;
    fs::write(&file, before).unwrap();
    open(&database.address()).await.unwrap();
}

/// `sluice up` runs as its own user, and root uses its store, in either order.
#[tokio::test]
async fn root_uses_the_store_of_a_services_user() {
    let database = Database::sqlite();
    let private = database.path().join("private");
    let all_files = || fs::read_dir(&private).unwrap().map(|entry| entry.unwrap().path());
    fs::set_permissions(database.path(), fs::Permissions::from_mode(0o755)).unwrap();
    chown(database.path(), Some(12345), Some(12345)).expect("this test must run as root");
    let store = database.open().await;
    populate(&store).await;
    assert_eq!(all_files().count(), 3, "the store, its log and its index");
    for path in all_files().chain([private.clone()]) {
        assert_eq!(fs::metadata(&path).unwrap().uid(), 12345, "{}", path.display());
    }
    // Root opens a store that this user has created, and refuses one of another user.
    store.close().await;
    database.open().await.record(&id("live")).await.unwrap();
    chown(private.join("sluice.db"), Some(23456), None).unwrap();
    let message = refused(&database).await;
    assert!(message.contains("belongs to uid 23456") && message.contains("`chown 12345 "), "{message}");
    chown(private.join("sluice.db"), Some(12345), None).unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o770)).unwrap();
    let message = refused(&database).await;
    assert!(message.contains("`chmod g-w "), "{message}");
}

#[tokio::test]
async fn a_file_that_is_no_store_is_left_as_it_is() {
    let database = Database::sqlite();
    for url in ["sqlite://relative.db", "sqlite:///", "sqlite:///a?mode=memory", "mysql://h/d", "/a/b.db", ""]
    {
        let refused = Address::parse(url, None).unwrap_err();
        assert!(matches!(refused, Error::Address { .. }), "{url}: {refused:?}");
    }
    fs::create_dir(database.path().join("private")).unwrap();
    let file = database.path().join("private/sluice.db");
    fs::write(&file, "something else entirely, and long enough to be looked at as a page of a database")
        .unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let before = fs::read(&file).unwrap();
    let refused = open(&database.address()).await.unwrap_err();
    assert!(report::chain(&refused).contains("not a database"), "{}", report::chain(&refused));
    assert_eq!(fs::read(&file).unwrap(), before);
}
