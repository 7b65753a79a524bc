//! Who may read the store, and what must not be read in what it says.

use std::{error::Error as _, fs, os::unix::fs::PermissionsExt};

use platform_core::limit::Millis;
use platform_runtime::{report, settings};
use runner::store::{Address, Error};

use crate::place::{Place, SECRET, open, secret};

#[tokio::test]
async fn a_password_opens_the_database_and_is_never_shown() {
    let place = Place::postgres_with_password().await;
    let address = Address::parse(&place.url(), Some(&secret())).unwrap();
    let store = open(&address).await.unwrap();
    // The database's own directory is another user's.
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("password-file");
    fs::write(&file, format!("{SECRET}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let (keep_events, keep_events_of) = (Millis::seconds(60), 1);
    let password_file = Some(file.clone());
    let settings = settings::Store { url: place.url(), password_file, keep_events, keep_events_of };
    open(&Address::of(&settings, None).unwrap()).await.unwrap();

    // Without it, and with another one, the database does not let us in.
    let wrong = platform_core::secret::Secret::new("pw-canary-wrong".to_owned());
    let mut said = vec![format!("{address} {address:?} {store:?} {}", store.describe())];
    for password in [None, Some(&wrong)] {
        let refused = open(&Address::parse(&place.url(), password).unwrap()).await.unwrap_err();
        assert!(matches!(refused, Error::Unreachable { .. }), "{refused:?}");
        said.extend([report::chain(&refused), format!("{refused:?} {:?}", refused.source())]);
    }
    for url in [
        "postgres://u:pw-canary@h/d",
        "postgres://h/d?password=pw-canary",
        "postgres://h/d?pass%77ord=pw-canary",
        "pw-canary",
    ] {
        let refused = Address::parse(url, None).unwrap_err();
        said.extend([report::chain(&refused), format!("{refused:?}")]);
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o604)).unwrap();
    let exposed = Address::of(&settings, None).unwrap_err();
    assert!(matches!(exposed, Error::Exposed { .. }), "{exposed:?}");
    said.push(report::chain(&exposed));
    for text in said {
        assert!(!text.contains("canary"), "{text}");
    }
}

#[tokio::test]
async fn only_its_owner_reads_a_store() {
    let place = Place::sqlite();
    let store = place.open().await;
    store.backup(&place.path().join("backup.ndjson")).await.unwrap();
    let mode = |path: &str| fs::metadata(place.path().join(path)).unwrap().permissions().mode() & 0o777;
    for file in ["private/sluice.db", "private/sluice.db-wal", "private/sluice.db-shm", "backup.ndjson"] {
        assert_eq!(mode(file), 0o600, "{file}");
    }
    assert_eq!(mode("private"), 0o700);
    fs::set_permissions(place.path().join("private/sluice.db"), fs::Permissions::from_mode(0o644)).unwrap();
    let refused = open(&place.address()).await.unwrap_err();
    assert!(matches!(refused, Error::Exposed { .. }), "{refused:?}");
}

#[tokio::test]
async fn what_is_no_store_is_refused_and_left_as_it_is() {
    let place = Place::sqlite();
    for url in ["sqlite://relative.db", "sqlite:///", "sqlite:///a?mode=memory", "mysql://h/d", "/a/b.db", ""]
    {
        let refused = Address::parse(url, None).unwrap_err();
        assert!(matches!(refused, Error::Address { .. }), "{url}: {refused:?}");
    }
    fs::create_dir(place.path().join("private")).unwrap();
    let file = place.path().join("private/sluice.db");
    fs::write(&file, "something else entirely, and long enough to be looked at as a page of a database")
        .unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let before = fs::read(&file).unwrap();
    let refused = open(&place.address()).await.unwrap_err();
    assert!(report::chain(&refused).contains("not a database"), "{}", report::chain(&refused));
    assert_eq!(fs::read(&file).unwrap(), before);
}
